import { Linked, type Options, unless } from "../connection/waiting.js";
import { blank, timestamp } from "../wire/envelope.js";
import { type Refused, Unsaid } from "../wire/errors.js";
import { type Heard, Raw, read } from "../wire/json.js";
import type { DelegateTask, TaskRequest } from "../wire/taskrequest.js";
import { type Artifact, type ResponseStatus, spellResponse, type TaskOption } from "../wire/taskresponse.js";
import type { Delegation } from "./delegation.js";
import type { Exchange } from "./exchange.js";
import { Turns } from "./loops.js";

/** The open question of a job. */
interface Question {
  asks: { message: string; input?: object | undefined };
  answer(input: Raw): void;
  refuse(why: Refused): void;
}

/**
 * A job that was delegated to the agent, for the skill that does it. Its functions may be
 * destructured: ({ payload, progress }) => …
 */
export class Delegated {
  readonly id: string;
  readonly type: string;
  /** The payload, with its text as raw. */
  readonly payload: TaskRequest["payload"];
  /** The whole request, as it came. */
  readonly request: Heard<TaskRequest>;
  readonly conn: Exchange;
  /** @internal How often its question was refused for the rate limit. */
  tries = 0;
  /** @internal Settled when nothing is done for the job any more. */
  gone: Promise<void> = Promise.resolve();
  readonly #agent: string | undefined;
  readonly #places: Places;
  readonly #stop: Linked;
  readonly #asking = new Turns(1);
  readonly #artifacts: Artifact[] = [];
  #started: Date | undefined;
  #question: Question | undefined;
  #over = false;
  #place: Place | undefined; // that it has, or waits for
  #returned = false;
  #waiting = 0; // number of waits that have given up the place

  /** @internal */
  constructor(conn: Exchange, request: Heard<TaskRequest>, agent: string | undefined, places: Places, within: AbortSignal) {
    this.conn = conn;
    this.request = request;
    this.id = request.id;
    this.type = request.type;
    this.payload = request.payload;
    this.#agent = agent;
    this.#places = places;
    this.#stop = new Linked(within);
  }

  /**
   * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to serve. The
   * skill should then return soon.
   */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Reports that the job is running, with a message if there is one. Sends nothing while the job
   * waits for input.
   */
  readonly progress = async (message?: string): Promise<void> => {
    this.#goesOn();
    if (!this.#question) await this.conn.write(this.#response("in_progress", blank(message) ? {} : { message }));
  };

  /**
   * Asks the delegating agent for input and waits for it. The answer may be any value, whatever the
   * options are. Questions are asked one at a time. When the signal is aborted, ask reports that
   * the job goes on without the input. Input that arrives before that report is returned all the
   * same.
   */
  readonly ask = async <T = any>(question: string, options?: (string | Partial<TaskOption>)[], { signal = this.signal }: Options = {}): Promise<Heard<T>> =>
    read<T>(await this.askRaw(question, options, { signal }));

  /** Like ask, but returns the undecoded answer. */
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

  /** Keeps an artifact for the final response. */
  readonly artifact = (artifact: Artifact): void => {
    this.#goesOn();
    const kept = { ...artifact };
    spellResponse({ id: this.id, status: "in_progress", artifacts: [kept] });
    this.#artifacts.push(kept);
  };

  /**
   * Delegates a part of the job to another agent, as Conn.delegate does. The request takes over the
   * job's trace, baggage, conversation, user and routing chain. Waits for the part end with the
   * job's signal, unless they have another one.
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

  /** @internal Whether the final response is sent. */
  get over(): boolean {
    return this.#over;
  }

  /**
   * @internal Waits for the previous job of the same task, because both would change the same
   * things, and for a place. Returns false if the job does not begin.
   */
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

  /** @internal Ends the work on the job and gives up its place. */
  leave(): void {
    this.#returned = true;
    this.#makeRoom();
    this.#stop.letGo();
  }

  /** @internal */
  stop(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /**
   * @internal Passes input to the job's open question, if there is one, and sends the new status.
   */
  async answer(input: Raw): Promise<void> {
    this.#question?.answer(input);
    this.#question = undefined;
    await this.conn.write(this.standing());
  }

  /** @internal Whether the job waits for input. */
  get asks(): boolean {
    return this.#question !== undefined;
  }

  /** @internal Refuses the job's open question. Returns false if none is open. */
  refuse(why: Refused): boolean {
    if (!this.asks) return false;
    this.#question?.refuse(why);
    this.#question = undefined;
    return true;
  }

  /** @internal Encodes the current status of the job. */
  standing(): string {
    if (this.#question) return this.#response("input_required", this.#question.asks);
    return this.#response(this.#started ? "in_progress" : "pending");
  }

  /** @internal Encodes the final response, after which nothing is sent. */
  last(status: ResponseStatus, what: object, artifacts: boolean): string {
    const now = Math.max(Date.now(), this.#started?.getTime() ?? 0);
    this.#started ??= new Date(now);
    const took = { completedAt: timestamp(new Date(now)), duration_ms: now - this.#started.getTime() };
    const line = this.#response(status, { ...what, ...(artifacts && this.#artifacts.length > 0 && { artifacts: this.#artifacts }) }, took);
    this.#over = true;
    return line;
  }

  /**
   * @internal Gives up the job's place while it waits. The returned function waits for a place
   * again; it returns without one if the job has to stop or the signal is aborted.
   */
  aside(signal: AbortSignal): () => Promise<void> {
    this.#waiting++;
    this.#makeRoom();
    return async () => {
      this.#waiting--;
      if (this.#returned || this.#waiting > 0) return; // it needs no place
      this.#place ??= this.#places.join(true); // concurrent waits share one place
      await unless(unless(this.#place.settled, this.signal), signal).catch(() => {});
    };
  }

  /** Gives up the job's place, or its position in line for one. */
  #makeRoom(): void {
    if (this.#place) this.#places.leave(this.#place);
    this.#place = undefined;
  }

  #goesOn(): void {
    if (!this.#over) return;
    this.signal.throwIfAborted();
    throw new Unsaid(`job ${this.id} is over`);
  }

  /** Reports that the job goes on without the input, if it has not come. */
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

/** Returns the members of a question. */
function asking(question: string, options?: (string | Partial<TaskOption>)[]): Question["asks"] {
  if (blank(question)) throw new Unsaid("a question needs words");
  const all = (options ?? []).map((o) => (typeof o === "string" ? { label: o, value: o } : { label: o.label || o.value, value: o.value }));
  const values = new Set(all.map((o) => o.value));
  if (values.size < all.length || [...values].some(blank)) throw new Unsaid("the options of a question must differ, and say something");
  return { message: question, ...(all.length > 0 && { input: { question, options: all } }) };
}

/**
 * Places for running jobs, given out in the order of requests. A waiting job gives up its place;
 * otherwise two agents that wait for each other would deadlock. A job that continues goes before
 * jobs that have not begun.
 */
export class Places {
  #free: number;
  readonly #back: Place[] = []; // of jobs that have finished waiting
  readonly #line: Place[] = []; // of jobs that have not begun

  /** Without a capacity there is no limit. */
  constructor(capacity: number | undefined) {
    this.#free = capacity !== undefined && capacity >= 1 ? Math.floor(capacity) : Infinity;
  }

  /** Takes a place, or joins a line for one. Jobs that get their place back go first. */
  join(back = false): Place {
    const place = new Place();
    if (this.#free > 0) {
      this.#free--;
      place.settle();
    } else {
      (back ? this.#back : this.#line).push(place);
    }
    return place;
  }

  /** Passes a place to the next in line, or leaves the line. */
  leave(place: Place): void {
    for (const line of [this.#back, this.#line]) {
      const at = line.indexOf(place);
      if (at < 0) continue;
      line.splice(at, 1);
      return place.settle();
    }
    const next = this.#back.shift() ?? this.#line.shift();
    if (next) next.settle();
    else this.#free++;
  }
}

/** A place for a running job, or a position in line for one. */
export class Place {
  /** @internal */
  settle!: () => void;
  /** Settled when the place is granted or given up. */
  readonly settled = new Promise<void>((settle) => (this.settle = settle));
}
