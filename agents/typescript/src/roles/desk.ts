import type { Notice } from "../connection/inbox.js";
import type { Sent, Undelivered } from "../connection/sent.js";
import type { Event } from "../connection/stream.js";
import { Bell, Linked, Recent, unless } from "../connection/waiting.js";
import { Again, Cancelled, Shutdown, spoken, Torn } from "../wire/errors.js";
import type { Said } from "../wire/said.js";
import type { Status, TaskProgress } from "../wire/sessions.js";
import { parting, Running, troubled, Turns } from "../work/loops.js";
import type { Member } from "../work/session.js";

/** How often a refused answer is corrected. */
const corrections = 3;

/** The outcome of an errand that was given up because the agent has to shut down. */
export const unfinished = Symbol("unfinished");

/** Work that a session message asks for. */
export abstract class Errand {
  readonly key: string;
  readonly task: string;
  /** The errand that it replaces. */
  before: Errand | undefined;
  /** Settled when do has returned. */
  over: Promise<void> = Promise.resolve();
  corrected = 0;
  #stop = new Linked();

  constructor(key: string, task: string) {
    this.key = key;
    this.task = task;
  }

  /** Does the work until the message is answered. */
  abstract do(): Promise<typeof unfinished | void>;
  /** Sends another answer after one was refused. */
  abstract correct(why: Undelivered): Promise<typeof unfinished | void>;
  abstract status(): TaskProgress;

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether the errand was cancelled or replaced, so that no caller waits for its outcome. */
  get off(): boolean {
    return this.signal.reason instanceof Cancelled || this.signal.reason instanceof Again;
  }

  /** Whether the answer may be corrected again. */
  get correctable(): boolean {
    return this.corrected < corrections;
  }

  begin(within: AbortSignal): void {
    this.#stop = new Linked(within);
  }

  stop(reason: unknown): void {
    this.#stop.abort(reason);
  }

  letGo(): void {
    this.#stop.letGo();
  }
}

/** The work of a developer or a reviewer: one errand for each message that asks for work. */
export abstract class Desk {
  readonly session: Member;
  readonly #hear: ((said: Said) => void) | undefined;
  readonly #errands = new Map<string, Errand>(); // errands that are not answered, by key
  readonly #answered = new Recent<Errand>(); // by the message_id of the answer
  readonly #turns: Turns;
  readonly #running = new Running();
  #stop = new Linked();
  #unfinished = 0;

  constructor(session: Member, capacity: number | undefined, hear: ((said: Said) => void) | undefined) {
    this.session = session;
    this.#turns = new Turns(Math.max(capacity ?? 1, 1));
    this.#hear = hear;
  }

  /** Returns the errand for a message, or undefined if it asks for no work. */
  protected abstract errand(said: Said): Errand | undefined;

  /**
   * Processes events until the agent is told to shut down, the stream ends or the signal is
   * aborted.
   */
  async work(signal?: AbortSignal): Promise<void> {
    const stop = (this.#stop = new Linked(signal));
    for (let e = await this.#next(); e; e = await this.#next()) this.#heed(e);
    stop.abort(this.session.conn.over); // unless it was aborted before, for another reason
    await this.#running.wait();
    await this.session.conn.settled(); // the work is done, but its outcome may not be sent yet
    parting(stop.signal.reason, this.#unfinished);
  }

  #next(): Promise<Event | undefined> {
    return this.session.conn.next("all", this.#stop.signal);
  }

  /** Processes an event without blocking. */
  #heed(e: Event): void {
    if (e.notice) this.#noticed(e.notice);
    if (e.lost) this.#lost(e.lost);
    if (e.said) this.#told(e.said);
  }

  #noticed(notice: Notice): void {
    if (notice.name === "shutdown") this.#stop.abort(new Shutdown());
    if (notice.name === "task-cancelled" && typeof notice.payload.taskId === "string") {
      this.#cancel(notice.payload.taskId, notice.payload.reason ?? "");
    }
  }

  #told(said: Said): void {
    this.session.saw(said);
    this.#hear?.(said);
    if (said.message_type === "abort") {
      const { scope, target_id, reason } = said.payload;
      const ours = [undefined, "", target_id].includes(this.session.identity.session);
      if (scope === "task") this.#cancel(target_id, reason);
      else if (ours) this.#cancel("", reason);
    } else if (said.message_type === "status_query") {
      this.#go(() => this.#tellStatus(said, said.payload.task_id ?? ""));
    } else {
      const e = this.errand(said);
      if (e) this.#start(e);
    }
  }

  /** Answers a status query about one task, or about all if task is "". */
  async #tellStatus(query: Said, task: string): Promise<void> {
    const tasks = [...this.#errands.values()].filter((e) => task === "" || task === e.task).map((e) => e.status());
    tasks.sort((a, b) => (a.task_id < b.task_id ? -1 : a.task_id > b.task_id ? 1 : 0));
    const status: Status = { status: this.#errands.size > 0 ? "busy" : "idle", tasks };
    await this.session.tellStatus(query, status);
  }

  /**
   * Stops the errands of a task, or all if task is "". Removes them at once, even if they still
   * run, because the task may be assigned again meanwhile.
   */
  #cancel(task: string, reason: string): void {
    for (const e of [...this.#errands.values()]) {
      if (task !== "" && task !== e.task) continue;
      this.#errands.delete(e.key);
      e.stop(new Cancelled(reason));
    }
  }

  /** Begins an errand. An older errand with the same key is stopped: the last message counts. */
  #start(e: Errand): void {
    e.begin(this.#stop.signal);
    e.before = this.#errands.get(e.key);
    this.#errands.set(e.key, e);
    e.before?.stop(new Again());
    e.over = this.#running.go(async () => {
      await this.#finish(e, () => e.do());
      e.letGo();
      await e.before?.over; // a caller that waits for this one waits for both
    });
  }

  /**
   * Waits until an errand may be done. Errands with the same key never run together, because they
   * would change the same files.
   */
  async turn(e: Errand): Promise<() => void> {
    if (e.before) await unless(e.before.over, e.signal);
    e.before = undefined;
    return this.#turns.take(e.signal);
  }

  async #finish(e: Errand, what: () => Promise<typeof unfinished | void>): Promise<void> {
    let failed: unknown;
    try {
      if ((await what()) === unfinished) this.#unfinished++;
    } catch (error) {
      failed = new Error(`task ${e.task}: ${spoken(error)}`, { cause: error });
      if (error instanceof Torn) failed = error;
    }
    if (this.#errands.get(e.key) === e) this.#errands.delete(e.key);
    await this.#troubled(failed);
  }

  /**
   * Remembers the answer of an errand, because it may be refused. Handles a refusal that has
   * already arrived.
   */
  expects(e: Errand, answer: Sent): void {
    this.#answered.add(answer.messageId, e);
    if (answer.error) this.#lost(answer);
  }

  /** Handles a message of the agent that was not delivered. */
  #lost(sent: Sent): void {
    const e = this.#answered.take(sent.messageId);
    const why = sent.error!;
    if (e === undefined) {
      const answer = sent.type === "task_completion" || sent.type === "review_result";
      if (!answer) this.#go(() => Promise.reject(why)); // expects has yet to be called for answers, and handles them
    } else if (!e.correctable) {
      this.#go(() => Promise.reject(new Error(`task ${e.task}, given up: ${spoken(why)}`)));
    } else {
      e.corrected++;
      void this.#running.go(() => this.#finish(e, () => e.correct(why)));
    }
  }

  #go(what: () => Promise<void>): void {
    void this.#running.go(() => what().catch((error: unknown) => this.#troubled(error)));
  }

  /** Logs an error, if there is one. */
  async #troubled(error: unknown): Promise<void> {
    if (error !== undefined) await troubled(this.session.conn, error, this.#stop);
  }
}

/** Calls a function again and again, at times that may move, until the signal is aborted. */
export async function whenDue(due: () => number, signal: AbortSignal, call: () => Promise<void>): Promise<void> {
  const never = new Bell();
  for (;;) {
    const at = due();
    try {
      await never.after(never.rung, signal, Math.max(0, Math.min(at - Date.now(), 0x7fffffff))); // a longer timer fires at once
    } catch {
      return;
    }
    if (Date.now() >= at && at === due()) await call();
  }
}
