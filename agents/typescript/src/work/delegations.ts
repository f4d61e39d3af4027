import type { Stream } from "../connection/stream.js";
import { about } from "../wire/envelope.js";
import { Closed, type Refusal, Refused, Unsaid } from "../wire/errors.js";
import type { Raw } from "../wire/json.js";
import { type DelegateTask, spellRequest } from "../wire/taskrequest.js";
import { isFinal, readResponse } from "../wire/taskresponse.js";
import { type Aside, Delegation } from "./delegation.js";

/** The delegations of a connection that are not over. */
export class Delegations {
  readonly #stream: Stream;
  readonly #open = new Map<string, Delegation>(); // by the id of the task

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Delegates work. Calls that wait for it use the signal within, and aside around the wait. */
  async delegate(task: DelegateTask, signal?: AbortSignal, within?: AbortSignal, aside?: Aside): Promise<Delegation> {
    try {
      signal?.throwIfAborted();
      const { id, line } = spellRequest(task);
      const { over } = this.#stream;
      if (over) throw new Closed(`delegate: not asked: ${over.message}`, false, over.cause);
      if (this.#open.has(id)) throw new Unsaid(`${id} was asked for, and is not over`);
      const d = new Delegation(id, this.#stream, within, aside);
      this.#open.set(id, d);
      await this.#stream.write(line).catch((error: unknown) => {
        this.#open.delete(id);
        throw error;
      });
      return d;
    } catch (error) {
      throw about("delegate", error);
    }
  }

  /** Passes a response to its delegation. */
  hear(raw: Raw): void {
    const response = readResponse(raw);
    const d = response && this.#open.get(response.id);
    if (!d) return;
    if (isFinal(response)) this.#open.delete(d.id);
    d.hear(response);
  }

  /** Passes a refusal to its delegation. Returns false if the refusal concerns something else. */
  decline(id: string, why: Refusal): boolean {
    const d = this.#open.get(id);
    if (d && !d.decline(new Refused(why))) this.#open.delete(id);
    return d !== undefined;
  }

  /** Ends all delegations: no more responses will arrive. */
  end(over: Closed): void {
    for (const d of this.#open.values()) {
      d.lose(new Closed(`task ${d.id}: asked for, but no answer will come: ${over.message}`, true, over.cause));
    }
    this.#open.clear();
  }
}
