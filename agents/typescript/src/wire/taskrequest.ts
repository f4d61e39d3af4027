import { randomUUID } from "node:crypto";
import type { TaskContext, TaskRouting, TaskTrace } from "./documents.js";
import { document } from "./envelope.js";
import { type Document, type Heard, Raw, withRaw } from "./json.js";
import type { Part } from "./part.js";
import { acts, checkedLine, isOwn, wrongWith } from "./taskline.js";

/** Work to delegate. Only the type is required. */
export interface DelegateTask {
  /**
   * The default is a new UUID. Repeating a request with the same id, perhaps after a restart, asks
   * for the same work.
   */
  id?: string | undefined;
  /** The name of a capability. */
  type: string;
  payload?: Document | undefined;
  context?: TaskContext | undefined;
  routing?: TaskRouting | undefined;
  observability?: TaskTrace<Document> | undefined;
}

/** A request for delegated work, as the agent received it. Members without a value are left out. */
export interface TaskRequest {
  id: string;
  type: string;
  /** The payload, with its text as raw. */
  payload: Heard<{ [key: string]: any }>;
  context: TaskContext;
  routing: TaskRouting;
  observability: TaskTrace<Heard<{ [key: string]: any }>>;
}

const taskPriorities = ["low", "normal", "high", "urgent"] as const;
/** The urgency of delegated work; the default is normal. */
export type TaskPriority = (typeof taskPriorities)[number];

/** The maximal length of baggage, in bytes. */
const mostBaggage = 16 << 10;

/** Encodes a task request. */
export function spellRequest(task: DelegateTask): { id: string; line: string } {
  const id = task.id || randomUUID();
  const { type, context, routing, observability } = task;
  const members = { id, type, payload: document(task.payload), context: block(context), routing: block(routing), observability: block(observability) };
  return { id, line: checkedLine(members, judge) };
}

/** Returns a block without empty members, or undefined if all are empty. */
function block(members: unknown): unknown {
  if (typeof members !== "object" || members instanceof Raw) return members;
  const said = Object.entries(members ?? {}).filter(([, member]) => !saysNothing(member));
  return said.length > 0 ? Object.fromEntries(said) : undefined;
}

function saysNothing(member: unknown): boolean {
  return member === undefined || member === null || member === "" || (Array.isArray(member) && member.length === 0);
}

/** Reads a task request. Returns undefined if it is invalid. */
export function readRequest(raw: Raw): Heard<TaskRequest> | undefined {
  if (wrongWith(raw, judge) !== undefined) return undefined;
  const given = raw.value<TaskRequest>();
  const observability = { ...(block(given.observability) as TaskRequest["observability"] | undefined) };
  if (observability.baggage) withRaw(observability.baggage, raw.at("observability", "baggage")!);
  return withRaw(
    {
      id: given.id,
      type: given.type,
      payload: withRaw(given.payload, raw.at("payload")!),
      context: { ...(block(given.context) as TaskContext | undefined) },
      routing: { ...(block(given.routing) as TaskRouting | undefined) },
      observability,
    },
    raw,
  );
}

function judge(p: Part): void {
  p.label("id");
  const type = p.label("type");
  if (isOwn(type)) p.wrong("type", "must not begin with request:, event:, response: or notify:");
  if (acts.includes(type)) p.wrong("type", `is of a message about a task that there is: ${type} asks for none`);
  p.object("payload");
  p.inside("context", (c) => {
    for (const key of ["conversationId", "parentTaskId", "user"]) c.label(key, "optional");
    c.moment("timestamp", "optional");
    c.word("priority", taskPriorities, "optional");
  }, "optional");
  p.inside("routing", (r) => {
    for (const key of ["source", "target"]) r.label(key, "optional");
    r.labels("delegationChain");
  }, "optional");
  p.inside("observability", (o) => {
    for (const key of ["traceId", "spanId"]) o.label(key, "optional");
    const baggage = o.object("baggage", "optional");
    if (Buffer.byteLength(baggage?.text ?? "") > mostBaggage) o.wrong("baggage", `must not be longer than ${mostBaggage} bytes`);
  }, "optional");
}
