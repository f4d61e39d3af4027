import type { Readable, Writable } from "node:stream";
import type { Options } from "./connection/waiting.js";
import { Architect, type Lead } from "./roles/architect.js";
import { type Assigned, type Developer, Developing } from "./roles/developer.js";
import { Judging, type Reviewer } from "./roles/reviewer.js";
import type { AgentType, Completion, Loose } from "./wire/sessions.js";
import { Exchange } from "./work/exchange.js";
import type { Job } from "./work/job.js";
import { type ServeOptions, Serving, type Skills } from "./work/serving.js";
import { identify, type Identity, Member } from "./work/session.js";
import { Work, type Worker } from "./work/worker.js";

/**
 * Connects an agent to the orchestrator that started it, or to another stream. Call it only once
 * for a stream, because two readers would share the lines.
 */
export function connect(input: Readable = process.stdin, output: Writable = process.stdout): Conn {
  return new Conn(input, output);
}

/**
 * An agent's connection to its orchestrator. Its methods may be called concurrently.
 *
 * Received documents have their text as raw, because a number may have more digits than JavaScript
 * keeps: task.raw.at("payload", "n")?.text. In documents to send, a Raw or a bigint may replace any
 * value.
 */
export class Conn extends Exchange {
  /**
   * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
   * aborted. Then it waits for the handlers and returns. The orchestrator limits how many tasks run
   * at a time to the agent's capacity, 1 by default.
   *
   * A task that is not running is started. While it waits for other tasks or for a person, other
   * tasks go on. The return value of a handler completes the task, and an exception fails it. A
   * cancelled task is not reported.
   *
   * At a shutdown, a handler may give up by throwing the reason of its signal, or Closed. Its task
   * is not reported either: the orchestrator decides what becomes of it. work then throws
   * Unfinished. The agent must exit with a failure, because a successful exit may complete its
   * task.
   */
  async work(worker: Worker | ((job: Job) => unknown), { signal }: Options = {}): Promise<void> {
    await new Work(this, typeof worker === "function" ? { do: worker } : worker, signal).run();
  }

  /**
   * Does the jobs that others delegate to the agent, until the agent is told to shut down, the
   * stream ends or the signal is aborted. Then it waits for the skills and returns. A job without a
   * skill fails with CAPABILITY_NOT_FOUND.
   *
   * Each job gets one final response. Before it, only the skill reports progress. serve answers
   * status queries at once, and those about a finished job with its final response. It answers a
   * repeated request in the same way. If the job was cancelled, or failed with a recoverable fault,
   * a repeated request does it again.
   *
   * A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a skill
   * may give up by throwing the reason of its signal, or Closed. Such jobs, and jobs that have not
   * begun, are not reported: the orchestrator decides what becomes of them. serve then throws
   * Unfinished, as work does. Until the last skill has returned, serve answers requests and accepts
   * cancellations.
   *
   * Requests that arrive before serve is called are queued, up to a thousand and some megabytes.
   * Dropped ones are counted in the log. serve consumes no notices, so work, news or a session role
   * may run beside it. Only one serve may run at a time.
   */
  async serve(skills: Skills, options: ServeOptions = {}): Promise<void> {
    await new Serving(this, skills, options).run();
  }

  /** Returns the agent's membership in a session. */
  openSession(me: Identity = {}): Session {
    return new Session(this, identify(me));
  }
}

/**
 * An agent's membership in a session. Its methods send one message each, or take a role. Use
 * Conn.openSession.
 */
export class Session extends Member {
  declare readonly conn: Conn;

  override chain(correlationId: string): Session {
    return new Session(this.conn, this.identity, correlationId, this.numbers);
  }

  /**
   * Calls lead, which gives out the work of the session, and returns its result. While it runs, the
   * Architect receives news about the tasks.
   */
  async lead<T>(lead: Lead<T> | Lead<T>["do"], options: Options = {}): Promise<T> {
    this.#opened("architect");
    return Architect.lead(this, typeof lead === "function" ? { do: lead } : lead, options.signal);
  }

  /**
   * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
   * aborted. Then it waits for running tasks. It acknowledges each task, reports progress while the
   * task takes long, and always reports the outcome.
   *
   * A repeated assignment is done once. A new assignment of the same task replaces the old one,
   * which is no longer reported; neither is an aborted task. Tasks given up because of a shutdown
   * are not reported; develop then throws Unfinished, as Conn.work does.
   */
  async develop(developer: Developer | ((task: Assigned) => Promise<Loose<Completion> | void>), options: Options = {}): Promise<void> {
    this.#opened("developer");
    await new Developing(this, typeof developer === "function" ? { do: developer } : developer).work(options.signal);
  }

  /**
   * Answers review requests until the agent has to shut down, as develop does. A repeated request
   * is answered once; a request for an aborted task is not answered.
   *
   * If a review fails, there is no result. The architect gets feedback instead, which answers the
   * request and requires an action.
   */
  async review(reviewer: Reviewer | Reviewer["do"], options: Options = {}): Promise<void> {
    this.#opened("reviewer");
    await new Judging(this, typeof reviewer === "function" ? { do: reviewer } : reviewer).work(options.signal);
  }

  #opened(role: AgentType): void {
    const { agent, type } = this.identity;
    if (type !== role) throw new TypeError(`${agent} is of the type ${type}, and this is for one of the type ${role}`);
  }
}
