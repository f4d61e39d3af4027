import { randomUUID } from "node:crypto";
import type { Architect } from "./architect.js";
import type { Delivery, Order } from "./deliver.js";
import { Ended, Incomplete, Rejected, Undone, Unreviewed } from "./ended.js";
import { Refused } from "./errors.js";
import type { TaskNotice } from "./notices.js";
import { asked, keyFindings, wanted } from "./revision.js";
import { type Sent, Undelivered } from "./sent.js";
import type { Session } from "./session.js";
import type { Assignment, Completion, Feedback, Loose, ReviewRequest, ReviewResult, ReviewSummary } from "./sessions.js";
import { Bell, Linked } from "./waiting.js";

/** Something new about a task: one of these. */
interface Tiding {
  completion?: Completion;
  result?: ReviewResult;
  feedback?: Feedback;
  /** The message that the feedback answers. */
  answers?: string;
  notice?: TaskNotice;
  cancelled?: boolean;
}

/** Tells those apart of which one does not stand for another: a completion is not lost to what is said about it. */
function kind(t: Tiding): string {
  return t.completion ? "completion" : t.result ? "result" : t.feedback ? "feedback" : t.cancelled ? "cancelled" : "notice";
}

/** How many of a kind wait for a caller to look. */
const mostTidings = 64;

/** How long one waits for what must be on its way, in milliseconds. */
const lastWord = 10_000;

/** A task that an architect has given out. One at a time waits for what becomes of it. */
export class SessionTask {
  readonly #architect: Architect;
  readonly #bell = new Bell();
  readonly #reviews: ReviewSummary[] = [];
  #id: string;
  #developer = "";
  #work: Assignment | undefined; // as it was assigned last
  #first = ""; // what is to be done, as it was said first
  #chain: string | undefined;
  #done: Completion | undefined;
  #sent: Sent | undefined; // the last assignment
  #tidings: Tiding[] = []; // not looked for yet

  /** @internal */
  constructor(architect: Architect, id: string) {
    this.#architect = architect;
    this.#id = id;
  }

  get id(): string {
    return this.#id;
  }

  /** @internal */
  put(tiding: Tiding): void {
    const alike = this.#tidings.filter((t) => kind(t) === kind(tiding));
    if (alike.length >= mostTidings) this.#tidings.splice(this.#tidings.indexOf(alike[0]!), 1); // it is not looked for
    this.#tidings.push(tiding);
    this.#bell.ring();
  }

  /** @internal Says an assignment, in the chain of the first one. */
  async assign(developer: string, work: Assignment, first = false): Promise<void> {
    this.#id = work.task.task_id;
    this.#developer = developer;
    this.#work = work;
    if (first) this.#first = work.task.task_description;
    this.#sent = await this.#session().assign(developer, work);
    this.#chain = this.#sent.correlationId;
  }

  /** The session for messages about the task. */
  #session(): Session {
    const { session } = this.#architect;
    const chain = this.#chain ?? session.correlationId;
    return chain === undefined ? session : session.chain(chain);
  }

  /**
   * Waits for what comes of the task. It throws Undelivered when the developer is not given
   * it, and Ended when it has come to its end without.
   */
  async completion(): Promise<Completion> {
    const { completion } = await this.#wait(this.#sent, (t) => t.completion !== undefined, true);
    this.#done = completion!;
    return this.#done;
  }

  /**
   * Has the task reviewed, and waits for the result. What the request does not say is as the
   * task has it. It throws what completion does, and Unreviewed when the reviewer says so.
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
   * Gives the task to its developer again, with what a review has found: in the description,
   * and as a previous attempt. With another id, that is the task's from then on.
   */
  async revise(result: ReviewResult, id = this.#id): Promise<void> {
    this.#architect.rename(this, id);
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

  /** Ends the task. A caller that waits for it is told, too. */
  async abort(reason: string, cleanup = false): Promise<void> {
    const to = { agent_id: this.#developer, agent_type: "developer" } as const;
    const id = this.#id;
    await this.#session().abort(to, { scope: "task", target_id: id, reason, cleanup_required: cleanup });
    this.put({ notice: { taskId: id, reason }, cancelled: true });
  }

  /** Is Architect.deliver for a task that has been assigned, such as one on which the next one depends. */
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

  /** A completion and its review. It says whether there is to be another. */
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
   * Throws Ended when the session has taken the task out of the architect's hands, because it
   * was reviewed as often as it may be. A revision under another id would be a new task to it.
   */
  async #mayRevise(): Promise<void> {
    const ended = await this.#architect.ended(this.#id, "").catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error; // else the session says it when the task is assigned
    });
    if (ended) throw ended;
  }

  /**
   * What became of a task that was reviewed, when it cannot be revised any more: it is for
   * the session to say what happens to one that was reviewed too often. Undefined is well.
   */
  async #settled(task: string, error: unknown): Promise<unknown> {
    let ended = error instanceof Ended ? error : undefined;
    if (error instanceof Undelivered && ["task_id_taken", "iterations_used_up"].includes(error.reason)) {
      ended = await this.#architect.ended(task, error.message).catch(() => undefined); // then the refusal is all there is
    }
    if (ended === undefined) return error;
    return ended.state === "done" ? undefined : ended;
  }

  /** Waits for a tiding. The message that it answers may be refused, and a notice may say that there will be none. */
  async #wait(sent: Sent | undefined, wanted: (t: Tiding) => boolean, done: boolean): Promise<Tiding> {
    const refused = new Linked(this.#architect.signal);
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
          const known = done && why instanceof Ended && (why.state === "done" || why.state === "failed"); // that was said
          ended = why;
          late = Date.now() + (known ? lastWord : 0); // unless it has come meanwhile
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
   * What a notice means for the task: Ended when it goes on no more. What is new about it is
   * told in words alone, so the task is looked at; one that cannot be looked at has ended,
   * for nothing else is told of such a task.
   */
  async #heed({ notice, cancelled }: Tiding): Promise<Ended | undefined> {
    const { taskId, message = "", reason = "" } = notice!;
    if (cancelled) return new Ended(taskId, "cancelled", reason);
    return this.#architect.ended(taskId, message).catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error;
      return new Ended(taskId, undefined, message);
    });
  }
}
