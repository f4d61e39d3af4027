import { Reason } from "./errors.js";
import type { Sent, Undelivered } from "./sent.js";
import { longPause, remembered, rest, shortPause } from "./waiting.js";

/** Bounds the lines that are kept for being said again, in characters. */
const mostLately = 16 << 20;
/** How many are said again at a time. */
const mostAgain = 64;
/** How often one is said again. */
const triesAgain = 10;

/** A line of a session, and its message. */
interface Written {
  sent: Sent;
  line: string;
  place: number; // among those that the agent has said
  tries: number; // how often it was
}

interface Lane {
  name: string;
  held: Written[]; // in the order in which they were said first
  open: Promise<void>; // until nothing waits any more
  wait: number; // until the next round
  most: number; // in a round
  begun: boolean;
  refused: boolean; // one of the last round
}

/**
 * A message of a session that was refused because there is too much of it just now had no
 * effect, and may be taken later: it is said again, the same line. Until it is, what comes
 * after it waits in the same lane:
 *
 *	""        the agent has said too much, so everything that it says in sessions waits
 *	an agent  that one has not taken what it was sent before, so what is for it waits
 *
 * No answer says that a message was taken. So a lane says some, and is silent for a while: if
 * none of them was refused by then, more of them follow sooner, otherwise fewer, later.
 */
export class Lanes {
  readonly #write: (line: string) => Promise<void>;
  readonly #ended: AbortSignal; // the orchestrator tells no more what it refuses
  readonly #lanes = new Map<string, Lane>();
  readonly #lately = new Map<string, Written>(); // the latest lines, by message_id: the oldest go first
  #size = 0;
  #places = 0;

  constructor(write: (line: string) => Promise<void>, ended: AbortSignal) {
    this.#write = write;
    this.#ended = ended;
  }

  /** Keeps the line of a message that is about to be written. */
  keep(sent: Sent, line: string): void {
    this.#keep({ sent, line, place: this.#places++, tries: 0 });
  }

  #keep(w: Written): void {
    this.#lately.set(w.sent.messageId, w);
    this.#size += w.line.length;
    for (const oldest of this.#lately.values()) {
      if (this.#lately.size === 1 || (this.#size <= mostLately && this.#lately.size <= remembered)) break;
      this.#forget(oldest);
    }
  }

  #forget(w: Written): void {
    if (this.#lately.delete(w.sent.messageId)) this.#size -= w.line.length;
  }

  /** Puts a refused message into its lane, and says whether it will be said again. */
  sayLater(sent: Sent, why: Undelivered): boolean {
    const name = laneOf(sent, why);
    if (name === undefined) return false;
    const w = this.#lately.get(sent.messageId);
    if (w) this.#forget(w);
    const lane = this.#lanes.get(name);
    if (lane?.held.some((h) => h.sent === sent)) return true; // it was refused twice, as it was said
    if (w === undefined || w.tries === triesAgain) return false;
    const l = lane ?? this.#open(name);
    l.held.push(w);
    l.held.sort((a, b) => a.place - b.place);
    l.refused = true;
    return true;
  }

  #open(name: string): Lane {
    const l: Lane = { name, held: [], open: Promise.resolve(), wait: shortPause, most: mostAgain, begun: false, refused: false };
    this.#lanes.set(name, l);
    l.open = this.#sayAgain(l);
    return l;
  }

  /** Says what is in a lane until there is nothing left. After the end of the stream no refusals arrive, so the rest is said once. */
  async #sayAgain(l: Lane): Promise<void> {
    try {
      for (let over = false, said = 1; !over && said > 0; ) {
        over = await rest(l.wait, this.#ended);
        const round = this.#round(l, over);
        said = round.length;
        for (const w of round) await this.#write(w.line);
      }
    } catch {
      // Nothing else can be said, as its caller is told.
    } finally {
      if (this.#lanes.get(l.name) === l) this.#lanes.delete(l.name);
    }
  }

  /** Takes what a lane says next. When that is nothing the lane is no more. */
  #round(l: Lane, all: boolean): Written[] {
    if (l.begun && l.refused) [l.wait, l.most] = [Math.min(2 * l.wait, longPause), Math.max(l.most >> 1, 1)];
    else if (l.begun) [l.wait, l.most] = [shortPause, Math.min(2 * l.most, mostAgain)];
    [l.begun, l.refused] = [true, false];
    const round = l.held.splice(0, all ? l.held.length : l.most);
    for (const w of round) {
      w.tries++;
      this.#keep(w);
    }
    if (round.length === 0) this.#lanes.delete(l.name);
    return round;
  }

  /** What a message for an agent has to wait for. */
  ahead(to: string): Promise<void> | undefined {
    return (this.#lanes.get("") ?? this.#lanes.get(to))?.open;
  }

  /** Waits until nothing is to be said again: an agent that goes before takes it along. */
  async settled(): Promise<void> {
    for (let [l] = this.#lanes.values(); l; [l] = this.#lanes.values()) await l.open;
  }
}

/** Where a refused message waits; undefined for one that is not to be said again. */
function laneOf(sent: Sent, why: Undelivered): string | undefined {
  if (why.reason === Reason.Limited) return "";
  const crowd = why.details?.["waiting"];
  return why.details?.error_type === "timeout" && typeof crowd === "number" && crowd > 0 ? sent.to : undefined;
}
