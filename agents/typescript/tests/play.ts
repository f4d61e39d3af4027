import { PassThrough, Writable } from "node:stream";
import {
  type Architect, Cancelled, Closed, type Conn, connect, Delegation, Ended, Fault, type Heard, Incomplete, type Notice, Refused, Rejected, type Said,
  type Sent, type Session, type TaskResponse, Undelivered, Undone, Unfinished, Unreviewed, Unsaid,
} from "../src/index.js";
import { Raw, spell } from "../src/wire/json.js";
import { Bell } from "../src/connection/waiting.js";
import { exactly, faulty, serve } from "./delegating.js";
import { difference, type Manner, type Names, plain, resolve } from "./equal.js";
import { type Dialogue, type Step, words } from "./file.js";
import { Called, Calls } from "./program.js";
import { call, say, tell } from "./verbs.js";

/** How long a step waits, in milliseconds. */
const patience = 10_000;

interface Started {
  what: string;
  over: Promise<{ value?: any; error?: unknown }>;
  looked: boolean;
}

/** Plays a dialogue with a connection of its own. It throws what goes wrong, with its place. */
export async function play(dialogue: Dialogue): Promise<void> {
  const player = new Player();
  for (const step of dialogue.steps) {
    await inTime(player.take(step)).catch((error: unknown) => {
      throw new Error(`${step.place}: ${step.word} ${step.rest.slice(0, 100)}: ${error instanceof Error ? error.message : error}`, { cause: error });
    });
  }
  await inTime(player.close());
}

async function inTime<T>(what: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it takes too long")), patience);
  });
  return Promise.race([what, late]).finally(() => clearTimeout(timer));
}

function quick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

class Player {
  readonly #names: Names = new Map();
  readonly #uuids = new Set<string>();
  readonly #stdin = new PassThrough();
  readonly #bell = new Bell();
  readonly #lines: string[] = []; // that no step has taken
  readonly #conn: Conn;
  readonly #started = new Map<string, Started>();
  readonly #calls = new Calls();
  readonly #called = new Map<string, Called>(); // the latest of each that a step has taken
  readonly #heard = new Map<string, Said>();
  #news: AsyncGenerator<Notice, void> | undefined;
  #talk: AsyncGenerator<Said, void> | undefined;
  #session: Session | undefined;
  #architect: Architect | undefined;

  constructor() {
    const write = (chunk: Buffer, _: unknown, done: () => void) => {
      const text = chunk.toString();
      if (!text.endsWith("\n") || text.indexOf("\n") !== text.length - 1) throw new Error(`no line was written at once: ${text}`);
      this.#lines.push(text.slice(0, -1));
      this.#bell.ring();
      done();
    };
    this.#conn = connect(this.#stdin, new Writable({ write, decodeStrings: true }));
  }

  async take({ word, rest }: Step): Promise<void> {
    const steps: { [word: string]: (rest: string) => Promise<void> | void } = {
      ">": (text) => this.#prints(text),
      "<": (text) => this.#write(resolve(text, this.#names) + "\n"),
      "<part": (text) => this.#write(resolve(text.replace(/\\$/, ""), this.#names)),
      "<hex": (digits) => this.#write(Buffer.from(digits, "hex")),
      end: () => this.#end(),
      pause: () => new Promise((over) => setTimeout(over, 200)), // nothing says that the SDK has nothing more to do
      call: (text) => this.#start(3, text, ([, operation, json]) => call(this.#conn, operation!, this.#plain(json!))),
      tell: (text) => this.#start(3, text, ([, event, json]) => tell(this.#conn, event!, this.#plain(json!))),
      say: (text) => this.#start(3, text, ([, verb, json]) => say(this.#session!, verb!, this.#plain(json!), this.#heard)),
      work: (text) => this.#start(2, text, ([, json]) => this.#work(this.#plain(json!))),
      as: (text) => void (this.#session = this.#conn.openSession(this.#plain(text))),
      develop: (text) => this.#start(2, text, ([, json]) => this.#develop(this.#plain(json!))),
      review: (text) => this.#start(2, text, ([, json]) => this.#review(this.#plain(json!))),
      lead: (text) => this.#start(2, text, () => this.#lead()),
      order: (text) => this.#start(2, text, ([, json]) => this.#architect!.deliver(this.#plain(json!))),
      delegate: (text) => this.#start(2, text, ([, json]) => this.#conn.delegate(this.#plain(json!))),
      await: (text) => this.#about(2, text, (d) => d.wait()),
      status: (text) => this.#about(2, text, (d) => d.status()),
      update: (text) => this.#about(3, text, (d, input) => d.update(input)),
      cancel: (text) => this.#about(3, text, (d, reason) => d.cancel(reason)),
      response: (text) => this.#response(text),
      serve: (text) => this.#start(2, text, ([, json]) => serve(this.#conn, this.#calls, this.#plain(json!))),
      news: (text) => this.#takes(text, (this.#news ??= this.#conn.news())),
      said: (text) => this.#takes(text, (this.#talk ??= this.#conn.talk())),
      do: (text) => this.#do(text),
      sees: (text) => this.#sees(text),
    };
    const step = steps[word];
    if (step) return step(rest);
    if (["task", "plan", "mail", "assignment", "rescope", "request", "correct", "job"].includes(word)) return this.#calledFor(word, rest);
    return this.#outcome(word, rest);
  }

  /** The end of a dialogue. */
  async close(): Promise<void> {
    await this.#end();
    for (const [n, { over, looked, what }] of this.#started) {
      const { error } = await over;
      if (!looked) throw new Error(`nobody looked what came of ${what} ${n}: ${error ?? "it went well"}`);
    }
    await quick();
    if (this.#lines.length > 0) throw new Error(`nobody expected ${this.#lines[0]}`);
    if (this.#calls.left.length > 0) throw new Error(`nobody expected the call of ${this.#calls.left}`);
  }

  async #prints(want: string): Promise<void> {
    while (this.#lines.length === 0) await this.#bell.after(this.#bell.rung);
    const line = this.#lines.shift()!;
    this.#same(resolve(want, this.#names), Raw.part(line), { whole: true, bind: true });
  }

  async #write(what: string | Buffer): Promise<void> {
    this.#stdin.write(what);
    await quick();
    await quick(); // each piece comes by itself
  }

  async #end(): Promise<void> {
    this.#stdin.end();
    await this.#conn.wait();
  }

  #plain(json: string): any {
    return json === "" ? undefined : plain(Raw.part(resolve(json, this.#names)));
  }

  #same(want: string, got: Raw | undefined, how: Pick<Manner, "whole" | "bind" | "rounded">): void {
    const why = difference(Raw.part(want), got, { ...how, names: this.#names, uuids: this.#uuids });
    if (why !== undefined) throw new Error(why);
  }

  /** What the program is told is so in its text, and, with the digits that JavaScript keeps, in its values. */
  #told(want: string, got: any, rounded = got?.raw instanceof Raw): void {
    want = resolve(want, this.#names);
    if (got?.raw instanceof Raw) this.#same(want, got.raw, { whole: false, bind: false });
    this.#same(want, Raw.part(spell(got ?? null)!), { whole: false, bind: false, rounded });
  }

  #start(count: number, rest: string, start: (words: string[]) => Promise<any>): void {
    const all = words(rest, count - 1);
    const begun = (async () => start(all))();
    const over = begun.then((value) => ({ value }), (error: unknown) => ({ error }));
    this.#started.set(all[0]!, { what: all[1] ?? "", over, looked: false });
  }

  #work(how: any): Promise<void> {
    const job = (kind: string) => (j: any) => {
      const verbs = {
        progress: (p: any) => j.progress(p.progress, p.message, p.output), help: (q: string, c: unknown) => j.help(q, c), updates: () => j.updates(),
        permission: (p: any) => this.#conn.askPermission(p, { signal: j.signal }), artifact: (a: any) => j.artifact(a),
      };
      return this.#calls.call(new Called(kind, j.id, j.task, j.signal, verbs));
    };
    return this.#conn.work({
      do: job("task"),
      ...(how.plan && { plan: job("plan") }),
      ...(how.mail && { mail: (mail: any, signal: AbortSignal) => this.#calls.call(new Called("mail", String(mail.seq), mail, signal)) }),
    });
  }

  #develop(how: any): Promise<void> {
    const verbs = (task: any) => ({ progress: (p: any) => task.progress(p.percent, p.step, ...(p.files ?? [])) });
    return this.#session!.develop({
      do: (t) => this.#calls.call(new Called("assignment", t.task.task_id, t.assignment, t.signal, verbs(t))),
      ...(how.rescope && { rescope: (t: any, why: Undelivered) => this.#calls.call(new Called("rescope", t.task.task_id, { scope: why.scope }, t.signal, verbs(t))) }),
      capacity: how.capacity,
      progressAfter: how.progressAfter,
      progressEvery: how.progressEvery,
    });
  }

  #review(how: any): Promise<void> {
    return this.#session!.review({
      do: (r, signal) => this.#calls.call(new Called("request", r.review_id, r, signal)),
      ...(how.correct && {
        correct: (r: any, _: any, why: Undelivered, signal: AbortSignal) =>
          this.#calls.call(new Called("correct", r.review_id, { code: why.code, message: why.message }, signal)),
      }),
      capacity: how.capacity,
    });
  }

  #lead(): Promise<void> {
    return this.#session!.lead((architect) => {
      this.#architect = architect;
      const lead = new Called("lead", "lead", undefined, architect.signal);
      this.#called.set("lead", lead);
      return lead.outcome;
    });
  }

  async #calledFor(kind: string, rest: string): Promise<void> {
    const [who = "", json = ""] = words(rest, 1);
    const called = await this.#calls.next(kind, who);
    this.#called.set(who, called);
    this.#told(json, called.told);
  }

  #do(rest: string): void {
    const [who = "", what = "", json = ""] = words(rest, 2);
    if (what === "delegate") return this.#start(2, json, ([, task]) => this.#called.get(who)!.verbs.delegate!(this.#plain(task!)));
    void this.#called.get(who)!.do(what, this.#plain(json));
  }

  async #sees(rest: string): Promise<void> {
    const [who = "", what = "", json = ""] = words(rest, 2);
    if (what === "input") return this.#told(json, await this.#called.get(who)!.answer);
    if (what === "refused") return this.#seesRefused(json, await this.#called.get(who)!.answer!.catch((error: unknown) => error));
    const why = await this.#called.get(who)!.sees(what, this.#plain(json));
    if (why !== undefined) throw new Error(why);
  }

  /** Starts something about what was delegated. */
  #about(count: number, rest: string, start: (d: Delegation, what: any) => Promise<any>): void {
    this.#start(count, rest, async ([, n, json]) => start(await this.#delegation(n!), json && this.#plain(json)));
  }

  async #delegation(n: string): Promise<Delegation> {
    const { value } = await this.#started.get(n)!.over;
    if (!(value instanceof Delegation)) throw new Error(`${n} is no delegation`);
    return value;
  }

  async #response(rest: string): Promise<void> {
    const [n = "", want = ""] = words(rest, 1);
    const { value } = await (await this.#delegation(n)).responses().next();
    if ((value === undefined) !== (want === "end")) throw new Error(`got ${value ? value.raw : "the end"}`);
    if (value) this.#toldResponse(want, value);
  }

  /** What is told of a response is more than its text, but what others have written stands in that digit for digit. */
  #toldResponse(want: string, got: Heard<TaskResponse>): void {
    this.#told(want, exactly(got));
    this.#told(want, { ...got }, true);
  }

  #seesRefused(want: string, why: unknown): void {
    const [code, json = ""] = words(want, 1);
    if (!(why instanceof Refused) || why.code !== code) throw new Error(`it came to ${why}`, { cause: why });
    this.#refusal(json, why);
  }

  async #takes(want: string, from: AsyncGenerator<Notice | Said, void>): Promise<void> {
    const { value, done } = await from.next();
    if (done || want === "end") {
      if (!done || want !== "end") throw new Error(`got ${done ? "the end" : spell(value)}`);
      return;
    }
    if ("message_id" in value!) this.#heard.set(value.message_id, value);
    this.#told(want, value, true);
    const payload = Raw.part(want).at("payload"); // a notice has no text but that of its payload
    if (payload) this.#told(payload.text, value!.payload);
  }

  async #outcome(word: string, rest: string): Promise<void> {
    const [n = "", first = "", second = ""] = words(rest, 2);
    const started = this.#started.get(n);
    if (!started) throw new Error(`nobody knows what ${word} is`);
    started.looked = true;
    const { value, error } = await started.over;
    const failed = (right: boolean) => {
      if (!right) throw new Error(`it came to ${error ?? spell(value)}`, { cause: error });
    };
    switch (word) {
      case "answer":
        failed(error === undefined);
        if (value?.metadata && value.artifacts) return this.#toldResponse(words(rest, 1)[1]!, value);
        return this.#told(words(rest, 1)[1]!, value);
      case "done":
        return failed(error === undefined);
      case "delivered":
        failed(error === undefined);
        return this.#told(words(rest, 1)[1]!, value);
      case "refused":
        failed(error instanceof Refused && error.code === first);
        return this.#refusal(second, error as Refused);
      case "undelivered":
        return this.#undelivered(first, second, await (value as Sent).refused);
      case "unsaid":
        return failed(error instanceof Unsaid);
      case "unasked":
        return failed(error instanceof Closed && !error.asked);
      case "unanswered":
        return failed(error instanceof Closed && error.asked);
      case "unfinished":
        return failed(error instanceof Unfinished && error.tasks === Number(first));
      case "failed":
        failed(error instanceof Fault);
        return this.#told(words(rest, 1)[1]!, faulty(error));
      case "cancelled":
        failed(error instanceof Cancelled && (error.cause !== undefined) === (words(rest, 1)[1] !== "{}"));
        return this.#told(words(rest, 1)[1]!, faulty((error as Cancelled).cause));
      case "undone":
        failed(error instanceof Undone);
        return this.#undone(first, second, (error as Undone).cause);
    }
    throw new Error("nobody knows this step");
  }

  #refusal(want: string, why: Refused): void {
    if (want === "") return;
    const details = why.details?.raw;
    const got = `{"code":${spell(why.code)},"message":${spell(why.message)}${details ? `,"details":${details.text}` : ""}}`;
    this.#same(resolve(want, this.#names), Raw.part(got), { whole: false, bind: false });
  }

  #undelivered(code: string, want: string, why: Undelivered): void {
    if (why.code !== code) throw new Error(`it was refused with ${why.code}`);
    this.#refusal(want, why);
  }

  #undone(why: string, want: string, cause: unknown): void {
    const kinds: { [why: string]: unknown } = { incomplete: Incomplete, rejected: Rejected, unreviewed: Unreviewed, ended: Ended, undelivered: Undelivered };
    if (!(cause instanceof (kinds[why] as typeof Error))) throw new Error(`it came to ${cause}`, { cause });
    if (cause instanceof Undelivered) this.#refusal(want, cause);
    else this.#told(want, { ...cause });
  }
}
