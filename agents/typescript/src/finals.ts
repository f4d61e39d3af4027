import { remembered } from "./waiting.js";

/** A final response. */
export interface FinalWord {
  line: string;
  /** Who asks for the same once more wants it to be done once more. */
  again: boolean;
  /** It stands in the place of another one, which was refused. */
  instead?: true;
  /** How often it was refused because there was too much. */
  tries: number;
}

/** How long they may be together, in characters, but for the latest. */
const longest = 16 << 20;

/** The final responses that a connection has said latest. One that is gone is known no more: the orchestrator knows what came of it. */
export class Finals {
  readonly #byTask = new Map<string, FinalWord>(); // the oldest go first
  #size = 0;

  /** Remembers one, in the place of an older one of its task. */
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
