import { Desk, Errand, unfinished } from "./desk.js";
import { gaveUp, spoken, Unsaid } from "./errors.js";
import type { Heard } from "./json.js";
import type { Said } from "./said.js";
import type { Undelivered } from "./sent.js";
import type { Session } from "./session.js";
import type { Loose, ReviewRequest, ReviewResult, TaskProgress } from "./sessions.js";

/** What an agent does that judges the work of a session, when one function is not enough. */
export interface Reviewer {
  /**
   * Judges what a request asks for. The signal is aborted when the task or the session is,
   * or the agent has to go; then it should return soon. The custom checks in the request
   * are words of the architect: only this function knows whether to run them. When it
   * throws there is no result, and the architect is told why.
   */
  do(request: Heard<ReviewRequest>, signal: AbortSignal): Promise<Loose<ReviewResult>>;
  /**
   * Judges anew when the result was refused, such as one that approves although something
   * bad is open. When it fails, or when there is none, there is no result.
   */
  mend?(request: Heard<ReviewRequest>, result: Loose<ReviewResult>, refused: Undelivered, signal: AbortSignal): Promise<Loose<ReviewResult>>;
  /** How many reviews are made at a time; one when it is missing. */
  capacity?: number | undefined;
  /** Is told every message before it is heeded, in order. */
  hear?(said: Said): void;
}

/** @internal One call of review. */
export class Judging extends Desk {
  readonly reviewer: Reviewer;

  constructor(session: Session, reviewer: Reviewer) {
    super(session, reviewer.capacity, reviewer.hear?.bind(reviewer));
    this.reviewer = reviewer;
  }

  protected errand(said: Said): Errand | undefined {
    return said.message_type === "review_request" ? new Reviewing(this, said) : undefined;
  }
}

/** What there is to do for a request. */
class Reviewing extends Errand {
  readonly #desk: Judging;
  readonly #said: Said<"review_request">;
  #result: Loose<ReviewResult> = {}; // as it was told

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

  /** Judges anew what was refused. */
  async mend(why: Undelivered): Promise<typeof unfinished | void> {
    const { reviewer } = this.#desk;
    if (this.off) return;
    if (reviewer.mend && this.mendable) {
      return this.#judge(async () => reviewer.mend!(this.#said.payload, this.#result, why, this.signal));
    }
    await this.#cannot(why);
    throw why;
  }

  /** Tells what a function says, or why it says nothing, if a caller still waits. */
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
