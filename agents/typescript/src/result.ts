/** A result in the form for programs: what it delivers goes to the tasks that need it. */
export interface Result {
  /** What was done, in a line. */
  summary: string;
  changes?: {
    files_modified?: string[];
    files_created?: string[];
    files_deleted?: string[];
    lines_added?: number;
    lines_removed?: number;
  };
  /** By the keys that the task spec names. */
  contracts?: { [key: string]: Contract };
  tests?: { framework?: string; total: number; passed: number; failed: number; skipped: number; coverage_percent?: number };
  /** What else there is, by name. */
  artifacts?: { [name: string]: unknown };
}

/** What a result delivers under a key. */
export interface Contract {
  status: "fulfilled" | "partial" | "skipped";
  data?: unknown;
}

/** Says what kind of document a result is. */
export function result(what: Result): Result & { $schema: string } {
  return { $schema: "orchestratia/task-result/v1", ...what };
}

/** Delivers all that was promised: an object, as a rule. */
export function fulfilled(data: unknown): Contract {
  return { status: "fulfilled", data };
}

/** Delivers a part of what was promised. */
export function partial(data: unknown): Contract {
  return { status: "partial", data };
}

/** Says why nothing is delivered. */
export function skipped(reason: string): Contract {
  return { status: "skipped", data: { reason } };
}
