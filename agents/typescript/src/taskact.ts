import { value } from "./envelope.js";
import { Raw } from "./json.js";
import type { Part } from "./part.js";
import { checkedLine, wrongWith } from "./taskline.js";

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
