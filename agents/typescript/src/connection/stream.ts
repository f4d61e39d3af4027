import type { Readable, Writable } from "node:stream";
import { about, checkEvent, document, Envelope, message, refusal } from "../wire/envelope.js";
import { Closed, Reason, type Refusal, Refused, Shutdown, Torn } from "../wire/errors.js";
import { type Heard, Raw, read } from "../wire/json.js";
import { Lines } from "../wire/lines.js";
import { readSaid, type Said } from "../wire/said.js";
import { Mailbox, type Notice } from "./inbox.js";
import { Lanes } from "./lanes.js";
import { Operations } from "./operations.js";
import { Sent, Undelivered } from "./sent.js";
import { Bell, type Options, Queue, Recent, remembered, sleep, unless } from "./waiting.js";

/**
 * An unsolicited message, or a message that was not delivered: one of these. at is its position
 * among all.
 */
export interface Event {
  at: number;
  notice?: Notice;
  said?: Said;
  lost?: Sent;
}

/** The kinds of events to wait for. */
export type Wanted = "notices" | "session" | "all";

interface Call {
  resolve(answer: Raw): void;
  reject(why: unknown): void;
}

/**
 * The wait in milliseconds before a request over the rate limit is repeated, if the refusal does not
 * say after which time.
 */
const pause = 1000;

/**
 * Returns the wait before a limited request is repeated: what the refusal says, twice as long after
 * each try up to pause, with some jitter.
 */
function backoff(refused: Refused, tries: number): number {
  const after = refused.retryAfter;
  if (after === 0) return pause;
  return Math.max(after, Math.min(after * 2 ** Math.min(tries, 10), pause)) * (1 + Math.random() / 4);
}

/**
 * The two streams between an agent and its orchestrator. Answers go to the requests that wait for
 * them; unsolicited messages are queued until they are taken.
 *
 * Reading never blocks. The queues have no bound, except for the notices of an agent that serves and
 * has never read notices. Exchange handles the messages about delegated work.
 */
export class Stream extends Operations {
  /** @internal */
  readonly mailbox = new Mailbox();
  readonly #in: Readable;
  readonly #out: Writable;
  readonly #calls = new Map<string, Call>(); // by the id of the request
  readonly #notices = new Queue<Event>();
  readonly #session = new Queue<Event>();
  readonly #known = new Recent<true>(); // session messages received
  readonly #sent = new Recent<Sent>(); // session messages sent
  readonly #bell = new Bell();
  readonly #ended = new AbortController();
  readonly #lanes = new Lanes((line) => this.write(line), this.#ended.signal);
  #count = 0; // of events
  #spare = false; // notices that are never read are dropped
  #looked = false; // a caller has asked for notices
  #holds = 0; // calls that wait for the orchestrator
  #over: Closed | undefined;
  #torn: Torn | undefined;

  constructor(input: Readable, output: Writable) {
    super();
    this.#in = input;
    this.#out = output;
    const lines = new Lines((line) => this.#hear(line));
    input.on("data", (chunk: Buffer | string) => lines.feed(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
    const end = (cause?: unknown) => {
      if (this.#over === undefined) {
        lines.end();
        this.#end(cause);
      }
    };
    input.on("end", () => end());
    input.on("close", () => end());
    input.on("error", (error) => end(error));
    output.on("error", (error) => this.#tear(error));
    this.#hold(0);
  }

  /**
   * Waits until the orchestrator's stream has ended and all messages that had to be sent again are
   * sent. Throws if reading failed.
   */
  async wait(options: Options = {}): Promise<void> {
    await this.held(async () => {
      while (this.#over === undefined) await this.#bell.after(this.#bell.rung, options.signal);
    });
    await this.#lanes.settled();
    await this.flushed();
    if (this.#over?.cause !== undefined) throw this.#over;
  }

  /** @internal Aborted when the stream has ended. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** @internal Why the stream has ended, or undefined. */
  get over(): Closed | undefined {
    return this.#over;
  }

  /**
   * Sends a request for an operation, such as "get-task", and waits for the answer. The answer is
   * an object, with its text as raw. The payload must be an object; undefined means an empty one.
   *
   * Throws Refused if the orchestrator refuses the request. If the signal is aborted first, the
   * operation may have been carried out; a question to a person is withdrawn, unless the agent has
   * to shut down. If the stream ends first, asked of Closed reports whether
   * the request was sent.
   */
  async ask<T = { [key: string]: unknown }>(operation: string, payload?: unknown, options: Options = {}): Promise<Heard<T>> {
    return read<T>(await this.askRaw(operation, payload, options));
  }

  /** Like ask, but returns the undecoded answer. */
  async askRaw(operation: string, payload?: unknown, options: Options = {}): Promise<Raw> {
    try {
      return await this.#ask(operation, payload, options.signal);
    } catch (error) {
      throw about(operation, error);
    }
  }

  async #ask(operation: string, payload: unknown, signal?: AbortSignal): Promise<Raw> {
    signal?.throwIfAborted();
    const { id, text } = message("request:" + operation, payload);
    if (this.#over) throw new Closed(`${operation}: not asked: ${this.#over.message}`, false, this.#over.cause);
    const answer = new Promise<Raw>((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    try {
      return await this.held(async () => (await Promise.all([unless(answer, signal), this.write(text)]))[0]);
    } catch (error) {
      if (signal?.aborted && error === signal.reason) this.#abandon(operation, id, error);
      const over = this.over;
      if (over === undefined || error !== over) throw error;
      throw new Closed(`${operation}: asked, but there will be no answer: ${over.message}`, true, over.cause);
    } finally {
      this.#calls.delete(id);
    }
  }

  /**
   * Withdraws the question of a request whose caller no longer waits. After a shutdown the question
   * stays open: the next run that asks the same takes it up.
   */
  #abandon(operation: string, requestId: string, why: unknown): void {
    if (!["ask-user", "ask-permission"].includes(operation) || why instanceof Shutdown || why instanceof Closed) return;
    this.write(message("request:withdraw-question", { requestId }).text).catch(() => {}); // the next write reports it
  }

  /**
   * @internal Like ask, for requests that must not be lost to the rate limit. A request over the
   * limit has had no effect, so it is repeated.
   */
  async askPatiently<T>(operation: string, payload?: unknown, signal?: AbortSignal): Promise<Heard<T>> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.ask<T>(operation, payload, { signal });
      } catch (error) {
        if (!(error instanceof Refused) || error.reason !== Reason.Limited) throw error;
        await sleep(backoff(error, tries), signal);
      }
    }
  }

  /**
   * @internal Asks for an operation even if the stream has ended. The orchestrator still reads the
   * agent's output then, until its time to stop is up, but sends no answers.
   */
  async settle(operation: string, payload: unknown): Promise<void> {
    try {
      await this.askPatiently(operation, payload);
    } catch (error) {
      if (!(error instanceof Closed)) throw error;
      if (!error.asked) await this.write(message("request:" + operation, payload).text);
    }
  }

  /**
   * Sends an event, such as "progress". Events have no answer, so tell itself validates those of
   * the protocol and throws Unsaid.
   */
  async tell(event: string, payload?: unknown): Promise<void> {
    let text: string;
    try {
      const body = document(payload);
      checkEvent(event, body);
      text = message("event:" + event, body).text;
    } catch (error) {
      throw about(`event ${event}`, error);
    }
    await this.write(text);
  }

  /**
   * @internal Writes a line with one call, so that other programs that print whole lines do not
   * tear it. After a failed write nothing more is written.
   */
  write(line: string): Promise<void> {
    if (this.#torn) return Promise.reject(this.#torn);
    return new Promise((resolve, reject) => {
      this.#out.write(line + "\n", (error) => (error ? reject(this.#tear(error)) : resolve()));
    });
  }

  #tear(error: Error): Torn {
    this.#torn ??= new Torn(`writing to the orchestrator: ${error.message}`, { cause: error });
    return this.#torn;
  }

  /**
   * @internal Writes a session message. It is registered before, because a refusal may arrive
   * before the caller goes on.
   */
  writeSession(sent: Sent, line: string): Promise<void> {
    this.#sent.add(sent.messageId, sent);
    this.#lanes.keep(sent, line);
    return this.write(line);
  }

  /**
   * @internal Returns the promise that a session message to an agent has to wait for, because it
   * must not overtake messages to be sent again.
   */
  ahead(to: string): Promise<void> | undefined {
    return this.#lanes.ahead(to);
  }

  /**
   * @internal Waits until no message has to be sent again. Messages still waiting when the agent
   * exits are lost.
   */
  settled(): Promise<void> {
    return this.#lanes.settled();
  }

  /**
   * @internal Waits for the next event. Returns undefined if there will be none, or if the signal
   * is aborted.
   */
  async next(wanted: Wanted, signal?: AbortSignal): Promise<Event | undefined> {
    if (wanted !== "session") this.#looked = true;
    return this.held(async () => {
      while (!signal?.aborted) {
        const event = this.#take(wanted);
        if (event !== undefined || this.#over !== undefined) return event;
        await this.#bell.after(this.#bell.rung, signal).catch(() => {}); // aborted, which the loop sees
      }
      return undefined;
    });
  }

  /**
   * Iterates over all notices in order, including those that arrived before the call. An agent that
   * serves, and has never read notices, keeps only the latest few thousand. Ends when the signal is
   * aborted, or when the stream has ended and all notices are taken. Each notice goes to one
   * caller; work and the session roles take them, too.
   */
  async *news({ signal }: Options = {}): AsyncGenerator<Notice, void, void> {
    for (let e = await this.next("notices", signal); e; e = await this.next("notices", signal)) yield e.notice!;
  }

  /**
   * Iterates over the session messages for the agent, in order, from the first one and each once.
   * Ends as news does. Each message goes to one caller; the roles of a Session take them, too.
   */
  async *talk({ signal }: Options = {}): AsyncGenerator<Said, void, void> {
    for (let e = await this.next("session", signal); e; e = await this.next("session", signal)) {
      if (e.said) yield e.said;
    }
  }

  /**
   * Reports how much of a task is done, from 0 to 1. It does not complete the task; completeTask
   * does.
   *
   * @param output What the agent has so far: any value, up to 64 KiB of JSON. The task shows the
   *   last one until it is done.
   */
  progress(taskId: string, fraction: number, message?: string, output?: unknown): Promise<void> {
    return this.tell("progress", { taskId, progress: fraction, message: message || undefined, output: output ?? undefined });
  }

  /** Writes to the agent's log. The context is an object. */
  log(level: "info" | "warn" | "error", message: string, context?: object): Promise<void> {
    return this.tell("log", { level, message, context: context ?? undefined });
  }

  /** Reports an error. An error that is not recoverable fails the task. */
  trouble(taskId: string | undefined, error: unknown, recoverable: boolean): Promise<void> {
    return this.tell("error", { taskId: taskId || undefined, error: error instanceof Error ? error.message : String(error), recoverable });
  }

  /** Shows people a question without waiting for an answer. The context is an object. */
  wonder(question: string, context?: object): Promise<void> {
    return this.tell("question", { question, context: context ?? undefined });
  }

  // Messages about delegated work. Exchange handles them.

  /** @internal Handles a request for delegated work, or an act on it. */
  protected handed(_message: Raw, _type: string): void {}

  /** @internal Handles a response about delegated work. */
  protected responded(_response: Raw): void {}

  /** @internal Handles a refusal. Returns false if it concerns no delegated work of the agent. */
  protected declined(_id: string, _why: Refusal): boolean {
    return false;
  }

  /** @internal Handles a refusal that no caller waits for. */
  protected protested(_id: string, _why: Refused): void {}

  /** @internal Handles the request to shut down. */
  protected shuttingDown(): void {}

  /** @internal Handles the end of the stream. */
  protected closed(_over: Closed): void {}

  /** @internal Waits until all messages about delegated work are written. */
  protected async flushed(): Promise<void> {}

  /** @internal From now on, only the latest notices are kept, unless a caller asks for notices. */
  protected needsNoNotices(): void {
    this.#spare = true;
  }

  #take(wanted: Wanted): Event | undefined {
    const notice = wanted === "session" ? undefined : this.#notices.peek();
    const session = wanted === "notices" ? undefined : this.#session.peek();
    if (notice !== undefined && (session === undefined || notice.at < session.at)) return this.#notices.shift();
    return session && this.#session.shift();
  }

  #keep(queue: Queue<Event>, event: Omit<Event, "at">): void {
    queue.push({ ...event, at: this.#count++ });
    this.#bell.ring();
  }

  /** Dispatches a line by its kind. Payloads are not checked here. */
  #hear(line: string): void {
    const o = Envelope.read(line);
    if (o === undefined) return;
    const type = o.text("type");
    if (type === "response:success") {
      const [id, payload] = [o.text("correlationId"), o.document("payload")];
      if (!o.wrong) this.#calls.get(id)?.resolve(payload ?? Raw.part("{}"));
    } else if (type === "response:error") {
      const [id, why] = [o.text("correlationId"), refusal(o.document("error"))];
      if (!o.wrong) this.#refused(id, why);
    } else if (type.startsWith("notify:")) {
      const [name, id, timestamp, payload] = [type.slice("notify:".length), o.text("id"), o.text("timestamp"), o.document("payload")];
      if (!o.wrong) this.#noticed({ name, id, timestamp, payload: read(payload ?? Raw.part("{}")) } as Notice);
    } else if (o.text("message_type") !== "") {
      this.#overhear(line);
    } else if (type !== "") {
      this.handed(Raw.part(line.trim()), type);
    } else if (o.text("status") !== "") {
      this.responded(Raw.part(line.trim()));
    }
  }

  #noticed(notice: Notice): void {
    this.#keep(this.#notices, { notice });
    if (this.#spare && !this.#looked && this.#notices.length > remembered) this.#notices.shift();
    if (notice.name === "shutdown") this.shuttingDown();
  }

  /**
   * Passes a refusal to the caller whose message was refused: a request, an act on delegated work
   * or a session message. All have unique ids of one kind.
   */
  #refused(id: string, why: Refusal): void {
    const sent = this.#sent.get(id);
    if (sent === undefined) {
      const call = this.#calls.get(id);
      if (call) call.reject(new Refused(why));
      else if (!this.declined(id, why)) this.protested(id, new Refused(why));
      return;
    }
    const undelivered = new Undelivered(why);
    if (undelivered.again || sent.error !== undefined || this.#lanes.sayLater(sent, undelivered)) return;
    sent.refuse(undelivered);
    this.#keep(this.#session, { lost: sent });
  }

  /**
   * Queues a session message unless it is a duplicate. The orchestrator repeats a message if its
   * arrival is uncertain.
   */
  #overhear(line: string): void {
    const said = readSaid(line);
    if (said instanceof Error) return;
    if (this.#known.add(`${said.from_agent.agent_id}\n${said.message_id}`, true)) this.#keep(this.#session, { said });
  }

  #end(cause?: unknown): void {
    const why = cause instanceof Error ? `reading what the orchestrator says: ${cause.message}` : "the orchestrator has closed the stream";
    this.#over = new Closed(why, false, cause);
    this.#ended.abort();
    for (const call of this.#calls.values()) call.reject(this.#over);
    this.closed(this.#over);
    this.#bell.ring();
  }

  /**
   * @internal Keeps the program alive while it waits for the orchestrator. An open stdin alone does
   * not.
   */
  async held<T>(wait: () => Promise<T>): Promise<T> {
    this.#hold(1);
    try {
      return await wait();
    } finally {
      this.#hold(-1);
    }
  }

  #hold(change: number): void {
    this.#holds += change;
    const input = this.#in as Readable & { ref?(): void; unref?(): void };
    if (this.#holds > 0) input.ref?.();
    else input.unref?.();
  }
}
