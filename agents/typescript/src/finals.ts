import { remembered } from "./waiting.js";

/** A final response. */
export interface FinalWord {
  line: string;
  /** A repeated request is done again. */
  again: boolean;
  /** It replaced a final response that was refused. */
  instead?: true;
  /** How often it was refused for the rate limit. */
  tries: number;
}

/** Bounds the total length of the lines, in characters. The latest one is always kept. */
const longest = 16 << 20;

/**
 * The latest final responses that a connection has sent. Older ones are dropped: the orchestrator
 * knows the outcome of their tasks.
 */
export class Finals {
  readonly #byTask = new Map<string, FinalWord>(); // the oldest are dropped first
  #size = 0;

  /** Adds a final response. It replaces an older one of the same task. */
  add(task: string, word: FinalWord): void {
    this.#forget(task);
    this.#byTask.set(task, word);
    this.#size += word.line.length;
    for (const oldest of this.#byTask.keys()) {
      if (this.#byTask.size === 1 || (this.#size <= longest && this.#byTask.size <= remembered)) break;
      this.#forget(oldest);
    }
  }

  get(task: string): FinalWord | undefined {
    return this.#byTask.get(task);
  }

  #forget(task: string): void {
    this.#size -= this.#byTask.get(task)?.line.length ?? 0;
    this.#byTask.delete(task);
  }
}
