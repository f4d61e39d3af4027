import type { Refused } from "./errors.js";
import type { Heard, Raw } from "./json.js";
import { acts, readAct, type TaskAct } from "./taskact.js";
import { readRequest, type TaskRequest } from "./taskrequest.js";

/** What is asked of an agent that serves: one of these. */
export interface Asked {
  /** To do something. */
  request?: Heard<TaskRequest>;
  /** About something that it was asked to do. */
  act?: TaskAct;
  /** What was said of such a thing, perhaps: it was refused. */
  refused?: Refused;
  /** Which that is. */
  id?: string;
  /** To shut down. */
  leave?: true;
  /** Of the line, in characters. */
  size?: number;
}

/** How much is kept while no function serves, and how long it may be, in characters. */
const [mostAsked, longestAsked] = [1000, 16 << 20];

/**
 * What is not heeded yet. There are no more requests than tasks that the agent may
 * have, and one that is asked again and again how it does says it once. As long as no function
 * serves, what is asked makes room for what comes after it.
 */
export class Asks {
  /** How many serve. */
  serving = 0;
  readonly #queue = new Set<Asked>(); // in order
  readonly #latest = new Map<string, Asked>(); // by the id of the task
  readonly #tell: (dropped: () => number) => void;
  #size = 0;
  #dropped = 0; // and not told

  /** Tell is called when there is something to tell of what was dropped. */
  constructor(tell: (dropped: () => number) => void) {
    this.#tell = tell;
  }

  /** Keeps what a line asks for, if that is anything. */
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

  /** Forgets the oldest of what is asked, but not that the agent is to go. */
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

/** The task that it is about, "" for none. */
function about({ request, act, id }: Asked): string {
  return (request ?? act)?.id ?? id ?? "";
}

/** Says whether one that comes right after another asks for nothing more. */
function alike(before: Asked, asked: Asked): boolean {
  if (asked.leave) return before.leave === true;
  if (asked.request) return before.request !== undefined;
  return asked.act?.type === "task.status" && before.act?.type === "task.status";
}
