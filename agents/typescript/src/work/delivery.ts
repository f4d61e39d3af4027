import { spoken } from "../wire/errors.js";
import type { Assignment, Completion, Loose, ReviewRequest, ReviewResult } from "../wire/sessions.js";
import type { TaskState } from "../wire/documents.js";

/** A task to deliver: completed and, with a reviewer, approved. */
export interface Order {
  developer: string;
  /** Without a reviewer, a completion is enough. */
  reviewer?: string | undefined;
  assignment: Loose<Assignment>;
  /** Missing members are taken from the task. */
  review?: Loose<ReviewRequest> | undefined;
  /** Returns the id of an attempt, from the second on. Without it the task keeps its id. */
  rename?(attempt: number): string;
}

/** The outcome of an order. */
export interface Delivery {
  /** The id of the last attempt that was reviewed, or of the first. */
  taskId: string;
  /** The last one. */
  completion: Completion | undefined;
  /** The last one; undefined if there was none. */
  review: ReviewResult | undefined;
  /** The number of reviews. */
  reviews: number;
  /** Accepted although the last review did not approve it. */
  forced: boolean;
}

/** A task has ended, or waits for a person, without the result that the architect waits for. */
export class Ended extends Error {
  override name = "Ended";
  readonly taskId: string;
  /** Undefined if unknown. */
  readonly state: TaskState | undefined;
  readonly why: string;

  constructor(taskId: string, state: TaskState | undefined, why: string) {
    super(state === undefined ? `task ${taskId}: ${why}` : `task ${taskId} is ${state}: ${why}`);
    this.taskId = taskId;
    this.state = state;
    this.why = why;
  }
}

/** The developer has not completed the task. */
export class Incomplete extends Error {
  override name = "Incomplete";

  constructor() {
    super("the developer has not completed it");
  }
}

/** The reviewer has rejected the task. */
export class Rejected extends Error {
  override name = "Rejected";

  constructor() {
    super("the reviewer has rejected it: it has to be planned anew");
  }
}

/** The reviewer cannot review the task. */
export class Unreviewed extends Error {
  override name = "Unreviewed";

  constructor(why: string) {
    super(`the reviewer cannot review it: ${why}`);
  }
}

/** A task was not delivered. The cause is the reason. */
export class Undone extends Error {
  override name = "Undone";
  /** The delivery so far. */
  readonly delivery: Delivery;
  declare readonly cause: unknown;

  constructor(delivery: Delivery, cause: unknown) {
    super(spoken(cause), { cause });
    this.delivery = delivery;
  }
}
