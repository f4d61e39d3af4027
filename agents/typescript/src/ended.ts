import type { Delivery } from "./deliver.js";
import { spoken } from "./errors.js";
import type { TaskState } from "./tasks.js";

/** A task has come to its end, or is in the hands of people, without what the architect waits for. */
export class Ended extends Error {
  override name = "Ended";
  readonly taskId: string;
  /** Undefined when it cannot be known. */
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

/** The reviewer cannot review the task, and says why. */
export class Unreviewed extends Error {
  override name = "Unreviewed";

  constructor(why: string) {
    super(`the reviewer cannot review it: ${why}`);
  }
}

/** Nothing comes of an order. Its cause says why. */
export class Undone extends Error {
  override name = "Undone";
  /** As far as it came. */
  readonly delivery: Delivery;
  declare readonly cause: unknown;

  constructor(delivery: Delivery, cause: unknown) {
    super(spoken(cause), { cause });
    this.delivery = delivery;
  }
}
