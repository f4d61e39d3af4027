import { randomUUID } from "node:crypto";
import type { Notice } from "../connection/inbox.js";
import { Linked, unless } from "../connection/waiting.js";
import { Shutdown } from "../wire/errors.js";
import { assignment, completion, reviewResult } from "../wire/fill.js";
import type { AgentIdentifier, Said } from "../wire/said.js";
import type { Assignment, Loose } from "../wire/sessions.js";
import type { Delivery, Order } from "../work/delivery.js";
import type { Member } from "../work/session.js";
import { type SessionTask, SessionTasks } from "../work/sessiontask.js";

/** Configures Session.lead. Agents that need only do can pass a function instead. */
export interface Lead<T> {
  /**
   * Assigns tasks and waits for their results. The architect's signal is aborted when the agent has
   * to shut down.
   */
  do(architect: Architect): Promise<T>;
  /**
   * Called with every message, in order, before it is processed. It is the only way to see progress
   * reports and plain feedback.
   */
  hear?(said: Said): void;
}

/** Assigns tasks and has them reviewed. Its methods may be called concurrently. */
export class Architect {
  readonly session: Member;
  /** Aborted with Shutdown or Closed, or for the reason of the signal given to lead. */
  readonly signal: AbortSignal;
  readonly #stop: Linked;
  readonly #tasks: SessionTasks;

  private constructor(session: Member, stop: Linked) {
    this.session = session;
    this.signal = stop.signal;
    this.#stop = stop;
    this.#tasks = new SessionTasks(session, this.signal);
  }

  /** @internal */
  static async lead<T>(session: Member, lead: Lead<T>, signal?: AbortSignal): Promise<T> {
    const [stop, listening] = [new Linked(signal), new AbortController()];
    const architect = new Architect(session, stop);
    const heard = architect.#listen(lead, listening.signal);
    try {
      return await lead.do(architect);
    } finally {
      await unless(session.conn.settled(), stop.signal).catch(() => {}); // the agent has to shut down
      listening.abort();
      await heard;
      stop.letGo();
    }
  }

  /**
   * Returns the task of the session with this id, no matter which agent assigned it. A task that
   * the caller no longer refers to is forgotten after a few thousand others.
   */
  task(id: string): SessionTask {
    return this.#tasks.get(id);
  }

  /** Assigns a task to a developer. Sets a new id if the task has none. */
  async assign(developer: string, work: Loose<Assignment>): Promise<SessionTask> {
    const whole = assignment(work);
    whole.task.task_id ||= randomUUID();
    const task = this.task(whole.task.task_id);
    await task.assign(developer, whole, true);
    return task;
  }

  /**
   * Assigns a task, has it reviewed, and has it revised until it is approved. Also returns if the
   * session accepts the task because it has used up its reviews.
   *
   * Throws Undone, which has the delivery so far. Its cause is Incomplete or Rejected if the
   * developer or the reviewer says so, and Unreviewed if the task cannot be reviewed. It is Ended
   * if the task was aborted or waits for a person, and Undelivered if a required message was
   * refused.
   */
  async deliver(order: Order): Promise<Delivery> {
    return (await this.assign(order.developer, order.assignment)).deliver(order);
  }

  /** Ends the session for all its members. The message may go to any one of them. */
  async abortSession(to: AgentIdentifier, reason: string): Promise<void> {
    await this.session.abort(to, { scope: "session", reason });
  }

  /** Passes session messages and notices to the tasks that wait for them. */
  async #listen<T>(lead: Lead<T>, enough: AbortSignal): Promise<void> {
    const { conn } = this.session;
    const until = new Linked(this.signal);
    const follow = () => until.abort(enough.reason);
    enough.addEventListener("abort", follow);
    for (let e = await conn.next("all", until.signal); e; e = await conn.next("all", until.signal)) {
      if (e.notice) this.#noticed(e.notice);
      if (e.said) this.#told(e.said, lead);
    }
    until.letGo();
    if (conn.over !== undefined) this.#stop.abort(conn.over);
  }

  #noticed(notice: Notice): void {
    if (notice.name === "shutdown") this.#stop.abort(new Shutdown());
    const cancelled = notice.name === "task-cancelled";
    if ((cancelled || notice.name === "task-updated") && typeof notice.payload.taskId === "string") {
      this.task(notice.payload.taskId).put({ notice: notice.payload, cancelled });
    }
  }

  #told<T>(said: Said, lead: Lead<T>): void {
    this.session.saw(said);
    lead.hear?.(said);
    switch (said.message_type) {
      case "task_completion":
        return this.task(said.payload.task_id).put({ completion: completion(said.payload) });
      case "review_result":
        return this.task(said.payload.task_id).put({ result: reviewResult(said.payload) });
      case "feedback":
        if (said.payload.related_task_id && said.payload.action_required && said.reply_to) {
          this.task(said.payload.related_task_id).put({ feedback: said.payload, answers: said.reply_to });
        }
    }
  }
}
