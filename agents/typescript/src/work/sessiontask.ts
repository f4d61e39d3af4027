import { randomUUID } from "node:crypto";
import type { TaskNotice } from "../connection/inbox.js";
import { type Sent, Undelivered } from "../connection/sent.js";
import { Bell, Linked, Recent } from "../connection/waiting.js";
import { Refused } from "../wire/errors.js";
import { reviewRequest } from "../wire/fill.js";
import {
  type Assignment, type Completion, type Feedback, type Finding, type Loose, type ReviewRequest, type ReviewResult,
  type ReviewSummary, touched,
} from "../wire/sessions.js";
import type { SessionTaskView } from "../wire/documents.js";
import { type Delivery, Ended, Incomplete, type Order, Rejected, Undone, Unreviewed } from "./delivery.js";
import type { Member } from "./session.js";

/** An update about a task: one of these. */
interface Tiding {
  completion?: Completion;
  result?: ReviewResult;
  feedback?: Feedback;
  /** The message that the feedback answers. */
  answers?: string;
  notice?: TaskNotice;
  cancelled?: boolean;
}

/** Returns the kind of an update. An update is dropped only for another of its kind. */
function kind(t: Tiding): string {
  return t.completion ? "completion" : t.result ? "result" : t.feedback ? "feedback" : t.cancelled ? "cancelled" : "notice";
}

/** Bounds the queued updates of each kind. */
const mostTidings = 64;

/** How long to wait for a message that must be on its way, in milliseconds. */
const lastWord = 10_000;

/** A task that an architect has assigned. Only one call at a time may wait for it. */
export class SessionTask {
  readonly #tasks: SessionTasks;
  readonly #bell = new Bell();
  readonly #reviews: ReviewSummary[] = [];
  #id: string;
  #developer = "";
  #work: Assignment | undefined; // as it was assigned last
  #first = ""; // the first description of the task
  #chain: string | undefined;
  #done: Completion | undefined;
  #sent: Sent | undefined; // the last assignment
  #tidings: Tiding[] = []; // updates not taken yet

  /** @internal */
  constructor(tasks: SessionTasks, id: string) {
    this.#tasks = tasks;
    this.#id = id;
  }

  get id(): string {
    return this.#id;
  }

  /** @internal */
  put(tiding: Tiding): void {
    const alike = this.#tidings.filter((t) => kind(t) === kind(tiding));
    if (alike.length >= mostTidings) this.#tidings.splice(this.#tidings.indexOf(alike[0]!), 1); // no call takes it
    this.#tidings.push(tiding);
    this.#bell.ring();
  }

  /** @internal Sends an assignment with the correlation_id of the first one. */
  async assign(developer: string, work: Assignment, first = false): Promise<void> {
    this.#id = work.task.task_id;
    this.#developer = developer;
    this.#work = work;
    if (first) this.#first = work.task.task_description;
    this.#sent = await this.#session().assign(developer, work);
    this.#chain = this.#sent.correlationId;
  }

  /** Returns the session with the task's correlation_id. */
  #session(): Member {
    const { session } = this.#tasks;
    const chain = this.#chain ?? session.correlationId;
    return chain === undefined ? session : session.chain(chain);
  }

  /**
   * Waits for the completion of the task. Throws Undelivered if the assignment is refused, and
   * Ended if the task has ended without a completion.
   */
  async completion(): Promise<Completion> {
    const { completion } = await this.#wait(this.#sent, (t) => t.completion !== undefined, true);
    this.#done = completion!;
    return this.#done;
  }

  /**
   * Has the task reviewed and waits for the result. Missing members of the request are filled in
   * from the task. Throws the errors of completion, and Unreviewed if the reviewer cannot review
   * it.
   */
  async review(reviewer: string, request: Loose<ReviewRequest> = {}): Promise<ReviewResult> {
    const review = asked(request, {
      id: request.review_id || "review-" + randomUUID(),
      task: this.#id,
      done: this.#done,
      first: this.#first,
      work: this.#work,
      reviews: this.#reviews,
    });
    const sent = await this.#session().requestReview(reviewer, review);
    const answer = (t: Tiding) => (t.result !== undefined && t.result.review_id === review.review_id) || t.answers === sent.messageId;
    const { result, feedback } = await this.#wait(sent, answer, false);
    if (result === undefined) throw new Unreviewed(`${feedback?.subject}: ${feedback?.content}`);
    this.#reviews.push({ review_number: this.#reviews.length + 1, verdict: result.verdict, key_findings: keyFindings(result) });
    return result;
  }

  /**
   * Assigns the task to its developer again. The findings of the review are in the description and
   * in a previous attempt. A new id becomes that of the task.
   */
  async revise(result: ReviewResult, id = this.#id): Promise<void> {
    this.#tasks.rename(this, id);
    const said = wanted(result);
    const task = this.#work?.task;
    const attempts = task?.context.previous_attempts ?? [];
    const attempt = { attempt_number: attempts.length + 1, outcome: result.verdict, feedback: said };
    await this.assign(this.#developer, {
      ...this.#work!,
      task: {
        ...task!,
        task_id: id,
        task_description: this.#first === "" ? said : `${this.#first}\n\n${said}`,
        context: { ...task!.context, previous_attempts: [...attempts, attempt] },
      },
    });
  }

  /** Aborts the task and wakes the caller that waits for it. */
  async abort(reason: string, cleanup = false): Promise<void> {
    const to = { agent_id: this.#developer, agent_type: "developer" } as const;
    const id = this.#id;
    await this.#session().abort(to, { scope: "task", target_id: id, reason, cleanup_required: cleanup });
    this.put({ notice: { taskId: id, reason }, cancelled: true });
  }

  /**
   * Like Architect.deliver, for a task that is already assigned, such as a dependency of the next
   * one.
   */
  async deliver(order: Order): Promise<Delivery> {
    const d: Delivery = { taskId: this.#id, completion: undefined, review: undefined, reviews: 0, forced: false };
    try {
      while (await this.#attempt(order, d));
    } catch (error) {
      const why = d.reviews > 0 ? await this.#settled(d.taskId, error) : error;
      if (why !== undefined) throw new Undone(d, why);
    }
    d.forced = d.review?.verdict === "changes_requested";
    return d;
  }

  /** Waits for a completion and its review. Reports whether another attempt follows. */
  async #attempt(order: Order, d: Delivery): Promise<boolean> {
    d.completion = await this.completion();
    const { status } = d.completion;
    if (status === "failed" || (!order.reviewer && status !== "completed")) throw new Incomplete();
    if (!order.reviewer) return false;
    d.review = await this.review(order.reviewer, order.review);
    d.taskId = this.#id;
    d.reviews++;
    if (d.review.verdict === "approved") return false;
    if (d.review.verdict === "rejected") throw new Rejected();
    await this.#mayRevise();
    await this.revise(d.review, order.rename?.(d.reviews + 1) ?? this.#id);
    return true;
  }

  /**
   * Throws Ended if the session has ended the task or passed it to a person, because its reviews
   * are used up. A revision under another id would count as a new task.
   */
  async #mayRevise(): Promise<void> {
    const ended = await this.#tasks.ended(this.#id, "").catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error; // the refusal of the assignment will say so
    });
    if (ended) throw ended;
  }

  /**
   * Returns the final error of a reviewed task that cannot be revised. Returns undefined if the
   * session has marked the task as done, as its on_max setting may require.
   */
  async #settled(task: string, error: unknown): Promise<unknown> {
    let ended = error instanceof Ended ? error : undefined;
    if (error instanceof Undelivered && ["task_id_taken", "iterations_used_up"].includes(error.reason)) {
      ended = await this.#tasks.ended(task, error.message).catch(() => undefined); // the state is not available
    }
    if (ended === undefined) return error;
    return ended.state === "done" ? undefined : ended;
  }

  /**
   * Waits for an update. Throws if the message sent is refused, or if a notice reports the end of
   * the task.
   */
  async #wait(sent: Sent | undefined, wanted: (t: Tiding) => boolean, done: boolean): Promise<Tiding> {
    const refused = new Linked(this.#tasks.signal);
    void sent?.refused.then((why) => refused.abort(why));
    try {
      let ended: unknown;
      let late: number | undefined;
      for (;;) {
        const rung = this.#bell.rung;
        const tiding = this.#find(wanted);
        if (tiding) return tiding;
        const notice = this.#find((t) => t.notice !== undefined);
        if (notice) {
          const why = await this.#heed(notice).catch((error: unknown) => error);
          if (why === undefined) continue;
          const known = done && why instanceof Ended && (why.state === "done" || why.state === "failed"); // see lastWord
          ended = why;
          late = Date.now() + (known ? lastWord : 0); // it may have come meanwhile
          continue;
        }
        if (late !== undefined && Date.now() >= late) throw ended;
        await this.#bell.after(rung, refused.signal, late === undefined ? undefined : late - Date.now());
      }
    } finally {
      refused.letGo();
    }
  }

  #find(wanted: (t: Tiding) => boolean): Tiding | undefined {
    const at = this.#tidings.findIndex(wanted);
    return at < 0 ? undefined : this.#tidings.splice(at, 1)[0];
  }

  /**
   * Returns an Ended if a notice means that the task does not go on. Notices describe changes only
   * in words, so this asks for the state of the task. A task that the orchestrator does not show
   * counts as ended.
   */
  async #heed({ notice, cancelled }: Tiding): Promise<Ended | undefined> {
    const { taskId, message = "", reason = "" } = notice!;
    if (cancelled) return new Ended(taskId, "cancelled", reason);
    return this.#tasks.ended(taskId, message).catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error;
      return new Ended(taskId, undefined, message);
    });
  }
}

/** @internal The tasks of a session, by id. */
export class SessionTasks {
  readonly session: Member;
  /** Aborted when the agent has to shut down. */
  readonly signal: AbortSignal;
  // The latest few thousand tasks are kept, and every task that a caller still refers to. Others
  // are dropped with their updates.
  readonly #latest = new Recent<SessionTask>();
  readonly #byId = new Map<string, WeakRef<SessionTask>>();
  readonly #forgotten = new FinalizationRegistry<string>((id) => {
    if (this.#byId.get(id)?.deref() === undefined) this.#byId.delete(id);
  });

  constructor(session: Member, signal: AbortSignal) {
    this.session = session;
    this.signal = signal;
  }

  /** Returns the task with this id, no matter which agent assigned it. */
  get(id: string): SessionTask {
    return this.#byId.get(id)?.deref() ?? this.rename(new SessionTask(this, id), id);
  }

  /** Registers a task under an id. A task may have several ids. */
  rename(task: SessionTask, id: string): SessionTask {
    this.#byId.set(id, new WeakRef(task));
    this.#latest.take(id);
    this.#latest.add(id, task);
    this.#forgotten.register(task, id);
    return task;
  }

  /** Asks for the state of a task. Returns undefined if the task goes on. */
  async ended(task: string, why: string): Promise<Ended | undefined> {
    const about = { session_id: this.session.identity.session || undefined, task_id: task, limit: 1 };
    const { tasks } = await this.session.conn.askPatiently<{ tasks?: SessionTaskView[] }>("get-session", about, this.signal);
    for (const t of tasks ?? []) {
      if (t.task_id !== task) continue;
      const because = why || `changes are requested after ${t.iteration ?? 0} of ${t.max_iterations ?? 0} reviews`;
      const over = t.phase === "over";
      if (t.phase === "human") return new Ended(task, "needs_human", because);
      if (over && t.escalated === "abort") return new Ended(task, "cancelled", because); // it may have been done before
      if (over || t.state === "failed" || t.state === "cancelled") return new Ended(task, t.state, because);
    }
    return undefined;
  }
}

/** Returns a review request with missing members filled in from the task. */
export function asked(
  given: Loose<ReviewRequest>,
  as: { id: string; task: string; done: Completion | undefined; first: string; work: Assignment | undefined; reviews: ReviewSummary[] },
): ReviewRequest {
  const { scope = {}, context = {} } = given;
  const previous = context.previous_reviews ?? (as.reviews.length > 0 ? [...as.reviews] : undefined);
  return reviewRequest({
    ...given,
    review_id: as.id,
    task_id: as.task,
    scope: {
      ...scope,
      files: scope.files ?? (as.done ? touched(as.done.changes) : []),
      focus_areas: scope.focus_areas ?? ["logic"],
    },
    context: {
      ...context,
      task_description: context.task_description || as.first,
      acceptance_criteria: context.acceptance_criteria ?? as.work?.task.acceptance_criteria ?? [],
      ...(previous && { previous_reviews: previous }),
    },
  });
}

/** Returns the changes that a result asks for, as text. */
export function wanted(r: ReviewResult): string {
  const changes = (r.required_changes ?? []).map((c) => `\n- ${c.priority}: ${c.description}`);
  const open = r.findings.filter((f) => !f.fixed_in_iteration).map((f) => `\n- ${inWords(f)}`);
  return `The review says ${r.verdict}: ${r.summary}` + changes.join("") + open.join("");
}

/** Returns the open findings of a result, for the next reviewer. */
export function keyFindings(r: ReviewResult): string[] {
  return r.findings.filter((f) => !f.fixed_in_iteration && f.severity !== "suggestion").map(inWords);
}

/** Returns a finding in one line. */
export function inWords(f: Finding): string {
  const place = f.location.line_start ? `${f.location.file}:${f.location.line_start}` : f.location.file;
  const suggestion = f.suggestion ? ` Suggestion: ${f.suggestion}` : "";
  return `${f.severity} (${f.category}) in ${place}: ${f.description}${suggestion}`;
}
