import { Reason } from "../wire/errors.js";
import type { Sent, Undelivered } from "./sent.js";
import { longPause, remembered, rest, shortPause } from "./waiting.js";

/** Bounds the characters of the lines kept for sending again. */
const mostLately = 16 << 20;
/** Messages in a round, at most. */
const mostAgain = 64;
/** How often a message is sent again. */
const triesAgain = 10;

/** A session message and its line. */
interface Written {
  sent: Sent;
  line: string;
  place: number; // among the messages of the connection
  tries: number; // how often it was sent again
}

interface Lane {
  name: string;
  held: Written[]; // ordered by place
  open: Promise<void>; // settled when the lane ends
  wait: number; // until the next round
  most: number; // messages in a round
  begun: boolean;
  refused: boolean; // a message of the last round was refused
}

/**
 * Repeats session messages that were refused because of a rate limit or a full queue. A refused
 * message had no effect, so the same line is sent again. Until then, later messages wait in the
 * same lane:
 *
 *     ""        rate limit of the agent: all its session messages wait
 *     an agent  full queue of that agent: messages to it wait
 *
 * Delivered messages are not confirmed. So a lane sends a round of messages and pauses. If none is
 * refused, the next round is larger and sooner, otherwise smaller and later.
 */
export class Lanes {
  readonly #write: (line: string) => Promise<void>;
  readonly #ended: AbortSignal; // aborted when the stream has ended: no refusals arrive
  readonly #lanes = new Map<string, Lane>();
  readonly #lately = new Map<string, Written>(); // the latest lines, by message_id; the oldest are dropped first
  #size = 0;
  #places = 0;

  constructor(write: (line: string) => Promise<void>, ended: AbortSignal) {
    this.#write = write;
    this.#ended = ended;
  }

  /** Stores the line of a message that is about to be written. */
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

  /** Queues a refused message in its lane and reports whether it will be sent again. */
  sayLater(sent: Sent, why: Undelivered): boolean {
    const name = laneOf(sent, why);
    if (name === undefined) return false;
    const w = this.#lately.get(sent.messageId);
    if (w) this.#forget(w);
    const lane = this.#lanes.get(name);
    if (lane?.held.some((h) => h.sent === sent)) return true; // refused twice, as it was sent twice
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

  /**
   * Sends the messages of a lane in rounds until none is left. After the end of the stream no
   * refusals arrive, so the rest is sent in one round.
   */
  async #sayAgain(l: Lane): Promise<void> {
    try {
      for (let over = false, said = 1; !over && said > 0; ) {
        over = await rest(l.wait, this.#ended);
        const round = this.#round(l, over);
        said = round.length;
        for (const w of round) await this.#write(w.line);
      }
    } catch {
      // Nothing else can be sent; the callers of write get the error.
    } finally {
      if (this.#lanes.get(l.name) === l) this.#lanes.delete(l.name);
    }
  }

  /** Takes the next messages of a lane. Removes an empty lane. */
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

  /** Returns the promise that a message to an agent has to wait for, or undefined. */
  ahead(to: string): Promise<void> | undefined {
    return (this.#lanes.get("") ?? this.#lanes.get(to))?.open;
  }

  /** Waits until every lane is empty. Messages still waiting when the agent exits are lost. */
  async settled(): Promise<void> {
    for (let [l] = this.#lanes.values(); l; [l] = this.#lanes.values()) await l.open;
  }
}

/** Returns the lane of a refused message, or undefined if it is not to be sent again. */
function laneOf(sent: Sent, why: Undelivered): string | undefined {
  if (why.reason === Reason.Limited) return "";
  const crowd = why.details?.["waiting"];
  return why.details?.error_type === "timeout" && typeof crowd === "number" && crowd > 0 ? sent.to : undefined;
}
