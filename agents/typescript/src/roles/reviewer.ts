import type { Undelivered } from "../connection/sent.js";
import { gaveUp, spoken, Unsaid } from "../wire/errors.js";
import type { Heard } from "../wire/json.js";
import type { Said } from "../wire/said.js";
import type { Loose, ReviewRequest, ReviewResult, TaskProgress } from "../wire/sessions.js";
import type { Member } from "../work/session.js";
import { Desk, Errand, unfinished } from "./desk.js";

/** Configures Session.review. Agents that need only do can pass a function instead. */
export interface Reviewer {
  /**
   * Reviews what a request asks for. The signal is aborted when the task or the session is aborted,
   * or when the agent has to shut down; do should then return soon. The request's custom checks are
   * text of the architect: only do can decide whether to run them. If do throws, there is no
   * result, and the architect is told why.
   */
  do(request: Heard<ReviewRequest>, signal: AbortSignal): Promise<Loose<ReviewResult>>;
  /**
   * Returns a new result after one was refused, for example because it approves despite an open
   * critical finding. If correct is missing or throws, there is no result.
   */
  correct?(request: Heard<ReviewRequest>, result: Loose<ReviewResult>, refused: Undelivered, signal: AbortSignal): Promise<Loose<ReviewResult>>;
  /** The number of reviews done at a time, 1 by default. */
  capacity?: number | undefined;
  /** Called with every message, in order, before it is processed. */
  hear?(said: Said): void;
}

/** @internal One call of review. */
export class Judging extends Desk {
  readonly reviewer: Reviewer;

  constructor(session: Member, reviewer: Reviewer) {
    super(session, reviewer.capacity, reviewer.hear?.bind(reviewer));
    this.reviewer = reviewer;
  }

  protected errand(said: Said): Errand | undefined {
    return said.message_type === "review_request" ? new Reviewing(this, said) : undefined;
  }
}

/** The errand of a review request. */
class Reviewing extends Errand {
  readonly #desk: Judging;
  readonly #said: Said<"review_request">;
  #result: Loose<ReviewResult> = {}; // as sent

  constructor(desk: Judging, said: Said<"review_request">) {
    super(said.payload.review_id, said.payload.task_id);
    this.#desk = desk;
    this.#said = said;
  }

  status(): TaskProgress {
    return { task_id: this.task, progress_percent: 0, current_step: `review ${this.key}` };
  }

  do(): Promise<typeof unfinished | void> {
    return this.#judge(async () => {
      const leave = await this.#desk.turn(this);
      try {
        return await this.#desk.reviewer.do(this.#said.payload, this.signal);
      } finally {
        leave();
      }
    });
  }

  /** Makes a new review after the result was refused. */
  async correct(why: Undelivered): Promise<typeof unfinished | void> {
    const { reviewer } = this.#desk;
    if (this.off) return;
    if (reviewer.correct && this.correctable) {
      return this.#judge(async () => reviewer.correct!(this.#said.payload, this.#result, why, this.signal));
    }
    await this.#cannot(why);
    throw why;
  }

  /**
   * Calls a function of the reviewer and sends the result, or feedback if there is none. Sends
   * nothing if the review was cancelled or replaced.
   */
  async #judge(judge: () => Promise<Loose<ReviewResult>>): Promise<typeof unfinished | void> {
    try {
      this.#result = await judge();
    } catch (error) {
      if (this.off) return;
      return gaveUp(this.signal, error) ? unfinished : this.#cannot(error);
    }
    if (this.off) return;
    try {
      this.#desk.expects(this, await this.#desk.session.judge(this.#said, this.#result ?? {}));
    } catch (error) {
      if (!(error instanceof Unsaid)) throw error;
      await this.#cannot(new Error(`its result cannot be told: ${error.message}`));
    }
  }

  async #cannot(why: unknown): Promise<void> {
    await this.#desk.session.answer(this.#said, {
      feedback_type: "clarification",
      subject: `the review ${this.key} cannot be made`,
      content: spoken(why),
      action_required: true,
      related_task_id: this.task,
    });
  }
}
