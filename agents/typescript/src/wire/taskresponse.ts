import { blank } from "./envelope.js";
import { Cancelled } from "./errors.js";
import { Fault, FaultCode, type TaskFault } from "./fault.js";
import { type Heard, Raw, read, withRaw } from "./json.js";
import type { Part } from "./part.js";
import { checkedLine, wrongWith } from "./taskline.js";

const statuses = ["pending", "in_progress", "completed", "failed", "cancelled", "input_required"] as const;
/** The status of delegated work. */
export type ResponseStatus = (typeof statuses)[number];

/**
 * A status or the outcome of delegated work. The final response is completed, failed or cancelled.
 */
export type TaskResponse = TaskPending | TaskCompleted | TaskFailed | TaskGivenUp | TaskAsks;

interface Whatever {
  /** The id of the task. */
  id: string;
  /** Free text. */
  message?: string;
  /** How the work was done. */
  metadata: ResponseMetadata;
  /** The products of the work. */
  artifacts: Artifact[];
}

/** Work that has not begun, or is running. */
export interface TaskPending extends Whatever {
  status: "pending" | "in_progress";
}

/** Work that succeeded. */
export interface TaskCompleted extends Whatever {
  status: "completed";
  /** Any value; raw.at("result") of the response has it digit for digit. */
  result: any;
}

/** Work that failed. */
export interface TaskFailed extends Whatever {
  status: "failed";
  error: TaskFault;
}

/** Work that was cancelled. */
export interface TaskGivenUp extends Whatever {
  status: "cancelled";
  /** The reason, if one was given. */
  error?: TaskFault;
}

/** Work that needs input to go on. Delegation.update sends it. */
export interface TaskAsks extends Whatever {
  status: "input_required";
  question: string;
  /** The allowed answers; if empty, any. */
  options: TaskOption[];
}

/** An answer that a question allows. */
export interface TaskOption {
  label: string;
  value: string;
}

/** How work was done, as far as it was reported. */
export interface ResponseMetadata {
  startedAt?: string;
  completedAt?: string;
  duration_ms?: number;
  /** The agent that did it. */
  agent?: string;
  /** The number of retries. */
  retryCount?: number;
}

/** A product of the work. */
export interface Artifact {
  name: string;
  /** A MIME type. */
  type: string;
  content: string;
  /** Where the content is stored, if elsewhere. */
  ref?: string;
}

/** Reports whether this is the last response. */
export function isFinal(r: TaskResponse): boolean {
  return r.status === "completed" || r.status === "failed" || r.status === "cancelled";
}

/** Returns the error of failed or cancelled work. */
export function troubleOf(r: TaskFailed | TaskGivenUp): Fault | Cancelled {
  const why = r.error && new Fault(r.error.code, r.error.message, r.error);
  if (r.status === "failed") return why!;
  return new Cancelled(why?.message ?? r.message ?? "", why);
}

/** Encodes a response. Throws Unsaid if it is invalid. */
export function spellResponse(members: { id: string; status: ResponseStatus; [member: string]: unknown }): string {
  return checkedLine(members, (p) => {
    judge(p);
    p.each("artifacts", (a) => {
      if (/^sha256:[0-9a-f]{64}$/.test(a.text("ref", "optional"))) a.wrong("ref", "must not be one that the orchestrator gives to what it keeps");
    }, "optional");
  });
}

/** Texts for a response that gives no reason, or no question. */
const unexplained = "The task failed, and its agent gave no reason";
const unasked = "The agent needs input to continue, and did not specify it";

/** Reads a response. Returns undefined if it is invalid. */
export function readResponse(raw: Raw): Heard<TaskResponse> | undefined {
  if (wrongWith(raw, judge) !== undefined) return undefined;
  const given = raw.value<{ id: string; status: ResponseStatus; message?: unknown; metadata?: ResponseMetadata | null; artifacts?: Artifact[] | null }>();
  const { id, status, message, metadata, artifacts } = given;
  const all = {
    id,
    ...(typeof message === "string" && { message }),
    metadata: said(metadata ?? {}),
    artifacts: (artifacts ?? []).map((a) => said({ ...a, content: a.content ?? "" })),
  };
  const error = raw.at("error");
  switch (status) {
    case "completed": {
      const result = raw.at("result");
      return withRaw({ ...all, status, result: result && read<any>(result) }, raw);
    }
    case "failed":
      return withRaw({ ...all, status, error: faultIn(error) }, raw);
    case "cancelled":
      return withRaw({ ...all, status, ...(error?.text[0] === "{" && { error: faultIn(error) }) }, raw);
    case "input_required":
      return withRaw({ ...all, status, question: question(raw), options: options(raw.at("input", "options")) }, raw);
  }
  return withRaw({ ...all, status }, raw);
}

/** Returns an object without members that are null. */
function said<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, member]) => member !== null)) as T;
}

function faultIn(error: Raw | undefined): TaskFault {
  const { code, message, recoverable } = error?.value<Partial<TaskFault> | null>() ?? {};
  const details = error?.at("details");
  return {
    code: blank(code) ? FaultCode.Internal : code!,
    message: blank(message) ? unexplained : message!,
    ...(details && details.text !== "null" && { details: read<{ [key: string]: any }>(details) }),
    recoverable: recoverable ?? false,
  };
}

function question(raw: Raw): string {
  const candidates = [raw.at("message"), raw.at("input", "question"), raw.at("error", "message")].map((text) => text?.value());
  return (candidates.find((text) => !blank(text)) as string | undefined) ?? unasked;
}

/**
 * Returns the options of a question: texts, or objects with a value and a label. Returns none if an
 * option is invalid or two have the same value.
 */
function options(list: Raw | undefined): TaskOption[] {
  const given = list?.items().map((item) => item.value<any>()) ?? [];
  const found = given.every((item) => typeof item === "string") ? given.map((value: string) => ({ label: value, value })) : given.map(option);
  const values = new Set(found.map((o) => (blank(o?.value) ? undefined : o!.value)));
  return values.has(undefined) || values.size < found.length ? [] : (found as TaskOption[]);
}

function option(item: any): TaskOption | undefined {
  const { label, value } = item ?? {};
  return typeof value === "string" && typeof (label ?? "") === "string" ? { label: label || value, value } : undefined;
}

function judge(p: Part): void {
  p.label("id");
  const status = p.word("status", statuses);
  p.without("type", "must not be in a response: only a request has it");
  p.fits("result", status === "completed", `must not be set with the status ${status}: only completed has it`);
  p.inside("error", (e) => {
    for (const key of ["code", "message"]) e.text(key, "optional");
    e.object("details", "optional");
    e.truth("recoverable", "optional");
  }, "optional");
  p.inside("metadata", (m) => {
    for (const key of ["startedAt", "completedAt"]) m.moment(key, "optional");
    for (const key of ["duration_ms", "retryCount"]) m.whole(key, 0, "optional");
    m.label("agent", "optional");
  }, "optional");
  p.each("artifacts", (a) => {
    a.name("name");
    a.name("type");
    a.text("content", a.text("ref", "optional") === "" ? "needed" : "optional");
  }, "optional");
}
