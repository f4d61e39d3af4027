import { setMaxListeners } from "node:events";

// What waits for what. Everything that waits takes an AbortSignal, and leaves no
// listener behind on one that outlives it.

/** What may end a wait. */
export interface Options {
  /** Ends the waiting; its reason is what it fails with. */
  signal?: AbortSignal | undefined;
}

/** Wakes all who wait whenever it rings. */
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
   * Waits until it has rung more often, or for so many milliseconds. A caller that looks at
   * the number before looking at the rest misses nothing.
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

/** Waits for a promise no longer than a signal allows. */
export function unless<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Waits for so many milliseconds. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const never = new Bell();
  return never.after(never.rung, signal, ms);
}

/**
 * Waits before something is said again, and a little longer: agents that were refused together
 * need not come back together. It says whether the stream has ended, after which it does not
 * wait long.
 */
export async function rest(ms: number, ended: AbortSignal): Promise<boolean> {
  const wait = ms * (1 + Math.random() / 4);
  const over = await sleep(wait, ended).then(() => false, () => true);
  if (over) await sleep(Math.min(wait, shortPause));
  return over;
}

/** The shortest and the longest wait before something is said again, but for a spread, in milliseconds. */
export const [shortPause, longPause] = [1000, 16_000];

/** An AbortController that is aborted with another, for the same reason, until it is let go. */
export class Linked {
  readonly #own = new AbortController();
  readonly #to: AbortSignal | undefined;
  readonly #follow = () => this.#own.abort(this.#to?.reason);

  constructor(to?: AbortSignal) {
    setMaxListeners(0, this.#own.signal); // as many as wait: that is no leak
    this.#to = to;
    if (to?.aborted) this.#follow();
    else to?.addEventListener("abort", this.#follow);
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    this.letGo();
    this.#own.abort(reason);
  }

  letGo(): void {
    this.#to?.removeEventListener("abort", this.#follow);
  }
}

/** What goes on beside something else, which waits for it in the end. */
export class Running {
  readonly #all = new Set<Promise<void>>();

  /** What is done must not fail: the error would be lost. */
  go(what: () => Promise<void>): Promise<void> {
    const running = what().finally(() => this.#all.delete(running));
    this.#all.add(running);
    return running;
  }

  /** Nothing goes on. */
  get idle(): boolean {
    return this.#all.size === 0;
  }

  async wait(): Promise<void> {
    while (!this.idle) await Promise.all(this.#all);
  }
}

/** How many may do something at a time. The others wait, in order. */
export class Turns {
  readonly #bell = new Bell();
  readonly #line: object[] = [];
  #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  /** Waits for its turn, and returns what gives the place to the next. */
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

/** How many messages of a session are remembered: one that comes again comes soon. */
export const remembered = 4096;

/** What was known latest, by its key. */
export class Recent<T> {
  readonly #byKey = new Map<string, T>();

  /** Remembers something, and forgets the oldest for it. It says whether the key is new: what there is under a key stays. */
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

  /** What there is under a key, which is forgotten. */
  take(key: string): T | undefined {
    const value = this.#byKey.get(key);
    this.#byKey.delete(key);
    return value;
  }
}

/** What waits in order. */
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
      this.#items = this.#items.slice(this.#first); // a shift of a long list moves all of it
      this.#first = 0;
    }
    return item;
  }
}
