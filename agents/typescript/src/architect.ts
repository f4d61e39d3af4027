import { randomUUID } from "node:crypto";
import { type Delivery, type Order } from "./deliver.js";
import { Ended } from "./ended.js";
import { Shutdown } from "./errors.js";
import { assignment, completion, reviewResult } from "./fill.js";
import type { Notice } from "./notices.js";
import type { AgentIdentifier, Said } from "./said.js";
import type { Session } from "./session.js";
import type { Assignment, Loose } from "./sessions.js";
import { SessionTask } from "./sessiontask.js";
import type { TaskState } from "./tasks.js";
import { Linked, Recent, unless } from "./waiting.js";

/** What an agent does that gives out the work of a session, when one function is not enough. */
export interface Lead<T> {
  /** Gives out tasks, and waits for what comes of them. The architect's signal is aborted when the agent has to go. */
  do(architect: Architect): Promise<T>;
  /** Is told every message before it is heeded, in order: progress, feedback and the like go nowhere else. */
  hear?(said: Said): void;
}

/** Gives out tasks and has them reviewed. */
export class Architect {
  readonly session: Session;
  /** Is aborted with Shutdown or Closed, or as the caller of lead says. */
  readonly signal: AbortSignal;
  readonly #stop: Linked;
  // The latest few thousand tasks are known, and each that a caller holds, for it may
  // wait for it. The others are forgotten, with what was said about them.
  readonly #latest = new Recent<SessionTask>();
  readonly #tasks = new Map<string, WeakRef<SessionTask>>();
  readonly #forgotten = new FinalizationRegistry<string>((id) => {
    if (this.#tasks.get(id)?.deref() === undefined) this.#tasks.delete(id);
  });

  private constructor(session: Session, stop: Linked) {
    this.session = session;
    this.signal = stop.signal;
    this.#stop = stop;
  }

  /** @internal */
  static async lead<T>(session: Session, lead: Lead<T>, signal?: AbortSignal): Promise<T> {
    const [stop, listening] = [new Linked(signal), new AbortController()];
    const architect = new Architect(session, stop);
    const heard = architect.#listen(lead, listening.signal);
    try {
      return await lead.do(architect);
    } finally {
      await unless(session.conn.settled(), stop.signal).catch(() => {}); // the agent has to go
      listening.abort();
      await heard;
      stop.letGo();
    }
  }

  /**
   * A task of the session, by its id, no matter which agent assigned it. One that no caller holds is
   * forgotten when there have been a few thousand others since.
   */
  task(id: string): SessionTask {
    return this.#tasks.get(id)?.deref() ?? this.rename(new SessionTask(this, id), id);
  }

  /** Gives a task to a developer, and an id if it has none. */
  async assign(developer: string, work: Loose<Assignment>): Promise<SessionTask> {
    const whole = assignment(work);
    whole.task.task_id ||= randomUUID();
    const task = this.task(whole.task.task_id);
    await task.assign(developer, whole, true);
    return task;
  }

  /**
   * Gives out a task, has it reviewed, and has it revised until it is approved. It returns
   * then, and when it was taken as it is because it had been reviewed often enough.
   *
   * It throws Undone, which has the delivery as far as it came: the cause is Incomplete or
   * Rejected when its developer or its reviewer says so, Unreviewed when it cannot be
   * reviewed, Ended when it was aborted or is in the hands of people, and Undelivered when
   * something that had to be said was refused.
   */
  async deliver(order: Order): Promise<Delivery> {
    return (await this.assign(order.developer, order.assignment)).deliver(order);
  }

  /** Ends the session for all its members. One has to be told: any of them. */
  async abortSession(to: AgentIdentifier, reason: string): Promise<void> {
    await this.session.abort(to, { scope: "session", reason });
  }

  /** @internal Knows a task by an id from now on. It may have others. */
  rename(task: SessionTask, id: string): SessionTask {
    this.#tasks.set(id, new WeakRef(task));
    this.#latest.take(id);
    this.#latest.add(id, task);
    this.#forgotten.register(task, id);
    return task;
  }

  /** Brings what is said to the caller that waits for it. */
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

  /** @internal Looks at a task; undefined when it goes on. */
  async ended(task: string, why: string): Promise<Ended | undefined> {
    const about = { session_id: this.session.identity.session || undefined, task_id: task, limit: 1 };
    const { tasks } = await this.session.conn.askPatiently<{ tasks?: SessionTaskView[] }>("get-session", about, this.signal);
    for (const t of tasks ?? []) {
      if (t.task_id !== task) continue;
      const because = why || `changes are wanted after ${t.iteration ?? 0} of ${t.max_iterations ?? 0} reviews`;
      const over = t.phase === "over";
      if (t.phase === "human") return new Ended(task, "needs_human", because);
      if (over && t.escalated === "abort") return new Ended(task, "cancelled", because); // it may have been done before
      if (over || t.state === "failed" || t.state === "cancelled") return new Ended(task, t.state, because);
    }
    return undefined;
  }
}

/** A task of a session as its members see it. */
export interface SessionTaskView {
  task_id: string;
  phase: "held" | "assigned" | "working" | "completed" | "reviewing" | "revise" | "redesign" | "human" | "over";
  state: TaskState;
  /** Reviews that it has had. */
  iteration: number;
  max_iterations: number;
  /** Its last review was one too many, and what became of it. */
  escalated?: "abort" | "force_approve" | "human_review";
}
