import { setMaxListeners } from "node:events";

// Helpers for waiting. Every wait takes an AbortSignal, and leaves no listener on a signal that
// outlives it.

/** Options of a wait. */
export interface Options {
  /** Ends the wait, which fails with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Wakes all waiting calls whenever it rings. */
export class Bell {
  #rung = 0;
  #waiting = new Set<() => void>();

  /** How often it has rung. */
  get rung(): number {
    return this.#rung;
  }

  ring(): void {
    this.#rung++;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /**
   * Waits until it has rung more often, or for ms milliseconds. Read rung before looking at the
   * state, so that no ring is missed.
   */
  after(rung: number, signal?: AbortSignal, ms?: number): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (rung !== this.#rung) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = ms === undefined ? undefined : setTimeout(wake, ms);
      const waiting = this.#waiting;
      const done = () => {
        waiting.delete(wake);
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      function wake() {
        done();
        resolve();
      }
      function abort() {
        done();
        reject(signal?.reason);
      }
      waiting.add(wake);
      signal?.addEventListener("abort", abort);
    });
  }
}

/** Waits for a promise until the signal is aborted. */
export function unless<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Waits for ms milliseconds. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const never = new Bell();
  return never.after(never.rung, signal, ms);
}

/**
 * Waits for the given time plus some jitter, so that agents refused together do not return
 * together. Reports whether the stream has ended; it then returns soon.
 */
export async function rest(ms: number, ended: AbortSignal): Promise<boolean> {
  const wait = ms * (1 + Math.random() / 4);
  const over = await sleep(wait, ended).then(() => false, () => true);
  if (over) await sleep(Math.min(wait, shortPause));
  return over;
}

/**
 * The shortest and the longest pause before a message is sent again, before jitter, in
 * milliseconds.
 */
export const [shortPause, longPause] = [1000, 16_000];

/** An AbortController that is aborted with another one, for the same reason, until letGo. */
export class Linked {
  readonly #own = new AbortController();
  readonly #to: AbortSignal | undefined;
  readonly #follow = () => this.#own.abort(this.#to?.reason);

  constructor(to?: AbortSignal) {
    setMaxListeners(0, this.#own.signal); // any number of calls may wait: this is not a leak
    this.#to = to;
    if (to?.aborted) this.#follow();
    else to?.addEventListener("abort", this.#follow);
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Aborts the signal. Only the first reason counts. */
  abort(reason: unknown): void {
    this.letGo();
    this.#own.abort(reason);
  }

  letGo(): void {
    this.#to?.removeEventListener("abort", this.#follow);
  }
}

/**
 * How many session messages a connection remembers. Duplicates arrive soon, because only messages
 * that may not have arrived are repeated.
 */
export const remembered = 4096;

/** The latest values by key. */
export class Recent<T> {
  readonly #byKey = new Map<string, T>();

  /**
   * Adds a value, drops the oldest one if full, and reports whether the key is new. The value of a
   * known key stays.
   */
  add(key: string, value: T): boolean {
    if (this.#byKey.has(key)) return false;
    this.#byKey.set(key, value);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size <= remembered) break;
      this.#byKey.delete(oldest);
    }
    return true;
  }

  get(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  /** Removes and returns the value of a key. */
  take(key: string): T | undefined {
    const value = this.#byKey.get(key);
    this.#byKey.delete(key);
    return value;
  }
}

/** A first-in, first-out queue. */
export class Queue<T> {
  #items: T[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#first];
  }

  shift(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    if (++this.#first > 1024 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first); // shift on a long array moves all of it
      this.#first = 0;
    }
    return item;
  }
}
