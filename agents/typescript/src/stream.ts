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

/** What comes without having been asked for: one of these. At is its place among all. */
export interface Event {
  at: number;
  notice?: Notice;
  said?: Said;
  lost?: Sent;
}

/** Which events are wanted. */
export type Wanted = "notices" | "session" | "all";

interface Call {
  resolve(answer: Raw): void;
  reject(why: unknown): void;
}

/** How long one waits who has asked too much, in milliseconds: the orchestrator counts by the second. */
const pause = 1000;

/**
 * The two streams between an agent and its orchestrator: requests find their answers,
 * and what comes unasked waits in order until it is taken.
 *
 * Reading waits for nothing: what is not taken is kept, without a bound but for the notices of an
 * agent that serves and has not looked for any so far, and for what is asked of one that does not serve.
 */
export class Stream {
  /** @internal What the agent has delegated. */
  readonly delegations = new Delegations(this);
  /** @internal What came of the jobs of the agent. */
  readonly finals = new Finals();
  readonly #in: Readable;
  readonly #out: Writable;
  readonly #calls = new Map<string, Call>(); // by the id of the request
  readonly #notices = new Queue<Event>();
  readonly #session = new Queue<Event>();
  readonly #asks = new Asks((dropped) => (this.#telling = this.#tellDropped(dropped))); // of the agent, for the function that serves
  readonly #known = new Recent<true>(); // the session messages that were heard
  readonly #sent = new Recent<Sent>(); // those that the agent said
  readonly #bell = new Bell();
  readonly #ended = new AbortController();
  readonly #lanes = new Lanes((line) => this.write(line), this.#ended.signal);
  #count = 0; // of events
  #served = false; // a function has served
  #telling: Promise<void> | undefined; // that something was dropped
  #looked = false; // a caller has, for notices
  #holds = 0; // who waits for the orchestrator
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

  /** Waits until the orchestrator will say nothing more, and until what has to be said again is said. It fails when the stream could not be read to its end. */
  async wait(options: Options = {}): Promise<void> {
    await this.held(async () => {
      while (this.#over === undefined) await this.#bell.after(this.#bell.rung, options.signal);
    });
    await this.#lanes.settled();
    await this.#telling;
    if (this.#over?.cause !== undefined) throw this.#over;
  }

  /** @internal Is aborted when there is nothing more to hear. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** @internal Why there will be nothing more to hear; undefined as long as there may be. */
  get over(): Closed | undefined {
    return this.#over;
  }

  /**
   * Asks for an operation by its name, such as "get-task", and waits for its answer:
   * an object, with its text as its raw. The payload must be an object; none is an
   * empty one.
   *
   * A request that is refused throws Refused. When the signal is aborted first, the
   * orchestrator may have done what was asked. When the stream ends first, Closed says
   * whether it was asked.
   */
  async ask<T = { [key: string]: unknown }>(operation: string, payload?: unknown, options: Options = {}): Promise<Heard<T>> {
    return read<T>(await this.askRaw(operation, payload, options));
  }

  /** Is ask for those who want the answer as its text alone. */
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

  /** @internal Is ask for what must not get lost because the agent has said too much of other things: it is asked again. */
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
   * @internal Asks for what must be heard even when no answer comes any more: after the end of the stream the
   * orchestrator still listens, for as long as it grants the agent.
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
   * Tells of an event by its name, such as "progress". There is no answer: what is wrong
   * with an event of the protocol is refused here, as Unsaid.
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

  /** @internal Writes a line with one call, so that programs that print whole lines do not tear it. After a write that failed nothing is written. */
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

  /** @internal Writes a message of a session. It is remembered before, because it may be refused before its caller goes on. */
  writeSession(sent: Sent, line: string): Promise<void> {
    this.#sent.add(sent.messageId, sent);
    this.#lanes.keep(sent, line);
    return this.write(line);
  }

  /** @internal What a message of a session for an agent has to wait for: those that are said again must not be overtaken. */
  ahead(to: string): Promise<void> | undefined {
    return this.#lanes.ahead(to);
  }

  /** @internal Waits until nothing is to be said again: an agent that goes before takes it along. */
  settled(): Promise<void> {
    return this.#lanes.settled();
  }

  /** @internal Waits for the next event; undefined when there will be none, or the signal is aborted. */
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

  /** @internal Notes that a function begins to serve, or ends. */
  serves(change: 1 | -1): void {
    this.#asks.serving += change;
    this.#served = true;
  }

  /** @internal Waits for what is asked of the agent next; undefined as for next. */
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

  /** Takes a line for what it is. What stands in a payload is not checked here. */
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

  /** A no is for a request, for delegated work, or for a message of a session: no two have the same id. */
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

  /** What no caller waits for may be about a response. */
  #protest(id: string, refused: Refused): void {
    this.#asks.push({ refused, id });
    this.#bell.ring();
  }

  /** Tells after a while how much was dropped by then of what was asked. */
  async #tellDropped(dropped: () => number): Promise<void> {
    await rest(shortPause, this.#ended.signal);
    const message = `${dropped()} of the messages that ask this agent for work were dropped: the agent does not serve`;
    await this.tell("log", { level: "warn", message }).catch(() => {}); // a broken stream shows in what is said next
  }

  /** A message of a session is delivered again when it is not certain that it arrived. */
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
   * @internal A program lives as long as a promise waits for the orchestrator, and not only
   * because its stdin is open.
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
