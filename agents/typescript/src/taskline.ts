import { line } from "./envelope.js";
import { Unsaid } from "./errors.js";
import { Raw } from "./json.js";
import { Part, type Problem } from "./part.js";

// What the lines of delegated work have in common: each is judged as the orchestrator
// does, no matter who says it.

/** What makes a line something else when it stands twice. */
const telling = [
  "type", "id", "timestamp", "agentId", "payload", "message_type", "message_id", "from_agent", "to_agent", "jsonrpc", "method",
  "seq", "created_at", "from_actor", "to_actor", "topic", "status", "context", "routing", "observability",
];

/** What is wrong with a line of delegated work; undefined when nothing is. */
export function wrongWith(document: Raw, judge: (p: Part) => void): string | undefined {
  const problems: Problem[] = [];
  const p = new Part(document, "", problems, true);
  judge(p);
  p.once(...telling);
  return problems[0]?.message;
}

/** Makes a line of delegated work, without its end, and looks at it as the orchestrator will. */
export function checkedLine(members: object, judge: (p: Part) => void): string {
  const text = line(members);
  const wrong = wrongWith(Raw.part(text), judge);
  if (wrong !== undefined) throw new Unsaid(`it cannot be said: ${wrong}`);
  return text;
}

/** Says whether a type is one of a family that is not for delegated work. */
export function isOwn(type: string): boolean {
  return /^(request|event|response|notify):/.test(type);
}
