import type { Readable, Writable } from "node:stream";
import { type Asked, Asks } from "./asks.js";
import { Delegations } from "./delegations.js";
import { about, checkEvent, document, Envelope, message, refusal } from "./envelope.js";
import { Closed, type Refusal, Refused, Reason, refusedFor, Torn } from "./errors.js";
import { Finals } from "./finals.js";
import { type Heard, Raw, read } from "./json.js";
import { Lanes } from "./lanes.js";
import { Lines } from "./lines.js";
import type { Notice } from "./notices.js";
import { readSaid, type Said } from "./said.js";
import { Sent, Undelivered } from "./sent.js";
import { Bell, type Options, Queue, Recent, remembered, rest, shortPause, sleep, unless } from "./waiting.js";

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
 * The wait before a request over the rate limit is repeated, in milliseconds. The orchestrator
 * counts requests per second.
 */
const pause = 1000;

/**
 * The two streams between an agent and its orchestrator. Answers go to the requests that wait for
 * them; unsolicited messages are queued until they are taken.
 *
 * Reading never blocks. The queues have a bound in two cases: for the notices of an agent that
 * serves and has never read notices, and for requests to an agent that does not serve.
 */
export class Stream {
  /** @internal The agent's delegations. */
  readonly delegations = new Delegations(this);
  /** @internal The final responses of the agent. */
  readonly finals = new Finals();
  readonly #in: Readable;
  readonly #out: Writable;
  readonly #calls = new Map<string, Call>(); // by the id of the request
  readonly #notices = new Queue<Event>();
  readonly #session = new Queue<Event>();
  readonly #asks = new Asks((dropped) => (this.#telling = this.#tellDropped(dropped))); // for the function that serves
  readonly #known = new Recent<true>(); // session messages received
  readonly #sent = new Recent<Sent>(); // session messages sent
  readonly #bell = new Bell();
  readonly #ended = new AbortController();
  readonly #lanes = new Lanes((line) => this.write(line), this.#ended.signal);
  #count = 0; // of events
  #served = false; // serve was called
  #telling: Promise<void> | undefined; // sends the number of dropped items
  #looked = false; // a caller has asked for notices
  #holds = 0; // calls that wait for the orchestrator
  #over: Closed | undefined;
  #torn: Torn | undefined;

  constructor(input: Readable, output: Writable) {
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
    await this.#telling;
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
   * operation may have been carried out. If the stream ends first, asked of Closed reports whether
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
      const over = this.over;
      if (over === undefined || error !== over) throw error;
      throw new Closed(`${operation}: asked, but there will be no answer: ${over.message}`, true, over.cause);
    } finally {
      this.#calls.delete(id);
    }
  }

  /**
   * @internal Like ask, for requests that must not be lost to the rate limit. A request over the
   * limit has had no effect, so it is repeated.
   */
  async askPatiently<T>(operation: string, payload?: unknown, signal?: AbortSignal): Promise<Heard<T>> {
    for (;;) {
      try {
        return await this.ask<T>(operation, payload, { signal });
      } catch (error) {
        if (!refusedFor(Reason.Limited, error)) throw error;
        await sleep(pause, signal);
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

  /** @internal Counts the calls of serve: change is 1 at the start of one, -1 at its end. */
  serves(change: 1 | -1): void {
    this.#asks.serving += change;
    this.#served = true;
  }

  /** @internal Waits for the next item asked of the agent. Returns undefined as next does. */
  async nextAsked(signal: AbortSignal): Promise<Asked | undefined> {
    return this.held(async () => {
      while (!signal.aborted) {
        const asked = this.#asks.shift();
        if (asked !== undefined || this.#over !== undefined) return asked;
        await this.#bell.after(this.#bell.rung, signal).catch(() => {}); // aborted, which the loop sees
      }
      return undefined;
    });
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
      this.#asks.hear(Raw.part(line.trim()), type);
      this.#bell.ring();
    } else if (o.text("status") !== "") {
      this.delegations.hear(Raw.part(line.trim()));
    }
  }

  #noticed(notice: Notice): void {
    this.#keep(this.#notices, { notice });
    if (this.#served && !this.#looked && this.#notices.length > remembered) this.#notices.shift();
    if (notice.name === "shutdown") this.#asks.push({ leave: true });
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
      else if (!this.delegations.decline(id, why) && this.#asks.serving > 0) this.#protest(id, new Refused(why));
      return;
    }
    const undelivered = new Undelivered(why);
    if (undelivered.again || sent.error !== undefined || this.#lanes.sayLater(sent, undelivered)) return;
    sent.refuse(undelivered);
    this.#keep(this.#session, { lost: sent });
  }

  /** Queues a refusal that no caller waits for. It may be about a response. */
  #protest(id: string, refused: Refused): void {
    this.#asks.push({ refused, id });
    this.#bell.ring();
  }

  /** Logs, after a pause, how many items were dropped. */
  async #tellDropped(dropped: () => number): Promise<void> {
    await rest(shortPause, this.#ended.signal);
    const message = `${dropped()} of the messages that ask this agent for work were dropped: the agent does not serve`;
    await this.tell("log", { level: "warn", message }).catch(() => {}); // the broken stream shows in the next write
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
    this.delegations.end(this.#over);
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
