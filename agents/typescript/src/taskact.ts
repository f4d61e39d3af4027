import { value } from "./envelope.js";
import { Raw } from "./json.js";
import type { Part } from "./part.js";
import { checkedLine, wrongWith } from "./taskline.js";

/** What is said about work that was asked for before, under the same id. */
export interface TaskAct {
  id: string;
  type: "task.status" | "task.update" | "task.cancel";
  /** What an update brings. */
  input?: Raw;
  /** Why it is cancelled. */
  reason?: string;
}

/** The types of acts; a request has others. */
export const acts: readonly string[] = ["task.status", "task.update", "task.cancel"] satisfies TaskAct["type"][];

/** Spells an act. The input of an update may be anything, null as well. */
export function spellAct(id: string, type: TaskAct["type"], what: { input?: unknown; reason?: string } = {}): string {
  const payload = type === "task.update" ? { input: value(what.input) ?? Raw.part("null") } : { reason: what.reason || undefined };
  return checkedLine({ id, type, payload }, judge);
}

/** Reads an act; undefined when it is none. */
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
