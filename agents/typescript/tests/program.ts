import { Again, Cancelled, Closed, type Delegation, Failed, Fatal, Fault, Shutdown, Withdrawn } from "../src/index.js";
import { Bell } from "../src/connection/waiting.js";

/** A call of a function of the program, which does what the dialogue says. */
export class Called {
  readonly kind: string;
  readonly who: string;
  /** What it was called with. */
  readonly told: any;
  readonly signal: AbortSignal;
  /** Tells how far it is, and asks for help, where it can. */
  readonly verbs: {
    progress?(how: any): Promise<void>;
    help?(question: string, context?: unknown): Promise<string>;
    permission?(permission: any): Promise<any>;
    updates?(): AsyncGenerator<string>;
    ask?(question: string, options?: any[]): Promise<any>;
    artifact?(artifact: any): void;
    delegate?(task: any): Promise<Delegation>;
  };
  answer: Promise<any> | undefined;
  readonly outcome: Promise<any>;
  #settle!: { resolve(value: unknown): void; reject(why: unknown): void };
  #updates: AsyncGenerator<string> | undefined;

  constructor(kind: string, who: string, told: unknown, signal: AbortSignal, verbs: Called["verbs"] = {}) {
    this.kind = kind;
    this.who = who;
    this.told = told;
    this.signal = signal;
    this.verbs = verbs;
    this.outcome = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
  }

  /** Does what a step says. */
  do(what: string, value: any): Promise<void> | void {
    switch (what) {
      case "return":
        return this.#settle.resolve(value);
      case "fail":
        return this.#settle.reject(typeof value === "string" ? new Error(value) : new Failed(value.error, value.completion));
      case "fatal":
        return this.#settle.reject(new Fatal(value.code, value.error));
      case "fault":
        return this.#settle.reject(new Fault(value.code, value.message, value));
      case "leave":
        return this.#settle.reject(this.signal.reason);
      case "progress":
        return this.verbs.progress!(value);
      case "artifact":
        return this.verbs.artifact!(value);
      case "permission":
        this.answer = this.verbs.permission!(value);
        this.answer.catch(() => {});
        return;
      case "help":
      case "ask":
        this.answer = what === "ask" ? this.verbs.ask!(value.question, value.options) : this.verbs.help!(value.question, value.context);
        this.answer.catch(() => {}); // sees looks at it
        return;
    }
    throw new Error(`nobody knows how to do ${what}`);
  }

  /** Sees what a step says; undefined when it does, else what there is. */
  async sees(what: string, text: string | undefined): Promise<string | undefined> {
    switch (what) {
      case "answer":
        return differs(text, await this.answer);
      case "withdrawn":
        return differs("withdrawn", await this.answer!.catch((error) => (error instanceof Withdrawn ? "withdrawn" : String(error))));
      case "update":
        this.#updates ??= this.verbs.updates!();
        return differs(text, (await this.#updates.next()).value as string);
    }
    await aborted(this.signal);
    const why = this.signal.reason;
    if (what === "cancelled") return why instanceof Cancelled ? differs(text, why.reason) : String(why);
    if (what === "shutdown") return why instanceof Shutdown || why instanceof Closed ? undefined : String(why);
    if (what === "again") return why instanceof Again ? undefined : String(why);
    throw new Error(`nobody knows how to see ${what}`);
  }
}

function differs(want: string | undefined, got: string | undefined): string | undefined {
  return want === got ? undefined : `want ${want}, got ${got}`;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));
}

/** The calls of the program's functions, in the order in which they come. */
export class Calls {
  readonly #bell = new Bell();
  readonly #waiting: Called[] = []; // that no step has taken

  /** A function of the program: it is called, and does what the dialogue says. */
  call(called: Called): Promise<any> {
    this.#waiting.push(called);
    this.#bell.ring();
    return called.outcome;
  }

  /** Waits for the next call of a function. */
  async next(kind: string, who: string): Promise<Called> {
    for (;;) {
      const at = this.#waiting.findIndex((c) => c.kind === kind && c.who === who);
      if (at >= 0) return this.#waiting.splice(at, 1)[0]!;
      await this.#bell.after(this.#bell.rung);
    }
  }

  /** Calls that no step has taken. */
  get left(): string[] {
    return this.#waiting.map((c) => `${c.kind} ${c.who}`);
  }
}
