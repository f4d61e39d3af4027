import { Linked, longPause, type Options, rest, shortPause } from "../connection/waiting.js";
import { value } from "../wire/envelope.js";
import { Cancelled, gaveUp, Reason, type Refused, Shutdown, spoken } from "../wire/errors.js";
import { FaultCode, faultOf, type TaskFault, untold } from "../wire/fault.js";
import { type Heard, Raw } from "../wire/json.js";
import type { TaskAct } from "../wire/taskline.js";
import type { TaskRequest } from "../wire/taskrequest.js";
import { spellResponse } from "../wire/taskresponse.js";
import type { Asked } from "./asks.js";
import { Delegated, Places } from "./delegated.js";
import type { Exchange, FinalWord } from "./exchange.js";
import { parting, Running, troubled } from "./loops.js";

/**
 * Does a job and returns its result: any value, or undefined for success without a result. A Fault,
 * or an error that has one as its cause, is reported as that fault. Any other error becomes an
 * INTERNAL_ERROR that is not recoverable.
 */
export type Skill = (job: Delegated) => Promise<unknown>;

/** The skills of an agent, by the type of the request. */
export type Skills = { [type: string]: Skill };

/** Configures Conn.serve. */
export interface ServeOptions extends Options {
  /** The agent's name in its responses; the default is $ORC_AGENT_ID. */
  agent?: string | undefined;
  /**
   * The number of jobs done at a time; further jobs wait. A job that waits for input or for
   * delegated work gives up its place meanwhile. By default there is no limit other than the
   * orchestrator's.
   */
  capacity?: number | undefined;
}

/** The reason of a refusal if too many questions are open. */
const tooMany = "too_many_questions";

/** @internal One call of serve. */
export class Serving {
  readonly #conn: Exchange;
  readonly #skills: Skills;
  readonly #agent: string | undefined;
  readonly #places: Places;
  readonly #stop: Linked;
  readonly #running = new Running();
  readonly #jobs = new Map<string, Delegated>(); // by task, until its work is over
  readonly #repeats = new Set<string>(); // the tasks with a response to repeat
  #unfinished = 0;

  constructor(conn: Exchange, skills: Skills, { agent, capacity, signal }: ServeOptions) {
    this.#conn = conn;
    this.#skills = skills;
    this.#agent = agent || process.env["ORC_AGENT_ID"] || undefined;
    spellResponse({ id: "any", status: "pending", metadata: { agent: this.#agent } }); // throws if the name is invalid
    this.#places = new Places(capacity);
    this.#stop = new Linked(signal);
  }

  async run(): Promise<void> {
    this.#conn.serves(1);
    await this.#listen(this.#stop.signal);
    this.#stop.abort(this.#conn.over); // unless it was aborted before, for another reason
    await this.#listenOn();
    this.#conn.serves(-1);
    for (const job of this.#jobs.values()) if (!job.over) this.#unfinished++; // it has not begun
    parting(this.#stop.signal.reason, this.#unfinished);
  }

  /**
   * Handles requests until the last skill has returned, because a skill may take a while to stop.
   */
  async #listenOn(): Promise<void> {
    if (this.#running.idle) return;
    const idle = new AbortController();
    const rest = this.#running.wait().then(() => idle.abort());
    await this.#listen(idle.signal);
    await rest;
    await this.#running.wait();
  }

  /** Handles requests until a signal is aborted or the stream ends. */
  async #listen(signal: AbortSignal): Promise<void> {
    for (let a = await this.#conn.nextAsked(signal); a; a = await this.#conn.nextAsked(signal)) this.#heed(a);
  }

  /** Handles one item without blocking. */
  #heed({ request, act, refused, id, leave }: Asked): void {
    if (leave) this.#stop.abort(new Shutdown());
    if (request) this.#requested(request);
    if (act) this.#told(act);
    if (refused) this.#protested(id!, refused);
  }

  /** Returns the job of a task, or undefined if there is none that is not over. */
  #job(task: string): Delegated | undefined {
    const job = this.#jobs.get(task);
    return job?.over ? undefined : job;
  }

  #told(act: TaskAct): void {
    const job = this.#job(act.id);
    if (!job) { // the sender has not heard yet that it is over
      if (act.type === "task.status") this.#again(act.id);
    } else if (act.type === "task.status") {
      this.#go(() => this.#conn.write(job.standing()));
    } else if (act.type === "task.update") {
      this.#go(() => job.answer(act.input!));
    } else {
      this.#end(job, "cancelled", () => ({}));
      job.stop(new Cancelled(act.reason ?? ""));
    }
  }

  /**
   * Begins the job of a request, unless there is one. If the final response of the task is
   * remembered, repeats that instead, unless the task may be done again.
   */
  #requested(request: Heard<TaskRequest>): void {
    if (this.#job(request.id)) return;
    if (this.#conn.finals.get(request.id)?.again === false) return this.#again(request.id);
    const job = new Delegated(this.#conn, request, this.#agent, this.#places, this.#stop.signal);
    const skill = skillFor(request.type, this.#skills);
    if (!skill) {
      job.leave();
      const error = { code: FaultCode.CapabilityNotFound, message: `this agent has no skill for ${request.type}`, recoverable: false };
      return this.#end(job, "failed", () => ({ error }));
    }
    const before = this.#jobs.get(job.id);
    this.#jobs.set(job.id, job);
    job.gone = this.#running.go(() => this.#do(job, skill, before?.gone));
  }

  async #do(job: Delegated, skill: Skill, before: Promise<void> | undefined): Promise<void> {
    const begun = await job.begin(before);
    if (begun) await this.#perform(job, skill);
    job.leave();
    await before; // a caller that waits for this one waits for both
    const there = this.#jobs.get(job.id) === job;
    if (there && (begun || job.over)) this.#jobs.delete(job.id); // a job that never begins stays, for later requests
  }

  async #perform(job: Delegated, skill: Skill): Promise<void> {
    try {
      const result = await skill.call(this.#skills, job);
      this.#end(job, "completed", () => ({ result: value(result) ?? Raw.part("{}") }));
    } catch (error) {
      if (!job.over && gaveUp(job.signal, error)) this.#unfinished++;
      else this.#end(job, "failed", () => ({ error: faultOf(error) }));
    }
  }

  /**
   * Sends the final response of a job, unless one was sent, and remembers it. If it cannot be
   * encoded, the artifacts are left out, and the job fails unless it was cancelled.
   */
  #end(job: Delegated, status: "completed" | "failed" | "cancelled", outcome: () => { error?: TaskFault; result?: Raw }): void {
    if (job.over) return;
    let [line, what]: [string, ReturnType<typeof outcome>] = ["", {}];
    try {
      what = outcome();
      line = job.last(status, what, true);
    } catch (error) {
      if (status !== "cancelled") what = { error: untold(error) };
      line = job.last(status === "cancelled" ? status : "failed", what, false);
    }
    const again = status === "cancelled" || what.error?.recoverable === true;
    this.#conn.finals.add(job.id, { line, again, tries: 0 });
    this.#go(() => this.#conn.write(line));
  }

  /** Repeats the final response of a task, if it is still remembered. */
  #again(task: string): void {
    const word = this.#conn.finals.get(task);
    if (word) this.#go(() => this.#conn.write(word.line));
  }

  // Only refused responses get an answer. A question or final response must not be lost: if it is
  // refused for the rate limit, it is sent again later, provided that it still holds.

  #protested(task: string, why: Refused): void {
    const [job, word, limited] = [this.#job(task), this.#conn.finals.get(task), why.reason === Reason.Limited];
    const wrong = why.code === "INVALID_REQUEST" && why.reason === "";
    if (!job && !word) return; // the refusal concerns something else
    if (job && limited) {
      if (job.asks) this.#later(task, job, () => (job.asks ? job.standing() : undefined));
    } else if (limited) {
      this.#later(task, word!, () => (this.#job(task) ? undefined : this.#conn.finals.get(task)?.line));
    } else if (!job && wrong && !word!.instead) {
      this.#insteadOf(word!, task, why);
    } else if (!job || !(wrong || why.reason === tooMany) || !job.refuse(why)) {
      this.#go(() => Promise.reject(new Error(`task ${task}: ${spoken(why)}`, { cause: why })));
    }
  }

  /** Repeats a response after a pause, if it still holds. */
  #later(task: string, what: { tries: number }, spell: () => string | undefined): void {
    if (this.#repeats.has(task)) return;
    this.#repeats.add(task);
    const wait = Math.min(shortPause * 2 ** what.tries++, longPause);
    this.#go(async () => {
      await rest(wait, this.#conn.ended);
      this.#repeats.delete(task);
      const line = spell();
      if (line !== undefined) await this.#conn.write(line);
    });
  }

  /** Reports a job as failed, because its final response was refused. */
  #insteadOf(word: FinalWord, id: string, why: Refused): void {
    const error = { code: FaultCode.Internal, message: `what came of it was refused: ${why.message}`, recoverable: false };
    const line = spellResponse({ id, status: "failed", error, metadata: Raw.part(word.line).at("metadata") });
    this.#conn.finals.add(id, { line, again: false, instead: true, tries: 0 });
    this.#go(() => this.#conn.write(line));
  }

  #go(what: () => Promise<void>): void {
    void this.#running.go(() => what().catch((error: unknown) => troubled(this.#conn, error, this.#stop)));
  }
}

/** Returns the skill for a type. Members that every object inherits are not skills. */
function skillFor(type: string, skills: Skills): Skill | undefined {
  const skill = Object.hasOwn(skills, type) || !(type in Object.prototype) ? skills[type] : undefined;
  return typeof skill === "function" ? skill : undefined;
}
