import type { Stream } from "../connection/stream.js";
import { Bell, type Linked } from "../connection/waiting.js";
import { Closed, Shutdown, spoken, Torn, Unfinished } from "../wire/errors.js";

// Parts of the loops that call functions of the agent's author.

/** Logs the error of one task or message. It stops the loop only if writing has failed. */
export async function troubled(conn: Stream, error: unknown, stop: Linked): Promise<void> {
  let torn: unknown = error;
  if (!(error instanceof Torn)) torn = await conn.log("warn", spoken(error)).catch((e: unknown) => e);
  if (torn instanceof Torn) stop.abort(torn);
}

/**
 * Ends a loop. Throws the reason, unless it is a shutdown or the end of the stream; then throws
 * Unfinished if tasks were given up.
 */
export function parting(reason: unknown, unfinished: number): void {
  if (!(reason instanceof Shutdown) && !(reason instanceof Closed && reason.cause === undefined)) throw reason;
  if (unfinished > 0) throw new Unfinished(unfinished, reason);
}

/** Functions that run in the background and are waited for at the end. */
export class Running {
  readonly #all = new Set<Promise<void>>();

  /** Runs a function, which must not fail: the error would be lost. */
  go(what: () => Promise<void>): Promise<void> {
    const running = what().finally(() => this.#all.delete(running));
    this.#all.add(running);
    return running;
  }

  /** Whether nothing is running. */
  get idle(): boolean {
    return this.#all.size === 0;
  }

  async wait(): Promise<void> {
    while (!this.idle) await Promise.all(this.#all);
  }
}

/** Limits how many calls run at a time. The others wait, in order. */
export class Turns {
  readonly #bell = new Bell();
  readonly #line: object[] = [];
  #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  /** Waits for a place, and returns a function that passes it on. */
  async take(signal?: AbortSignal): Promise<() => void> {
    const me = {};
    this.#line.push(me);
    try {
      for (;;) {
        const rung = this.#bell.rung;
        if (this.#room > 0 && this.#line[0] === me && !signal?.aborted) break;
        await this.#bell.after(rung, signal);
      }
      this.#room--;
    } finally {
      this.#line.splice(this.#line.indexOf(me), 1);
      this.#bell.ring();
    }
    return () => {
      this.#room++;
      this.#bell.ring();
    };
  }
}
