import type { Heard } from "./json.js";

/** The code of a refusal, for programs. The list is complete. */
export type Code = "INVALID_REQUEST" | "INVALID_MESSAGE_TYPE" | "UNAUTHORIZED" | "NOT_FOUND" | "TIMEOUT" | "INTERNAL_ERROR";

/** The details of a refusal, such as a reason, or the place of an error. */
export type Details = { [key: string]: unknown };

/** Reasons for refusals that share a code. */
export const Reason = {
  /** Too many messages; retry later. */
  Limited: "rate_limited",
  /** Conflicts with the current state. */
  Conflict: "conflict",
  /** The task is in the wrong state, for example ended. */
  WrongState: "wrong_state",
  /** The task waits for others. */
  Blocked: "blocked",
} as const;

/** The longest time in milliseconds that a refusal may name. A longer one is not believed. */
const longestRetryAfter = 48 * 3_600_000;

/** A refusal of the orchestrator. */
export interface Refusal {
  code: Code;
  message: string;
  details?: Heard<Details> | undefined;
}

/** The error of a refused request. Its message is that of the orchestrator. */
export class Refused extends Error {
  override name = "Refused";
  readonly code: Code;
  /** An object with its text as raw. */
  readonly details: Heard<Details> | undefined;
  /** The refused operation, such as "get-task". */
  readonly operation: string | undefined;

  constructor(why: Refusal, operation?: string) {
    super(why.message);
    this.code = why.code;
    this.details = why.details;
    this.operation = operation;
  }

  /** The reason in the details, or "". */
  get reason(): string {
    const reason = this.details?.["reason"];
    return typeof reason === "string" ? reason : "";
  }

  /**
   * The milliseconds to wait before the same is sent again; 0 if the refusal does not say. A refusal
   * with Reason.Limited has it.
   */
  get retryAfter(): number {
    const after = this.details?.["retry_after_ms"];
    return typeof after === "number" && after >= 0 && after <= longestRetryAfter ? after : 0;
  }

  /** The operation, the message and the code. */
  get spoken(): string {
    return `${this.operation ? this.operation + ": " : ""}${this.message} (${this.code})`;
  }
}

/** The message is invalid, so it was not sent. */
export class Unsaid extends Error {
  override name = "Unsaid";
}

/**
 * The orchestrator has closed the stream. If asked is true, the request was sent and may have been
 * carried out. Otherwise it has no effect.
 */
export class Closed extends Error {
  override name = "Closed";
  readonly asked: boolean;

  constructor(message: string, asked: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.asked = asked;
  }
}

/** Writing to the orchestrator failed. Nothing more is written. */
export class Torn extends Error {
  override name = "Torn";
}

/**
 * A task was cancelled. It is the reason of a handler's signal, and the error of delegated work.
 */
export class Cancelled extends Error {
  override name = "Cancelled";
  /** Why it was cancelled. */
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super(`the task was cancelled${reason === "" ? "" : `: ${reason}`}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** The reason of a handler's signal when the agent has to shut down. */
export class Shutdown extends Error {
  override name = "Shutdown";

  constructor() {
    super("the agent is to shut down");
  }
}

/** The reason of a developer's signal when its task was assigned again. */
export class Again extends Error {
  override name = "Again";

  constructor() {
    super("the task was assigned again");
  }
}

/** A question about a task gets no answer: the task went on without it. */
export class Withdrawn extends Error {
  override name = "Withdrawn";

  constructor() {
    super("the question was withdrawn");
  }
}

/**
 * Some tasks were given up because the agent has to shut down. The agent must exit with a failure,
 * because a successful exit may complete them.
 */
export class Unfinished extends Error {
  override name = "Unfinished";
  readonly tasks: number;

  constructor(tasks: number, cause: unknown) {
    super(`${tasks} of the tasks left unfinished: ${spoken(cause)}`, { cause });
    this.tasks = tasks;
  }
}

/** Thrown by a mail function if retrying a message cannot help. The code is for programs. */
export class Fatal extends Error {
  override name = "Fatal";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Returns the text of an error. For a refusal it includes the code. */
export function spoken(error: unknown): string {
  if (error instanceof Error) return String("spoken" in error ? error.spoken : error.message);
  try {
    return String(error);
  } catch {
    return "something that has no words"; // such as an object without a prototype
  }
}

/** Returns the text of an error, which is never blank. */
export function words(error: unknown): string {
  const text = spoken(error);
  return text.trim() === "" ? "it failed without a word" : text;
}

/** Reports whether an error is a refusal with a reason. */
export function refusedFor(reason: string, error: unknown): boolean {
  return error instanceof Refused && error.reason === reason;
}

/**
 * Reports whether an error only means that the agent has to shut down. A request may fail at the
 * end of the stream before the shutdown notice is processed.
 */
export function gaveUp(signal: AbortSignal, error: unknown): boolean {
  if (error instanceof Closed) return true;
  if (!signal.aborted || !(error instanceof Error)) return error !== undefined && signal.aborted && error === signal.reason;
  return error === signal.reason || error.name === "AbortError" || error.cause === signal.reason;
}
