import type { Assignment, Completion, Loose, ReviewRequest, ReviewResult } from "./sessions.js";

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
