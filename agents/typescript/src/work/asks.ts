import type { Refused } from "../wire/errors.js";
import type { Heard, Raw } from "../wire/json.js";
import { acts, readAct, type TaskAct } from "../wire/taskline.js";
import { readRequest, type TaskRequest } from "../wire/taskrequest.js";

/** One item asked of an agent that serves: a request, an act, a refusal or a shutdown. */
export interface Asked {
  /** A task to do. */
  request?: Heard<TaskRequest>;
  /** An act on a task that the agent was given. */
  act?: TaskAct;
  /** A refusal of a message of the agent, perhaps of a response. */
  refused?: Refused;
  /** The id of the refused message. */
  id?: string;
  /** A request to shut down. */
  leave?: true;
  /** The length of the line, in characters. */
  size?: number;
}

/**
 * Bounds of the queue while no serve runs: the number of items, and the characters of their lines.
 */
const [mostAsked, longestAsked] = [1000, 16 << 20];

/**
 * The queue of the items asked of the agent. The agent never has more requests than tasks that it
 * may hold, and repeated status queries are queued once. While no serve runs, the oldest items are
 * dropped to bound the queue.
 */
export class Asks {
  /** The number of calls of serve. */
  serving = 0;
  readonly #queue = new Set<Asked>(); // in order
  readonly #latest = new Map<string, Asked>(); // the latest queued item of each task
  readonly #tell: (dropped: () => number) => void;
  #size = 0;
  #dropped = 0; // items dropped and not yet logged

  /**
   * tell is called when items were dropped. It gets a function that returns and resets their
   * number.
   */
  constructor(tell: (dropped: () => number) => void) {
    this.#tell = tell;
  }

  /** Queues a line that is a task request or an act on one. */
  hear(line: Raw, type: string): void {
    const size = line.text.length;
    const act = acts.includes(type) ? readAct(line) : undefined;
    const request = acts.includes(type) ? undefined : readRequest(line);
    if (act) this.push({ act, size });
    if (request) this.push({ request, size });
  }

  push(asked: Asked): void {
    const task = about(asked);
    const before = this.#latest.get(task);
    if (before && alike(before, asked)) return;
    this.#latest.set(task, asked);
    this.#queue.add(asked);
    this.#size += asked.size ?? 0;
    while (this.serving === 0 && this.#queue.size > 1 && (this.#queue.size > mostAsked || this.#size > longestAsked)) this.#drop();
  }

  shift(): Asked | undefined {
    const [asked] = this.#queue;
    if (asked) this.#remove(asked);
    return asked;
  }

  /** Drops the oldest item that is not a shutdown. */
  #drop(): void {
    for (const asked of this.#queue) {
      if (asked.leave) continue;
      this.#remove(asked);
      break;
    }
    const count = () => {
      const dropped = this.#dropped;
      this.#dropped = 0;
      return dropped;
    };
    if (++this.#dropped === 1) this.#tell(count);
  }

  #remove(asked: Asked): void {
    this.#queue.delete(asked);
    this.#size -= asked.size ?? 0;
    const task = about(asked);
    if (this.#latest.get(task) === asked) this.#latest.delete(task);
  }
}

/** Returns the id of the task that an item is about, or "". */
function about({ request, act, id }: Asked): string {
  return (request ?? act)?.id ?? id ?? "";
}

/** Reports whether an item asks for nothing beyond the one just ahead of it. */
function alike(before: Asked, asked: Asked): boolean {
  if (asked.leave) return before.leave === true;
  if (asked.request) return before.request !== undefined;
  return asked.act?.type === "task.status" && before.act?.type === "task.status";
}
