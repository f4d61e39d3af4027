import { about } from "./envelope.js";
import { Closed, Refused, Torn, Unsaid } from "./errors.js";
import type { Heard } from "./json.js";
import type { Stream } from "./stream.js";
import { spellAct, type TaskAct } from "./taskact.js";
import { isFinal, type TaskCompleted, type TaskResponse, troubleOf } from "./taskresponse.js";
import { Bell, type Options, Turns, unless } from "./waiting.js";

/** How many responses wait to be taken, and how long they may be, in characters. */
const [mostWaiting, longestWaiting] = [64, 16 << 20];

/** Why a request is refused whose id another task has. */
const reused = "id_reused";

/** What was said of the work, and waits for what comes of it. */
interface Acting {
  toTheEnd: boolean; // it waits for the final response
  resolve(response: Heard<TaskResponse>): void;
  reject(why: unknown): void;
}

/** Called around waiting. What it returns is called when the waiting is over. */
export type Aside = (signal?: AbortSignal) => () => Promise<void>;

/** Work that the agent has delegated. Its methods may be called at the same time. */
export class Delegation {
  /** Of the task. */
  readonly id: string;
  readonly #stream: Stream;
  readonly #within: AbortSignal | undefined;
  readonly #aside: Aside | undefined;
  readonly #bell = new Bell();
  readonly #turns = new Turns(1); // one thing is said of it at a time
  readonly #fresh: Heard<TaskResponse>[] = []; // not taken yet
  #size = 0;
  #heard = false;
  #last: Heard<TaskResponse> | undefined;
  #lost: Refused | Closed | undefined; // why the last one will not come
  #act: Acting | undefined;

  /** @internal */
  constructor(id: string, stream: Stream, within?: AbortSignal, aside?: Aside) {
    this.id = id;
    this.#stream = stream;
    this.#within = within;
    this.#aside = aside;
  }

  /**
   * What is said of the work, one after the other up to the final response, each to one
   * taker. It ends earlier when the signal is aborted, when the request is refused and when
   * the stream has ended: wait says why. Of what is not taken the latest are kept.
   */
  async *responses({ signal = this.#within }: Options = {}): AsyncGenerator<Heard<TaskResponse>, void, void> {
    for (;;) {
      const next = await this.#find(() => this.#take(), signal).catch((error: unknown) => {
        if (!signal?.aborted) throw error;
      });
      if (!next) return;
      yield next;
    }
  }

  /**
   * Waits for the result, and takes nothing from responses. Work that failed throws a Fault,
   * work that was cancelled Cancelled, with a Fault as its cause if a reason was given, and
   * a request that was refused Refused. While the work waits for input, so does this: who
   * wants to bring it some takes responses.
   */
  async wait({ signal = this.#within }: Options = {}): Promise<Heard<TaskCompleted>> {
    const last = await this.#find(() => this.#last, signal);
    if (last === undefined) throw about("delegate", this.#lost);
    if (last.status === "failed" || last.status === "cancelled") throw troubleOf(last);
    return last as Heard<TaskCompleted>;
  }

  /** Asks how the work stands, and returns the next response, whatever that is: responses has it as well. Once it is over that is the final one, and nothing is asked. */
  async status({ signal = this.#within }: Options = {}): Promise<Heard<TaskResponse>> {
    return this.#say("task.status", {}, signal);
  }

  /** Brings the work the input that it needs, which may be any value. It is over when something is said of the work after that. */
  async update(input: unknown, { signal = this.#within }: Options = {}): Promise<void> {
    await this.#say("task.update", { input }, signal);
  }

  /** Asks to give the work up, and waits until it is over, whatever it came to. */
  async cancel(reason = "", { signal = this.#within }: Options = {}): Promise<void> {
    await this.#say("task.cancel", { reason }, signal);
  }

  /** Says something when it is its turn. Of work that is over nothing is said. */
  async #say(type: TaskAct["type"], what: { input?: unknown; reason?: string }, signal?: AbortSignal): Promise<Heard<TaskResponse>> {
    let done: (() => void) | undefined;
    try {
      const line = spellAct(this.id, type, what);
      done = await this.#turns.take(signal);
      if (this.#last === undefined) return await this.#saying(type, line, signal);
      if (type === "task.update") throw new Unsaid(`task ${this.id} is over`);
      return this.#last;
    } catch (error) {
      throw about(type, error);
    } finally {
      done?.();
    }
  }

  async #saying(type: string, line: string, signal?: AbortSignal): Promise<Heard<TaskResponse>> {
    const lost = this.#lost;
    if (lost instanceof Closed) throw new Closed(`${type}: not asked: the orchestrator has closed the stream`, false, lost.cause);
    if (lost !== undefined) throw lost;
    let acting: Acting | undefined;
    const come = new Promise<Heard<TaskResponse>>((resolve, reject) => {
      this.#act = acting = { toTheEnd: type === "task.cancel", resolve, reject };
    });
    try {
      return (await this.#stream.held(() => Promise.all([unless(come, signal), this.#stream.write(line)])))[0];
    } catch (error) {
      if (error instanceof Torn && this.#act === acting) this.#act = undefined; // what comes of one that was given up is not taken for something else
      throw error;
    }
  }

  /** Waits until something is found; undefined when it never will be. */
  async #find<T>(find: () => T | undefined, signal?: AbortSignal): Promise<T | undefined> {
    const over = () => this.#last !== undefined || this.#lost !== undefined;
    let found = find();
    if (found !== undefined || over()) return found;
    const back = this.#aside?.(signal);
    try {
      await this.#stream.held(async () => {
        while (found === undefined && !over()) {
          await this.#bell.after(this.#bell.rung, signal);
          found = find();
        }
      });
      return found;
    } finally {
      await back?.();
    }
  }

  #take(): Heard<TaskResponse> | undefined {
    const oldest = this.#fresh.shift();
    if (oldest) this.#size -= oldest.raw.text.length;
    return oldest;
  }

  /** @internal Keeps a response for the caller that takes it, and tells the caller that has said something. */
  hear(response: Heard<TaskResponse>): void {
    const final = isFinal(response);
    this.#heard = true;
    if (final) this.#last = response;
    this.#fresh.push(response);
    this.#size += response.raw.text.length;
    while (this.#fresh.length > 1 && (this.#fresh.length > mostWaiting || this.#size > longestWaiting)) this.#take();
    if (final || this.#act?.toTheEnd === false) this.#acted((act) => act.resolve(response));
    this.#bell.ring();
  }

  /**
   * @internal Tells the caller that has said something that it was refused, and says whether the work
   * goes on. When none has, and nothing was heard yet, it is the request that was refused.
   */
  decline(why: Refused): boolean {
    const request = why.reason === reused || (this.#act === undefined && !this.#heard);
    if (request) this.lose(why);
    else this.#acted((act) => act.reject(why));
    return !request;
  }

  /** @internal Says why the final response will not come. */
  lose(why: Refused | Closed): void {
    this.#lost = why;
    this.#acted((act) => act.reject(why));
    this.#bell.ring();
  }

  #acted(tell: (act: Acting) => void): void {
    const act = this.#act;
    this.#act = undefined;
    if (act) tell(act);
  }
}
