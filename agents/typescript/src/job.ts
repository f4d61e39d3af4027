import { taskOf } from "./answers.js";
import type { Conn } from "./conn.js";
import { Withdrawn } from "./errors.js";
import type { Heard } from "./json.js";
import type { Help, Task } from "./tasks.js";
import { Bell, Linked, type Options } from "./waiting.js";

/** How long one waits for news without a look, in milliseconds: what is said to an agent that does not read in time may get lost. */
const lookAgain = 60_000;

/** A task at work, for the function that does it. What it can do may be taken out of it: ({ task, progress }) => … */
export class Job {
  readonly id: string;
  readonly conn: Conn;
  /** As it was when the work, or the plan, began. */
  task!: Heard<Task>;
  readonly #stop: Linked;
  readonly #bell = new Bell();
  readonly #said: string[] = []; // not taken yet

  /** @internal */
  constructor(conn: Conn, id: string, within: AbortSignal) {
    this.conn = conn;
    this.id = id;
    this.#stop = new Linked(within);
  }

  /** Is aborted with Cancelled, Shutdown or Closed, or as the caller of work says. Then the work should end soon. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Tells how much of the task is done, from 0 to 1. It ends nothing. */
  readonly progress = (fraction: number, message?: string): Promise<void> => this.conn.progress(this.id, fraction, message);

  /**
   * What the orchestrator says of the task while it is at work, in words and from the first
   * on: that its plan is approved or what is wrong with it, the answer of a person, an urgent
   * note. It ends when the signal is aborted, the job's own unless there is another. Each is
   * told once.
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
   * Asks a person something about the task, which is out of the agent's hands until a person
   * has answered, and waits for that: it may take as long as people do. What goes with the
   * question may be anything. It throws Withdrawn when no answer will come.
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

  /** @internal How often something was new. A caller that asks for it before looking at the task misses none. */
  get news(): number {
    return this.#bell.rung;
  }

  /** @internal Waits for news, or until it is time to look again. */
  await(news: number, signal = this.signal): Promise<void> {
    return this.#bell.after(news, signal, lookAgain);
  }

  /** @internal Tells all who wait that something is new. */
  hear(...messages: string[]): void {
    this.#said.push(...messages);
    this.#bell.ring();
  }

  /** @internal Asks how the task is. */
  async look(signal = this.signal): Promise<Heard<Task>> {
    const answer = await this.conn.askPatiently<{ task: Task }>("get-task", { taskId: this.id }, signal);
    return taskOf(answer);
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
