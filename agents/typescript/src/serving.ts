import type { Asked } from "./asks.js";
import type { Conn } from "./conn.js";
import { Delegated } from "./delegated.js";
import { value } from "./envelope.js";
import { Cancelled, gaveUp, Reason, type Refused, Shutdown, spoken } from "./errors.js";
import { FaultCode, faultOf, type TaskFault, untold } from "./fault.js";
import type { FinalWord } from "./finals.js";
import { type Heard, Raw } from "./json.js";
import { Places } from "./places.js";
import type { TaskAct } from "./taskact.js";
import type { TaskRequest } from "./taskrequest.js";
import { spellResponse } from "./taskresponse.js";
import { parting, troubled } from "./trouble.js";
import { Linked, longPause, type Options, rest, Running, shortPause } from "./waiting.js";

/**
 * Does what the agent is asked, and returns what came of it: any value, or nothing for no
 * more than that it went well. To throw a Fault, or an error that has one as its cause, says
 * why it failed; what else is thrown is an INTERNAL_ERROR that another try does not mend.
 */
export type Skill = (job: Delegated) => Promise<unknown>;

/** What an agent can do for others, by the type of the request. */
export type Skills = { [type: string]: Skill };

/** How an agent serves. */
export interface ServeOptions extends Options {
  /** Who the agent is, as its responses say; $ORC_AGENT_ID when it is missing. */
  agent?: string | undefined;
  /**
   * How many jobs are done at a time; the others wait. One that waits itself, for input or for
   * what it has delegated, makes room for another one. When it is missing there is no bound but
   * that of the orchestrator, which hands over no more than the agent has room for.
   */
  capacity?: number | undefined;
}

/** Why one question too many is refused. */
const tooMany = "too_many_questions";

/** @internal One call of serve. */
export class Serving {
  readonly #conn: Conn;
  readonly #skills: Skills;
  readonly #agent: string | undefined;
  readonly #places: Places;
  readonly #stop: Linked;
  readonly #running = new Running();
  readonly #jobs = new Map<string, Delegated>(); // by task, until nothing is done for it any more
  readonly #repeats = new Set<string>(); // the tasks of which something is said again
  #unfinished = 0;

  constructor(conn: Conn, skills: Skills, { agent, capacity, signal }: ServeOptions) {
    this.#conn = conn;
    this.#skills = skills;
    this.#agent = agent || process.env["ORC_AGENT_ID"] || undefined;
    spellResponse({ id: "any", status: "pending", metadata: { agent: this.#agent } }); // with a name that cannot be said nothing could be
    this.#places = new Places(capacity);
    this.#stop = new Linked(signal);
  }

  async run(): Promise<void> {
    this.#conn.serves(1);
    await this.#listen(this.#stop.signal);
    this.#stop.abort(this.#conn.over); // which is why nothing more is asked, if nothing else was
    await this.#listenOn();
    this.#conn.serves(-1);
    for (const job of this.#jobs.values()) if (!job.over) this.#unfinished++; // which has not begun
    parting(this.#stop.signal.reason, this.#unfinished);
  }

  /** Heeds what is asked until the last job has returned, as one that has to go may take a while. */
  async #listenOn(): Promise<void> {
    if (this.#running.idle) return;
    const idle = new AbortController();
    const rest = this.#running.wait().then(() => idle.abort());
    await this.#listen(idle.signal);
    await rest;
    await this.#running.wait();
  }

  /** Heeds what is asked until a signal is aborted, or the stream ends. */
  async #listen(signal: AbortSignal): Promise<void> {
    for (let a = await this.#conn.nextAsked(signal); a; a = await this.#conn.nextAsked(signal)) this.#heed(a);
  }

  /** Does what is asked for. It waits for nothing. */
  #heed({ request, act, refused, id, leave }: Asked): void {
    if (leave) this.#stop.abort(new Shutdown());
    if (request) this.#requested(request);
    if (act) this.#told(act);
    if (refused) this.#protested(id!, refused);
  }

  /** The job of a task that is not over. */
  #job(task: string): Delegated | undefined {
    const job = this.#jobs.get(task);
    return job?.over ? undefined : job;
  }

  #told(act: TaskAct): void {
    const job = this.#job(act.id);
    if (!job) { // a source that says more than to ask has not heard yet that it is over
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

  /** Begins a job, unless there is one, or nothing is to be done any more. */
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
    if (there && (begun || job.over)) this.#jobs.delete(job.id); // what has not begun when the agent is to go is there to the end, for later requests
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

  /** Says the final response of a job, unless one was said, and remembers it. What cannot be said is a failure, unless it was cancelled, and goes without what was made, which may be why. */
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

  /** Says a final response once more, if it is known. */
  #again(task: string): void {
    const word = this.#conn.finals.get(task);
    if (word) this.#go(() => this.#conn.write(word.line));
  }

  // A response has no answer, unless it is refused. What is refused because there is too much
  // just now is said again later, as it is then: a question and a final response must not get lost.

  #protested(task: string, why: Refused): void {
    const [job, word, limited] = [this.#job(task), this.#conn.finals.get(task), why.reason === Reason.Limited];
    const wrong = why.code === "INVALID_REQUEST" && why.reason === "";
    if (!job && !word) return; // it is about something else, which no caller waits for
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

  /** Says something again after a while, if it still holds. */
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

  /** Says that a job has failed, because what came of it was refused. */
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

/** The function for a type: what every object has is none. */
function skillFor(type: string, skills: Skills): Skill | undefined {
  const skill = Object.hasOwn(skills, type) || !(type in Object.prototype) ? skills[type] : undefined;
  return typeof skill === "function" ? skill : undefined;
}
