// The states of tasks and agents: their words, colors, icons and groups.

/**
 * @typedef {object} Task
 * @property {string} id
 * @property {string} name
 * @property {string} type
 * @property {string} state
 * @property {string|null} requiredRole
 * @property {string[]} requiredCapabilities
 * @property {string[]} dependencies
 * @property {string[]} [waitsFor]
 * @property {string} submittedBy
 * @property {string|null} assignedTo
 * @property {number} [progress]
 * @property {string} [message]
 * @property {number} [attempts]
 * @property {string} [error]
 * @property {string} [reason]
 * @property {string} [targetRepo]
 * @property {string} [sessionId]
 * @property {string} [parentTaskId]
 * @property {string} createdAt
 * @property {string} [assignedAt]
 * @property {string} [startedAt]
 * @property {string} [endedAt]
 * @property {any} [result]
 * @property {any} [plan]
 * @property {{merge?: string, path: string, branch?: string}} [workspace]
 */

/** The columns of the board. tone names a color of the style sheet. */
export const groups = [
  { id: "blocked", word: "Blocked", tone: "dim", icon: "dashed", help: "Waiting for other tasks" },
  { id: "pending", word: "Pending", tone: "plain", icon: "ring", help: "Waiting for an agent" },
  { id: "running", word: "Running", tone: "blue", icon: "half", help: "" },
  { id: "you", word: "Needs you", tone: "amber", icon: "ask", help: "" },
  { id: "review", word: "Review", tone: "violet", icon: "eye", help: "" },
  { id: "done", word: "Done", tone: "green", icon: "check", help: "" },
  { id: "failed", word: "Failed", tone: "red", icon: "cross", help: "" },
  { id: "cancelled", word: "Cancelled", tone: "dim", icon: "minus", help: "" },
];

/** How tasks look by their states. The words are those of the command line, without the underscores. @type {Record<string, {word: string, tone: string, icon: string, group: string}>} */
export const taskStates = {
  pending: { word: "pending", tone: "plain", icon: "ring", group: "pending" },
  assigned: { word: "assigned", tone: "blue", icon: "ring", group: "running" },
  planning: { word: "planning", tone: "blue", icon: "half", group: "running" },
  plan_review: { word: "plan review", tone: "amber", icon: "ask", group: "you" },
  running: { word: "running", tone: "blue", icon: "half", group: "running" },
  needs_human: { word: "needs human", tone: "amber", icon: "ask", group: "you" },
  verifying: { word: "verifying", tone: "violet", icon: "eye", group: "review" },
  in_review: { word: "in review", tone: "violet", icon: "eye", group: "review" },
  done: { word: "done", tone: "green", icon: "check", group: "done" },
  failed: { word: "failed", tone: "red", icon: "cross", group: "failed" },
  cancelled: { word: "cancelled", tone: "dim", icon: "minus", group: "cancelled" },
};
const unknown = { word: "unknown", tone: "dim", icon: "ring", group: "pending" };
const blocked = { word: "blocked", tone: "dim", icon: "dashed", group: "blocked" };

/** How a done task looks whose branch is not merged. @type {Record<string, {word: string, tone: string, icon: string, group: string}>} */
const unmerged = {
  waiting: { word: "merge queued", tone: "violet", icon: "half", group: "done" },
  refused: { word: "merge refused", tone: "amber", icon: "cross", group: "done" },
};

/** Reports whether a done task has a branch that the tasks that need it wait for. @param {Task} t */
export const holds = (t) => t.state === "done" && Object.hasOwn(unmerged, t.workspace?.merge ?? "");

/** Returns how the state of a task looks. @param {Task} t */
export function lookOf(t) {
  if (holds(t)) return unmerged[t.workspace?.merge ?? ""];
  if (t.state === "pending" && t.waitsFor?.length) return blocked;
  return taskStates[t.state] ?? { ...unknown, word: t.state };
}

/** @param {Task} t */
export const groupOf = (t) => lookOf(t).group;

/** Reports whether a task has ended. @param {{state: string}} t */
export const final = (t) => t.state === "done" || t.state === "failed" || t.state === "cancelled";

/** Reports whether a task can be tried again. @param {Task} t */
export const mayRetry = (t) => (t.state === "failed" || t.state === "cancelled") && !t.sessionId;

/** Reports whether a task is a part of another: a member of its session does it for that one. @param {Task} t */
export const isPart = (t) => Boolean(t.sessionId && t.parentTaskId);

/** Returns since when a task is in its state. @param {Task} t */
export function sinceOf(t) {
  if (final(t)) return t.endedAt ?? t.createdAt;
  if (t.state === "pending") return t.createdAt;
  if (t.state === "assigned") return t.assignedAt ?? t.createdAt;
  return t.startedAt ?? t.assignedAt ?? t.createdAt;
}

/** @type {Record<string, {word: string, tone: string, icon: string}>} */
export const agentStates = {
  running: { word: "running", tone: "green", icon: "dot" },
  starting: { word: "starting", tone: "blue", icon: "half" },
  waiting: { word: "waiting", tone: "dim", icon: "dashed" },
  stopping: { word: "stopping", tone: "amber", icon: "half" },
  stalled: { word: "stalled", tone: "amber", icon: "ask" },
  backoff: { word: "backoff", tone: "amber", icon: "half" },
  exited: { word: "exited", tone: "dim", icon: "check" },
  stopped: { word: "stopped", tone: "dim", icon: "minus" },
  failed: { word: "failed", tone: "red", icon: "cross" },
};

/** Returns how the state of an agent looks. @param {string} state */
export const agentLook = (state) => agentStates[state] ?? { word: state, tone: "dim", icon: "ring" };
