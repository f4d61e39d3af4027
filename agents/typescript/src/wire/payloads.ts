import type { AskUser, Dependency, SubmitTask } from "./documents.js";

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
