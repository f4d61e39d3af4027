import { randomUUID } from "node:crypto";
import type { AskUser, Dependency, SubmitTask } from "./documents.js";
import { type Code, type Details, type Refusal, Refused, Unsaid } from "./errors.js";
import { complaint, Members, Raw, read, spell } from "./json.js";

/** The orchestrator's default limit for the length of a line, in bytes. */
const maxLine = 16 << 20;

/** The longest partial result of a task, in bytes. */
const maxOutput = 64 << 10;

/** Returns a time in the format of messages: UTC, RFC 3339, with milliseconds. */
export function timestamp(at = new Date()): string {
  return at.toISOString();
}

/**
 * Encodes a message as a line, without its end. Throws Unsaid if it is too long: the orchestrator
 * takes such a line for log, which is never answered.
 */
export function line(message: object): string {
  const text = spelled(message) ?? "";
  if (Buffer.byteLength(text) > maxLine) throw new Unsaid(`it cannot be said: it takes more than ${maxLine >> 20} MiB`);
  return text;
}

/**
 * Encodes a request or an event as a line. It has no agentId, because the orchestrator knows the
 * sender by its pipe.
 */
export function message(type: string, payload: unknown): { id: string; text: string } {
  const id = randomUUID();
  return { id, text: line({ type, id, timestamp: timestamp(), payload: document(payload) }) };
}

/** Encodes a payload, which must be an object. undefined means an empty one. */
export function document(payload: unknown): Raw {
  const text = spelled(payload ?? {});
  if (text?.[0] !== "{") throw new Unsaid("it cannot be said: a payload must be an object");
  return Raw.part(text);
}

/** Encodes an optional value. Returns undefined for undefined and null. */
export function value(what: unknown): Raw | undefined {
  const text = spelled(what);
  return text === undefined || text === "null" ? undefined : Raw.part(text);
}

function spelled(what: unknown): string | undefined {
  try {
    return spell(what);
  } catch (error) {
    throw new Unsaid(`it cannot be said: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/**
 * A line of the orchestrator. Keys are case-sensitive. If a member that was read is duplicate or
 * has the wrong type, wrong is set; such a line is ignored.
 */
export class Envelope {
  wrong = false;
  readonly #members: Members;

  private constructor(members: Members) {
    this.#members = members;
  }

  static read(text: string): Envelope | undefined {
    if (complaint(text) !== undefined) return undefined;
    text = text.trim();
    return text[0] === "{" ? new Envelope(new Members(text)) : undefined;
  }

  /** Returns a text, or "" if it is missing. */
  text(key: string): string {
    const found = this.#find(key)?.value();
    if (typeof found === "string") return found;
    this.wrong ||= found !== undefined;
    return "";
  }

  /** Returns an object, or undefined if it is missing. */
  document(key: string): Raw | undefined {
    const found = this.#find(key);
    if (found === undefined || found.text[0] === "{") return found;
    this.wrong = true;
    return undefined;
  }

  #find(key: string): Raw | undefined {
    const found = this.#members.of(key);
    this.wrong ||= found.length > 1;
    return found.length !== 1 || found[0]?.text === "null" ? undefined : found[0];
  }
}

/** Reads the error of an answer. A malformed error is still a refusal. */
export function refusal(error: Raw | undefined): Refusal {
  const said = error?.value<{ code?: unknown; message?: unknown }>();
  const details = error?.at("details");
  if (error === undefined || typeof said?.code !== "string" || said.code === "") {
    const message = "refused, without a word that could be understood";
    return { code: "INTERNAL_ERROR", message, ...(error && { details: read<Details>(error) }) };
  }
  return {
    code: said.code as Code,
    message: typeof said.message === "string" ? said.message : "",
    details: details?.text[0] === "{" ? read<Details>(details) : undefined,
  };
}

// Events have no answer, so those of the protocol are validated here.

/** Throws Unsaid if the payload of an event is invalid. The orchestrator would ignore it. */
export function checkEvent(event: string, payload: Raw): void {
  const wrong = complaintAbout(event, payload);
  if (wrong !== undefined) throw new Unsaid(`event ${event}: ${wrong}`);
}

function complaintAbout(event: string, payload: Raw): string | undefined {
  const text = (key: string) => payload.at(key)?.value();
  const needs = (key: string) => (blank(text(key)) ? `${key} must be a text that says something` : undefined);
  const may = (key: string) => (["undefined", "string"].includes(typeof (text(key) ?? undefined)) ? undefined : `${key} must be a string`);
  const object = (key: string) => ((text(key) ?? undefined) === undefined || payload.at(key)?.text[0] === "{" ? undefined : `${key} must be an object`);
  switch (event) {
    case "progress": {
      const progress = text("progress");
      const fits = typeof progress === "number" && progress >= 0 && progress <= 1;
      const small = Buffer.byteLength(payload.at("output")?.text ?? "") <= maxOutput;
      return needs("taskId") ?? may("message") ?? (fits ? undefined : "progress must be from 0 to 1") ??
        (small ? undefined : `output must be at most ${maxOutput} bytes of JSON`);
    }
    case "log":
      return needs("level") ?? (typeof text("message") === "string" ? undefined : "message must be a string") ?? object("context");
    case "error":
      return may("taskId") ?? needs("error") ?? may("stack");
    case "question":
      return needs("question") ?? object("context");
  }
  return complaintAboutActivity(event, text, needs, may);
}

/** Checks the events of coding agents. */
function complaintAboutActivity(
  event: string, value: (key: string) => unknown, needs: (key: string) => string | undefined, may: (key: string) => string | undefined,
): string | undefined {
  const first = (check: (key: string) => string | undefined, ...keys: string[]) => keys.map(check).find((wrong) => wrong !== undefined);
  const number = (key: string, least: number) => {
    const n = value(key);
    return typeof n === "number" && n >= least ? undefined : `${key} must be a number of at least ${least}`;
  };
  const whole = (least: number) => (key: string) =>
    number(key, least) ?? (Number.isInteger(value(key)) ? undefined : `${key} must be a whole number`);
  const given = (key: string) => (value(key) ?? undefined) !== undefined;
  const oneOf = (key: string, ...words: string[]) => (words.includes(value(key) as string) ? undefined : `${key} must be one of ${words.join(", ")}`);
  const time = (key: string) =>
    may(key) ?? (!given(key) || /^\d{4}-?\d\d-?\d\d(T\d\d:?\d\d|$)/.test(String(value(key))) ? undefined : `${key} must be an ISO 8601 time`);
  switch (event) {
    case "usage": {
      const counts = ["turn", "cacheRead", "cacheWrite", "reasoning", "contextUsed", "contextSize"].filter(given);
      return first(may, "taskId", "model", "currency") ?? first(whole(0), "input", "output", ...counts) ?? (given("cost") ? number("cost", 0) : undefined);
    }
    case "session":
      return needs("id") ?? first(may, "kind", "dir", "version", "model");
    case "turn":
      return oneOf("state", "busy", "waiting", "idle") ?? first(may, "what", "taskId") ?? time("since");
    case "limited":
      return needs("until") ?? time("until") ?? may("scope");
    case "receipt":
      return whole(1)("seq") ?? oneOf("state", "in_context", "refused");
  }
  return undefined;
}

/** Reports whether a value is not a text, or a blank one. */
export function blank(what: unknown): boolean {
  return typeof what !== "string" || /^[ \t\n\r\f]*$/.test(what);
}

/** Returns an error with the name of the operation in front, if it has none yet. */
export function about(operation: string, error: unknown): unknown {
  if (error instanceof Unsaid) return new Unsaid(`${operation}: ${error.message}`, { cause: error.cause });
  if (error instanceof Refused) return new Refused(error, operation);
  return error;
}

// Payloads that may be given in a shorter form than they are sent.

const blocks = "blocks";

/**
 * Returns a task to submit as it is sent: a dependency of the type blocks becomes the id of its
 * task.
 */
export function submission(task: SubmitTask): object {
  return {
    ...task,
    ...(Array.isArray(task.dependencies) && {
      dependencies: task.dependencies.map((d) => (typeof d === "object" && (d.dependency_type ?? blocks) === blocks ? d.depends_on_task_id : d)),
    }),
  };
}

/** Returns the payload that adds a dependency to a task. */
export function dependency(taskId: string, on: Dependency): object {
  const d = typeof on === "string" ? { depends_on_task_id: on } : on;
  return { taskId, dependsOnTaskId: d.depends_on_task_id, dependencyType: d.dependency_type, contractKey: d.contract_key };
}

/** Returns a question as it is sent: an option that is a text becomes an object. */
export function asking(question: AskUser): object {
  if (!question.options) return question;
  return { ...question, options: question.options.map((option) => (typeof option === "string" ? { value: option } : option)) };
}
