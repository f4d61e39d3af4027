import type { Conn } from "./conn.js";
import type { Delegation } from "./delegation.js";
import { blank, timestamp } from "./envelope.js";
import { type Refused, Unsaid } from "./errors.js";
import { type Heard, Raw, read } from "./json.js";
import type { Place, Places } from "./places.js";
import type { DelegateTask, TaskRequest } from "./taskrequest.js";
import { type Artifact, type ResponseStatus, spellResponse, type TaskOption } from "./taskresponse.js";
import { Linked, type Options, Turns, unless } from "./waiting.js";

/** What a job asks. */
interface Question {
  asks: { message: string; input?: object | undefined };
  answer(input: Raw): void;
  refuse(why: Refused): void;
}

/**
 * A job that was delegated to the agent, for the function that does it. What it can do may be taken out
 * of it: ({ payload, progress }) => …
 */
export class Delegated {
  readonly id: string;
  readonly type: string;
  /** With its text as its raw. */
  readonly payload: TaskRequest["payload"];
  /** All of what is asked, as it came. */
  readonly request: Heard<TaskRequest>;
  readonly conn: Conn;
  /** @internal How often its question was refused because there was too much. */
  tries = 0;
  /** @internal Is over when nothing is done for it any more. */
  gone: Promise<void> = Promise.resolve();
  readonly #agent: string | undefined;
  readonly #places: Places;
  readonly #stop: Linked;
  readonly #asking = new Turns(1);
  readonly #artifacts: Artifact[] = [];
  #started: Date | undefined;
  #question: Question | undefined;
  #over = false;
  #place: Place | undefined; // which it has, or waits for
  #returned = false;
  #waiting = 0; // for something, without a place

  /** @internal */
  constructor(conn: Conn, request: Heard<TaskRequest>, agent: string | undefined, places: Places, within: AbortSignal) {
    this.conn = conn;
    this.request = request;
    this.id = request.id;
    this.type = request.type;
    this.payload = request.payload;
    this.#agent = agent;
    this.#places = places;
    this.#stop = new Linked(within);
  }

  /** Is aborted with Cancelled, Shutdown or Closed, or as the caller of serve says. Then the work should end soon. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Says that the job is at work, and in words how far it is, if there are any. While it asks for input nothing is said. */
  readonly progress = async (message?: string): Promise<void> => {
    this.#goesOn();
    if (!this.#question) await this.conn.write(this.#response("in_progress", blank(message) ? {} : { message }));
  };

  /**
   * Asks the agent that wants the job done for something that is needed to go on, and waits for it,
   * which may take as long as people do. The answer may be any value, whatever the options
   * are; there may be none. One question is asked at a time. When the signal is aborted it is
   * said that the job goes on without; input that comes before that is returned all the same.
   */
  readonly ask = async <T = any>(question: string, options?: (string | Partial<TaskOption>)[], { signal = this.signal }: Options = {}): Promise<Heard<T>> =>
    read<T>(await this.askRaw(question, options, { signal }));

  /** Is ask for those who want the answer as its text alone. */
  readonly askRaw = async (question: string, options?: (string | Partial<TaskOption>)[], { signal = this.signal }: Options = {}): Promise<Raw> => {
    const asks = asking(question, options);
    const done = await this.#asking.take(signal);
    try {
      this.#goesOn();
      const line = this.#response("input_required", asks);
      const came: { input?: Raw } = {};
      const answer = new Promise<Raw>((resolve, refuse) => {
        this.#question = { asks, refuse, answer: (given) => resolve((came.input = given)) };
      });
      const back = this.aside(signal);
      try {
        return (await this.conn.held(() => Promise.all([unless(answer, signal), this.conn.write(line)])))[0];
      } catch (error) {
        if (came.input === undefined || !signal.aborted) throw error;
        return came.input;
      } finally {
        await this.#withdraw().finally(back);
      }
    } finally {
      done();
    }
  };

  /** Keeps something that was made, for the final response. */
  readonly artifact = (artifact: Artifact): void => {
    this.#goesOn();
    const kept = { ...artifact };
    spellResponse({ id: this.id, status: "in_progress", artifacts: [kept] });
    this.#artifacts.push(kept);
  };

  /**
   * Asks another agent for a part of the job, as Conn.delegate does. The request belongs to the
   * job: it is in the same trace, with the same baggage, in the same conversation, for the same
   * user, and says who has had the job in hand. A caller that waits for it waits no longer than the
   * signal of the job allows, unless there is another.
   */
  readonly delegate = async (task: DelegateTask, { signal = this.signal }: Options = {}): Promise<Delegation> => {
    const { conversationId, user } = this.request.context;
    const { delegationChain } = this.request.routing;
    const { traceId, spanId, baggage } = this.request.observability;
    const part: DelegateTask = {
      ...task,
      context: { ...task.context, ...(conversationId && { conversationId }), ...(user && { user }), parentTaskId: this.id },
      routing: { ...task.routing, delegationChain: delegationChain ?? [] },
      observability: { ...task.observability, ...(traceId && { traceId }), ...(spanId && { spanId }), ...(baggage && { baggage: baggage.raw }) },
    };
    return this.conn.delegations.delegate(part, signal, this.signal, (within = this.signal) => this.aside(within));
  };

  /** @internal A final response was said. */
  get over(): boolean {
    return this.#over;
  }

  /** @internal Waits until it is its turn, after the job before it of the same task: two of them would work at the same things. False says that it does not begin. */
  async begin(before: Promise<void> | undefined): Promise<boolean> {
    try {
      if (before) await unless(before, this.signal);
      this.#place = this.#places.join();
      await unless(this.#place.settled, this.signal);
    } catch {} // aborted
    if (this.signal.aborted) return false;
    this.#started = new Date();
    return true;
  }

  /** @internal Nothing is done of it any more. */
  leave(): void {
    this.#returned = true;
    this.#makeRoom();
    this.#stop.letGo();
  }

  /** @internal */
  stop(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** @internal Gives the job its input, if it asks for some, and says that it goes on. */
  async answer(input: Raw): Promise<void> {
    this.#question?.answer(input);
    this.#question = undefined;
    await this.conn.write(this.standing());
  }

  /** @internal It waits for input. */
  get asks(): boolean {
    return this.#question !== undefined;
  }

  /** @internal Tells the job that its question was refused; false when it asks nothing. */
  refuse(why: Refused): boolean {
    if (!this.asks) return false;
    this.#question?.refuse(why);
    this.#question = undefined;
    return true;
  }

  /** @internal Spells how it stands. */
  standing(): string {
    if (this.#question) return this.#response("input_required", this.#question.asks);
    return this.#response(this.#started ? "in_progress" : "pending");
  }

  /** @internal Spells the final response, after which nothing is said. */
  last(status: ResponseStatus, what: object, artifacts: boolean): string {
    const now = Math.max(Date.now(), this.#started?.getTime() ?? 0);
    this.#started ??= new Date(now);
    const took = { completedAt: timestamp(new Date(now)), duration_ms: now - this.#started.getTime() };
    const line = this.#response(status, { ...what, ...(artifacts && this.#artifacts.length > 0 && { artifacts: this.#artifacts }) }, took);
    this.#over = true;
    return line;
  }

  /** @internal Lets another one have the place of the job, which waits. What it returns waits for a place, unless the job is to end, or the signal is aborted: then it goes on as it is. */
  aside(signal: AbortSignal): () => Promise<void> {
    this.#waiting++;
    this.#makeRoom();
    return async () => {
      this.#waiting--;
      if (this.#returned || this.#waiting > 0) return; // it needs none
      this.#place ??= this.#places.join(true); // one for all that it has waited for, which may come at once
      await unless(unless(this.#place.settled, this.signal), signal).catch(() => {});
    };
  }

  /** Gives the place of the job away, or the one that it waits for. */
  #makeRoom(): void {
    if (this.#place) this.#places.leave(this.#place);
    this.#place = undefined;
  }

  #goesOn(): void {
    if (!this.#over) return;
    this.signal.throwIfAborted();
    throw new Unsaid(`job ${this.id} is over`);
  }

  /** Goes on without the input that it has asked for, if it has not come. */
  async #withdraw(): Promise<void> {
    if (!this.#question) return;
    this.#question = undefined;
    if (!this.#over && !this.signal.aborted) await this.conn.write(this.standing());
  }

  #response(status: ResponseStatus, what: object = {}, took: object = {}): string {
    const metadata = { startedAt: this.#started && timestamp(this.#started), ...took, agent: this.#agent };
    const said = Object.values(metadata).some((member) => member !== undefined);
    return spellResponse({ id: this.id, status, ...what, ...(said && { metadata }) });
  }
}

/** How a question is said. */
function asking(question: string, options?: (string | Partial<TaskOption>)[]): Question["asks"] {
  if (blank(question)) throw new Unsaid("a question needs words");
  const all = (options ?? []).map((o) => (typeof o === "string" ? { label: o, value: o } : { label: o.label || o.value, value: o.value }));
  const values = new Set(all.map((o) => o.value));
  if (values.size < all.length || [...values].some(blank)) throw new Unsaid("the options of a question must differ, and say something");
  return { message: question, ...(all.length > 0 && { input: { question, options: all } }) };
}
