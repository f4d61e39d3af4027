import { line } from "./envelope.js";
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
