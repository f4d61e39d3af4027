/** A structured result. Its contracts are delivered to the tasks that depend on them. */
export interface Result {
  /** What was done, in one line. */
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
  /** Anything else, by name. */
  artifacts?: { [name: string]: unknown };
}

/** One delivery of a result. */
export interface Contract {
  status: "fulfilled" | "partial" | "skipped";
  data?: unknown;
}

/** Returns a result with the $schema of the document. */
export function result(what: Result): Result & { $schema: string } {
  return { $schema: "orchestratia/task-result/v1", ...what };
}

/** Returns a contract that is delivered completely. The data is usually an object. */
export function fulfilled(data: unknown): Contract {
  return { status: "fulfilled", data };
}

/** Returns a contract that is delivered in part. */
export function partial(data: unknown): Contract {
  return { status: "partial", data };
}

/** Returns a contract that is not delivered, with the reason. */
export function skipped(reason: string): Contract {
  return { status: "skipped", data: { reason } };
}
