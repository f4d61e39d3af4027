import { Stream } from "../connection/stream.js";
import { Bell, type Options, remembered, rest, shortPause } from "../connection/waiting.js";
import type { Closed, Refusal, Refused } from "../wire/errors.js";
import type { Raw } from "../wire/json.js";
import type { DelegateTask } from "../wire/taskrequest.js";
import { type Asked, Asks } from "./asks.js";
import type { Delegation } from "./delegation.js";
import { Delegations } from "./delegations.js";

/** A final response. */
export interface FinalWord {
  line: string;
  /** A repeated request is done again. */
  again: boolean;
  /** It replaced a final response that was refused. */
  instead?: true;
  /** How often it was refused for the rate limit. */
  tries: number;
}

/** Bounds the total length of the lines, in characters. The latest one is always kept. */
const longest = 16 << 20;

/**
 * The latest final responses that a connection has sent. Older ones are dropped: the orchestrator
 * knows the outcome of their tasks.
 */
export class Finals {
  readonly #byTask = new Map<string, FinalWord>(); // the oldest are dropped first
  #size = 0;

  /** Adds a final response. It replaces an older one of the same task. */
  add(task: string, word: FinalWord): void {
    this.#forget(task);
    this.#byTask.set(task, word);
    this.#size += word.line.length;
    for (const oldest of this.#byTask.keys()) {
      if (this.#byTask.size === 1 || (this.#size <= longest && this.#byTask.size <= remembered)) break;
      this.#forget(oldest);
    }
  }

  get(task: string): FinalWord | undefined {
    return this.#byTask.get(task);
  }

  #forget(task: string): void {
    this.#size -= this.#byTask.get(task)?.line.length ?? 0;
    this.#byTask.delete(task);
  }
}

/**
 * A connection that exchanges delegated work. It holds the work that the agent has delegated, the
 * work that it is asked for, and the final responses that it has sent. Requests to an agent that
 * does not serve are queued up to a bound.
 */
export class Exchange extends Stream {
  /** @internal The agent's delegations. */
  readonly delegations = new Delegations(this);
  /** @internal The final responses of the agent. */
  readonly finals = new Finals();
  readonly #asks = new Asks((dropped) => (this.#telling = this.#tellDropped(dropped))); // for the function that serves
  readonly #asked = new Bell();
  #telling: Promise<void> | undefined; // sends the number of dropped items

  /**
   * Asks another agent for work: the target of its routing, or any agent that offers the type.
   * Returns when the request is written. The Delegation reports what follows, even that the request
   * was refused.
   */
  delegate(task: DelegateTask, { signal }: Options = {}): Promise<Delegation> {
    return this.delegations.delegate(task, signal);
  }

  /** @internal Counts the calls of serve: change is 1 at the start of one, -1 at its end. */
  serves(change: 1 | -1): void {
    this.#asks.serving += change;
    this.needsNoNotices();
  }

  /** @internal Waits for the next item asked of the agent. Returns undefined as next does. */
  async nextAsked(signal: AbortSignal): Promise<Asked | undefined> {
    return this.held(async () => {
      while (!signal.aborted) {
        const asked = this.#asks.shift();
        if (asked !== undefined || this.over !== undefined) return asked;
        await this.#asked.after(this.#asked.rung, signal).catch(() => {}); // aborted, which the loop sees
      }
      return undefined;
    });
  }

  /** @internal */
  protected override handed(message: Raw, type: string): void {
    this.#asks.hear(message, type);
    this.#asked.ring();
  }

  /** @internal */
  protected override responded(response: Raw): void {
    this.delegations.hear(response);
  }

  /** @internal */
  protected override declined(id: string, why: Refusal): boolean {
    return this.delegations.decline(id, why);
  }

  /** @internal Queues a refusal for the function that serves. It may be about a response. */
  protected override protested(id: string, refused: Refused): void {
    if (this.#asks.serving === 0) return;
    this.#asks.push({ refused, id });
    this.#asked.ring();
  }

  /** @internal */
  protected override shuttingDown(): void {
    this.#asks.push({ leave: true });
    this.#asked.ring();
  }

  /** @internal */
  protected override closed(over: Closed): void {
    this.delegations.end(over);
    this.#asked.ring();
  }

  /** @internal */
  protected override async flushed(): Promise<void> {
    await this.#telling;
  }

  /** Logs, after a pause, how many items were dropped. */
  async #tellDropped(dropped: () => number): Promise<void> {
    await rest(shortPause, this.ended);
    const message = `${dropped()} of the messages that ask this agent for work were dropped: the agent does not serve`;
    await this.tell("log", { level: "warn", message }).catch(() => {}); // the broken stream shows in the next write
  }
}
