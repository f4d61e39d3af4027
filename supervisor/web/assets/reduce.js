// How an event changes a task.
import { holds } from "./states.js";

/** @typedef {import("./states.js").Task} Task */

/** @type {Record<string, (t: Task, e: any) => Partial<Task>|"unclear">} */
const changes = {
  "task.assigned": (t, e) => e.payload?.require_plan ? "unclear" : ({ state: t.state === "planning" ? "planning" : "assigned", assignedTo: e.agent ?? e.payload?.agent, assignedAt: e.at, attempts: e.payload?.attempt ?? t.attempts, progress: undefined, message: undefined }),
  "task.started": (t, e) => ({ state: "running", assignedTo: e.agent ?? t.assignedTo, startedAt: e.at }),
  "task.progress": (t, e) => ({ progress: e.payload?.progress ?? t.progress, message: e.payload?.message ?? t.message }),
  "task.requeued": () => ({ state: "pending", assignedTo: null, progress: undefined, message: undefined, startedAt: undefined }),
  "task.planned": () => ({ state: "plan_review" }),
  "task.plan_returned": () => ({ state: "planning" }),
  "task.help_wanted": () => ({ state: "needs_human" }),
  "task.done": (t, e) => t.workspace ? "unclear" : ({ state: "done", endedAt: e.at, waitsFor: [] }), // its branch may wait for its merge
  "task.failed": (t, e) => ({ state: "failed", endedAt: e.at, error: e.payload?.error ?? t.error }),
  "task.cancelled": (t, e) => ({ state: "cancelled", endedAt: e.at }),
  // These change nothing that a list shows.
  "task.noted": () => ({}), "task.announced": () => ({}), "task.archived": () => ({}), "task.unblocked": () => ({ waitsFor: [] }),
  "task.trouble": () => ({}), "task.progress_overdue": () => ({}), "dependency.resolved": () => ({}), "message.sent": () => ({}),
  "agent.usage": () => ({}), "task.answered": () => ({}), "task.unanswered": () => ({}),
};

/**
 * Applies an event to the tasks. The result is "unclear" if the task must be read again.
 * @param {Map<string, Task>} tasks @param {any} e
 */
export function apply(tasks, e) {
  if (e.kind === "task.created") {
    tasks.set(e.task, tasks.get(e.task) ?? created(tasks, e));
    return e.payload?.assign_to || e.payload?.requirements ? "unclear" : "clear";
  }
  if (e.kind === "dependency.resolved") resolve(tasks, e);
  const t = tasks.get(e.task);
  const change = changes[e.kind];
  if (!t || !change) return "unclear";
  const what = change(t, e);
  if (what === "unclear") return what;
  tasks.set(e.task, { ...t, ...what });
  return "clear";
}

/** @param {Map<string, Task>} tasks @param {any} e @returns {Task} */
function created(tasks, e) {
  const p = e.payload ?? {};
  const needs = (p.dependencies ?? []).filter((/** @type {any} */ d) => d.dependency_type !== "related").map((/** @type {any} */ d) => (typeof d === "string" ? d : d.depends_on_task_id));
  return {
    id: e.task, name: p.name ?? e.text, type: p.type ?? "", state: "pending", requiredRole: p.required_role ?? null,
    requiredCapabilities: p.required_capabilities ?? [], dependencies: needs, waitsFor: needs.filter((/** @type {string} */ id) => { const t = tasks.get(id); return t?.state !== "done" || holds(t); }),
    submittedBy: e.agent ? "agent:" + e.agent : "operator", assignedTo: null, createdAt: e.at, result: null,
  };
}

/** Removes a dependency that is done from the tasks that wait for it. @param {Map<string, Task>} tasks @param {any} e */
function resolve(tasks, e) {
  for (const { task } of e.payload?.waiting ?? []) {
    const t = tasks.get(task);
    if (t?.waitsFor) tasks.set(task, { ...t, waitsFor: t.waitsFor.filter((id) => id !== e.task) });
  }
}
