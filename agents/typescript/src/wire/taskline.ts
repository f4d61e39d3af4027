import { line, value } from "./envelope.js";
import { Unsaid } from "./errors.js";
import { Raw } from "./json.js";
import { Part, type Problem } from "./part.js";

// Common parts of the lines of delegated work. Each line is validated as the orchestrator does,
// from any sender.

/** Members that decide the kind of a line, so they must not be duplicate. */
const telling = [
  "type", "id", "timestamp", "agentId", "payload", "message_type", "message_id", "from_agent", "to_agent", "jsonrpc", "method",
  "seq", "created_at", "from_actor", "to_actor", "topic", "status", "context", "routing", "observability",
];

/** Returns the first problem of a line of delegated work, or undefined. */
export function wrongWith(document: Raw, judge: (p: Part) => void): string | undefined {
  const problems: Problem[] = [];
  const p = new Part(document, "", problems, true);
  judge(p);
  p.once(...telling);
  return problems[0]?.message;
}

/** Encodes a line of delegated work, without its end, and validates it as the orchestrator will. */
export function checkedLine(members: object, judge: (p: Part) => void): string {
  const text = line(members);
  const wrong = wrongWith(Raw.part(text), judge);
  if (wrong !== undefined) throw new Unsaid(`it cannot be said: ${wrong}`);
  return text;
}

/** Reports whether a type belongs to a family that delegated work must not use. */
export function isOwn(type: string): boolean {
  return /^(request|event|response|notify):/.test(type);
}

/** An act on work that was requested before, with the same id. */
export interface TaskAct {
  id: string;
  type: "task.status" | "task.update" | "task.cancel";
  /** The input of an update. */
  input?: Raw;
  /** The reason of a cancellation. */
  reason?: string;
}

/** The types of acts. Requests have other types. */
export const acts: readonly string[] = ["task.status", "task.update", "task.cancel"] satisfies TaskAct["type"][];

/** Encodes an act. The input of an update may be any value, even null. */
export function spellAct(id: string, type: TaskAct["type"], what: { input?: unknown; reason?: string } = {}): string {
  const payload = type === "task.update" ? { input: value(what.input) ?? Raw.part("null") } : { reason: what.reason || undefined };
  return checkedLine({ id, type, payload }, judge);
}

/** Reads an act. Returns undefined if it is invalid. */
export function readAct(raw: Raw): TaskAct | undefined {
  if (wrongWith(raw, judge) !== undefined) return undefined;
  const { id, type, payload } = raw.value<{ id: string; type: TaskAct["type"]; payload: { reason?: string | null } }>();
  if (type === "task.update") return { id, type, input: raw.at("payload", "input")! };
  return { id, type, reason: payload.reason ?? "" };
}

function judge(p: Part): void {
  p.label("id");
  const type = p.word("type", acts);
  p.inside("payload", (payload) => {
    if (type === "task.update") payload.anything("input");
    if (type === "task.cancel") payload.text("reason", "optional");
  });
}
