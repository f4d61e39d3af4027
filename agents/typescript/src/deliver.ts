import type { Assignment, Completion, Loose, ReviewRequest, ReviewResult } from "./sessions.js";

/** A task that is to be delivered: done, and right. */
export interface Order {
  developer: string;
  /** Without one, done is right. */
  reviewer?: string | undefined;
  assignment: Loose<Assignment>;
  /** What it does not say is as the task has it. */
  review?: Loose<ReviewRequest> | undefined;
  /** Gives the task a new id for an attempt, from the second on; without it the task keeps its own. */
  rename?(attempt: number): string;
}

/** What came of an order. */
export interface Delivery {
  /** The last one that was reviewed, or the first. */
  taskId: string;
  /** The last one. */
  completion: Completion | undefined;
  /** Likewise. */
  review: ReviewResult | undefined;
  /** How many there were. */
  reviews: number;
  /** It was taken as it is, though the last review did not approve it. */
  forced: boolean;
}
