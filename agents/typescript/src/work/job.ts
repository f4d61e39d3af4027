import { Bell, Linked, type Options } from "../connection/waiting.js";
import { Withdrawn } from "../wire/errors.js";
import { type Heard, partOf } from "../wire/json.js";
import type { Help, Task, TaskArtifact } from "../wire/documents.js";
import type { Exchange } from "./exchange.js";

/**
 * Bounds the wait for news, in milliseconds, because a notice may be lost if the agent reads too
 * slowly.
 */
const lookAgain = 60_000;

/**
 * A running task, for the function that does it. Its functions may be destructured: ({ task,
 * progress }) => …
 */
export class Job {
  readonly id: string;
  readonly conn: Exchange;
  /** As it was when do or plan was called. */
  task!: Heard<Task>;
  readonly #stop: Linked;
  readonly #bell = new Bell();
  readonly #said: string[] = []; // not taken yet
  /** @internal The artifacts so far. */
  readonly made: TaskArtifact[] = [];

  /** @internal */
  constructor(conn: Exchange, id: string, within: AbortSignal) {
    this.conn = conn;
    this.id = id;
    this.#stop = new Linked(within);
  }

  /**
   * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to work. The
   * handler should then return soon.
   */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Reports how much of the task is done, from 0 to 1, and what there is so far. It does not complete
   * the task.
   */
  readonly progress = (fraction: number, message?: string, output?: unknown): Promise<void> =>
    this.conn.progress(this.id, fraction, message, output);

  /**
   * Keeps an artifact, which is handed in with the result: a text, or the path of a text file in the
   * agent's folder, which is read when the task is completed. One that is stored elsewhere has a ref.
   */
  readonly artifact = (artifact: TaskArtifact): void => {
    this.made.push({ ...artifact });
  };

  /**
   * Iterates over what the orchestrator reports about the task while it runs: the approval of its
   * plan or feedback on it, the answer of a person, an urgent note. Starts with the first update,
   * yields each once, and ends when the signal is aborted; the default is the job's signal.
   */
  readonly updates = ({ signal = this.signal }: Options = {}): AsyncGenerator<string, void, void> => this.#updates(signal);

  async *#updates(signal: AbortSignal): AsyncGenerator<string, void, void> {
    while (!signal.aborted) {
      const rung = this.#bell.rung;
      const message = this.#said.shift();
      if (message !== undefined) yield message;
      else await this.#bell.after(rung, signal).catch(() => {}); // aborted, which the loop sees
    }
  }

  /**
   * Asks a person a question about the task and waits for the answer, however long it takes. Until
   * then the task is out of the agent's hands. The context may be any value. Throws Withdrawn if
   * the task goes on without an answer.
   *
   * Conn.askUser is for a question that has nothing to do with a task, or a time limit.
   */
  readonly help = async (question: string, context?: unknown, { signal = this.signal }: Options = {}): Promise<string> => {
    const { help: asked } = await this.conn.requestHelp(this.id, question, context, { signal });
    for (;;) {
      const rung = this.news;
      const task = await this.look(signal);
      const help: Partial<Help> = task.help ?? {};
      if (help.questionId === asked?.questionId && help.answeredAt) return help.answer ?? "";
      if (task.state !== "needs_human") throw new Withdrawn();
      await this.await(rung, signal);
    }
  };

  /**
   * @internal The number of updates. Read it before looking at the task, so that none is missed.
   */
  get news(): number {
    return this.#bell.rung;
  }

  /** @internal Waits for news, or until it is time to look again. */
  await(news: number, signal = this.signal): Promise<void> {
    return this.#bell.after(news, signal, lookAgain);
  }

  /** @internal Adds updates and wakes all waiting calls. */
  hear(...messages: string[]): void {
    this.#said.push(...messages);
    this.#bell.ring();
  }

  /** @internal Asks for the current state of the task. */
  async look(signal = this.signal): Promise<Heard<Task>> {
    const answer = await this.conn.askPatiently<{ task: Task }>("get-task", { taskId: this.id }, signal);
    return partOf<Task>(answer, "task");
  }

  /** @internal Drops the artifacts so far, because the task is done again. */
  discard(): void {
    this.made.length = 0;
  }

  /** @internal */
  stop(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** @internal */
  letGo(): void {
    this.#stop.letGo();
  }
}

/** A structured result. Its contracts are delivered to the tasks that depend on them. */
export interface Result {
  /** What was done, in one line. */
  summary: string;
  changes?: {
    files_modified?: string[];
    files_created?: string[];
    files_deleted?: string[];
    lines_added?: number;
    lines_removed?: number;
  };
  /** By the keys that the task spec names. */
  contracts?: { [key: string]: Contract };
  tests?: { framework?: string; total: number; passed: number; failed: number; skipped: number; coverage_percent?: number };
  /** Anything else, by name. */
  artifacts?: { [name: string]: unknown };
}

/** One delivery of a result. */
export interface Contract {
  status: "fulfilled" | "partial" | "skipped";
  data?: unknown;
}

/** Returns a result with the $schema of the document. */
export function result(what: Result): Result & { $schema: string } {
  return { $schema: "orchestratia/task-result/v1", ...what };
}

/** Returns a contract that is delivered completely. The data is usually an object. */
export function fulfilled(data: unknown): Contract {
  return { status: "fulfilled", data };
}

/** Returns a contract that is delivered in part. */
export function partial(data: unknown): Contract {
  return { status: "partial", data };
}

/** Returns a contract that is not delivered, with the reason. */
export function skipped(reason: string): Contract {
  return { status: "skipped", data: { reason } };
}
