import type { Heard } from "./json.js";

/** Why a request was refused, for programs. There are no other codes. */
export type Code = "INVALID_REQUEST" | "INVALID_MESSAGE_TYPE" | "UNAUTHORIZED" | "NOT_FOUND" | "TIMEOUT" | "INTERNAL_ERROR";

/** What goes with a refusal, such as a reason, or the place of what is wrong. */
export type Details = { [key: string]: unknown };

/** Reasons tell apart what has no code of its own. */
export const Reason = {
  /** Too many messages; later it may be granted. */
  Limited: "rate_limited",
  /** It does not fit what is. */
  Conflict: "conflict",
  /** Nor does it fit the state of the task, such as one that has ended. */
  WrongState: "wrong_state",
  /** The task waits for others. */
  Blocked: "blocked",
} as const;

/** What an orchestrator says when it refuses something. */
export interface Refusal {
  code: Code;
  message: string;
  details?: Heard<Details> | undefined;
}

/** The orchestrator's no. Its message is what the orchestrator says. */
export class Refused extends Error {
  override name = "Refused";
  readonly code: Code;
  /** With the text of it all as their raw. */
  readonly details: Heard<Details> | undefined;
  /** What was refused, such as "get-task". */
  readonly operation: string | undefined;

  constructor(why: Refusal, operation?: string) {
    super(why.message);
    this.code = why.code;
    this.details = why.details;
    this.operation = operation;
  }

  /** What the details give as a reason, "" for none. */
  get reason(): string {
    const reason = this.details?.["reason"];
    return typeof reason === "string" ? reason : "";
  }

  /** All of it in a text for people. */
  get spoken(): string {
    return `${this.operation ? this.operation + ": " : ""}${this.message} (${this.code})`;
  }
}

/** Nothing was said: what was to be said makes no sense, and the orchestrator would pass over it in silence. */
export class Unsaid extends Error {
  override name = "Unsaid";
}

/**
 * The orchestrator has closed the stream. With asked, a request may have had its
 * effect: it was written, and there will be no answer. Without, it has none.
 */
export class Closed extends Error {
  override name = "Closed";
  readonly asked: boolean;

  constructor(message: string, asked: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.asked = asked;
  }
}

/** The orchestrator cannot be told anything any more: a write has failed. */
export class Torn extends Error {
  override name = "Torn";
}

/** A task was cancelled: why the signal of a handler is aborted, and what came of work that was delegated. */
export class Cancelled extends Error {
  override name = "Cancelled";
  /** Why it was cancelled. */
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super(`the task was cancelled${reason === "" ? "" : `: ${reason}`}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** Why the signal of a handler is aborted when the agent is to shut down. */
export class Shutdown extends Error {
  override name = "Shutdown";

  constructor() {
    super("the agent is to shut down");
  }
}

/** Why the signal of a developer is aborted whose task was assigned again. */
export class Again extends Error {
  override name = "Again";

  constructor() {
    super("the task was assigned again");
  }
}

/** No answer will come: the task went on without. */
export class Withdrawn extends Error {
  override name = "Withdrawn";

  constructor() {
    super("the question was withdrawn");
  }
}

/** Some tasks were given up because the agent has to go. One that ends well in spite of it would say that they are done. */
export class Unfinished extends Error {
  override name = "Unfinished";
  readonly tasks: number;

  constructor(tasks: number, cause: unknown) {
    super(`${tasks} of the tasks left unfinished: ${spoken(cause)}`, { cause });
    this.tasks = tasks;
  }
}

/** For the mail of a worker: the message can never be dealt with, and why. The code is for programs. */
export class Fatal extends Error {
  override name = "Fatal";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What an error says, in one text for others: what was refused has its code. */
export function spoken(error: unknown): string {
  if (error instanceof Error) return String("spoken" in error ? error.spoken : error.message);
  try {
    return String(error);
  } catch {
    return "something that has no words"; // such as an object without a prototype
  }
}

/** What an error says, or that it says nothing: something must be said. */
export function words(error: unknown): string {
  const text = spoken(error);
  return text.trim() === "" ? "it failed without a word" : text;
}

/** Says whether an error is a refusal with a reason. */
export function refusedFor(reason: string, error: unknown): boolean {
  return error instanceof Refused && error.reason === reason;
}

/**
 * Says whether an error means no more than that the agent has to go. The end of the
 * stream may show in a question before the notice was heeded.
 */
export function gaveUp(signal: AbortSignal, error: unknown): boolean {
  if (error instanceof Closed) return true;
  if (!signal.aborted || !(error instanceof Error)) return error !== undefined && signal.aborted && error === signal.reason;
  return error === signal.reason || error.name === "AbortError" || error.cause === signal.reason;
}
