import type { Stream } from "../connection/stream.js";
import { Bell, type Options, unless } from "../connection/waiting.js";
import { about } from "../wire/envelope.js";
import { Closed, Refused, Torn, Unsaid } from "../wire/errors.js";
import type { Heard } from "../wire/json.js";
import { spellAct, type TaskAct } from "../wire/taskline.js";
import { isFinal, type TaskCompleted, type TaskResponse, troubleOf } from "../wire/taskresponse.js";
import { Turns } from "./loops.js";

/** Bounds of the responses that are not taken: their number, and their characters. */
const [mostWaiting, longestWaiting] = [64, 16 << 20];

/** The reason of a refusal if another task has the request's id. */
const reused = "id_reused";

/** An act under way. It waits for its outcome. */
interface Acting {
  toTheEnd: boolean; // it waits for the final response
  resolve(response: Heard<TaskResponse>): void;
  reject(why: unknown): void;
}

/** Called around a wait. The returned function is called when the wait is over. */
export type Aside = (signal?: AbortSignal) => () => Promise<void>;

/** Work that the agent has delegated. Its methods may be called concurrently. */
export class Delegation {
  /** The id of the task. */
  readonly id: string;
  readonly #stream: Stream;
  readonly #within: AbortSignal | undefined;
  readonly #aside: Aside | undefined;
  readonly #bell = new Bell();
  readonly #turns = new Turns(1); // only one act is under way at a time
  readonly #fresh: Heard<TaskResponse>[] = []; // not taken yet
  #size = 0;
  #heard = false;
  #last: Heard<TaskResponse> | undefined;
  #lost: Refused | Closed | undefined; // why no final response will come
  #act: Acting | undefined;

  /** @internal */
  constructor(id: string, stream: Stream, within?: AbortSignal, aside?: Aside) {
    this.id = id;
    this.#stream = stream;
    this.#within = within;
    this.#aside = aside;
  }

  /**
   * Iterates over the responses up to the final one. Each response goes to one caller. Ends early
   * when the signal is aborted, when the request is refused, or when the stream has ended; wait
   * throws the reason. If responses are not taken, only the latest are kept.
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
   * Waits for the final response; takes nothing from responses. Throws a Fault if the work failed,
   * and Refused if the request was refused. Throws Cancelled if the work was cancelled, with a
   * Fault as its cause if the response has one. Goes on waiting while the work needs input. To send
   * that input, iterate over responses.
   */
  async wait({ signal = this.#within }: Options = {}): Promise<Heard<TaskCompleted>> {
    const last = await this.#find(() => this.#last, signal);
    if (last === undefined) throw about("delegate", this.#lost);
    if (last.status === "failed" || last.status === "cancelled") throw troubleOf(last);
    return last as Heard<TaskCompleted>;
  }

  /**
   * Asks how the work stands and returns the next response, which responses yields as well. If the
   * work is over, sends nothing and returns the final response.
   */
  async status({ signal = this.#within }: Options = {}): Promise<Heard<TaskResponse>> {
    return this.#say("task.status", {}, signal);
  }

  /**
   * Sends the input that the work requires, which may be any value, and returns at the next
   * response.
   */
  async update(input: unknown, { signal = this.#within }: Options = {}): Promise<void> {
    await this.#say("task.update", { input }, signal);
  }

  /** Asks to cancel the work and waits for its final response. */
  async cancel(reason = "", { signal = this.#within }: Options = {}): Promise<void> {
    await this.#say("task.cancel", { reason }, signal);
  }

  /** Sends an act when its turn comes. If the work is over, nothing is sent. */
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
      if (error instanceof Torn && this.#act === acting) this.#act = undefined; // other acts stay, to receive a late outcome
      throw error;
    }
  }

  /** Waits until find returns a value. Returns undefined if it never will. */
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

  /** @internal Keeps a response until it is taken, and passes it to the act under way. */
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
   * @internal Handles a refusal and reports whether the work goes on. It does not if the request
   * itself was refused: its id belongs to another task, or no act is under way and no response has
   * arrived.
   */
  decline(why: Refused): boolean {
    const request = why.reason === reused || (this.#act === undefined && !this.#heard);
    if (request) this.lose(why);
    else this.#acted((act) => act.reject(why));
    return !request;
  }

  /** @internal Records why the final response will not come. */
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
