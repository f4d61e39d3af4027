import type { Raw } from "./json.js";
import type { Document } from "./mail.js";
import type { TaskContext, TaskRouting, TaskTrace } from "./taskrequest.js";

/** The state of a task. The last three are final. */
export type TaskState =
  | "pending" | "assigned" | "planning" | "plan_review" | "running"
  | "needs_human" | "in_review" | "done" | "failed" | "cancelled";

/** The state, reduced to five words. */
export type TaskStatus = "queued" | "running" | "completed" | "failed" | "cancelled";

/** The role of an agent. */
export type Role = "worker" | "planner" | "reviewer";

/** A number, where 1 is first; or critical, high, normal or low. */
export type Priority = number | string;

/**
 * A task. Lists leave out members that can be large (description, payload, result and the
 * documents); getTask returns them.
 */
export interface Task {
  id: string;
  name: string;
  type: string;
  status: TaskStatus;
  state: TaskState;
  description?: string;
  /** As its submitter gave it; task.raw.at("payload") has it digit for digit. */
  payload?: { [key: string]: any };
  /** Null means any. */
  requiredRole: Role | null;
  requiredCapabilities: string[];
  /** Tasks that must be done first. */
  dependencies: string[];
  /** All dependencies, if some are of another kind. */
  typedDependencies?: Link[];
  /** Dependencies that are not resolved. */
  waitsFor?: string[];
  structured_spec?: { [key: string]: any };
  requirements?: { [key: string]: any };
  targetRepo?: string;
  acceptanceCriteria?: string[];
  projectId?: string;
  sessionId?: string;
  /** The task that its submitter was working on. */
  parentTaskId?: string;
  /** An object or a text. */
  plan?: { [key: string]: any } | string;
  /** Why the plan was sent back. */
  planFeedback?: string;
  help?: Help;
  /** What the tasks that it depends on delivered, by contract. */
  resolved_inputs?: { [contract: string]: any };
  /** The context of delegated work. */
  context?: TaskContext;
  /** The routing of delegated work. */
  routing?: TaskRouting;
  /** To which trace it belongs. */
  observability?: TaskTrace;
  priority?: Priority;
  /** Such as agent:planner. */
  submittedBy: string;
  /** Null means none. */
  assignedTo: string | null;
  /** From 0 to 1. */
  progress?: number;
  /** The message of the latest progress. */
  message?: string;
  /** How often it was assigned. */
  attempts?: number;
  /** An object or a text; null means none. */
  result: { [key: string]: any } | string | null;
  /** Why it failed. */
  error?: string;
  /** Why it was cancelled. */
  reason?: string;
  createdAt: string;
  assignedAt?: string;
  startedAt?: string;
  endedAt?: string;
}

/** A question of the task's agent to a person. */
export interface Help {
  questionId: string;
  question: string;
  context?: unknown;
  answer?: string;
  answeredAt?: string;
}

/** A dependency as stored. */
export interface Link {
  id: string;
  depends_on_task_id: string;
  dependency_type: "blocks" | "input" | "related";
  /** Null unless the type is input. */
  contract_key: string | null;
  /** Shown as related, and resolved when the other task has ended. */
  soft?: boolean;
  resolved: boolean;
  /** Null until resolved. */
  resolved_at: string | null;
  /** The result of the other task, once it is done. */
  result?: any;
  /** The result is too long to be shown here. */
  result_left_out?: boolean;
}

/**
 * A dependency of a task to submit: the id of a task that must be done first, or a TypedDependency.
 */
export type Dependency = string | TypedDependency;

/** A dependency with a type. */
export interface TypedDependency {
  depends_on_task_id: string;
  /**
   * blocks: the other task must be done first. input: a part of its result is needed as well.
   * related: for information only.
   */
  dependency_type?: "blocks" | "input" | "related" | "soft";
  /** For the type input. */
  contract_key?: string;
}

/** A task to submit. */
export interface SubmitTask {
  type: string;
  name: string;
  description?: string;
  payload?: Document;
  requiredRole?: Role;
  requiredCapabilities?: string[];
  dependencies?: Dependency[];
  priority?: Priority | Raw;
  structured_spec?: Document;
  requirements?: Requirements | Document;
  targetRepo?: string;
  acceptanceCriteria?: string[];
  projectId?: string;
  sessionId?: string;
  /** To which trace it belongs. */
  observability?: TaskTrace<Document>;
}

/** The requirements of a task on its agent. */
export interface Requirements {
  $schema?: string;
  /** Required. */
  repo?: string;
  /** All are required. */
  languages?: string[];
  /** At least one is required. */
  environments?: string[];
  /** The more the better. */
  tools?: string[];
  /** The more the better. */
  tags?: string[];
  /** The name of the preferred agent. */
  prefer_server?: string;
}

/** Selects tasks. */
export interface QueryTasks {
  status?: TaskStatus | TaskState;
  requiredRole?: Role;
  /** 100 by default. */
  limit?: number;
  projectId?: string;
  /** Only tasks of this conversation. */
  conversationId?: string;
}

/** Changes of a task. Missing members stay unchanged; null removes a document. */
export interface UpdateTask {
  taskId: string;
  name?: string;
  description?: string;
  type?: string;
  priority?: Priority | Raw;
  payload?: Document;
  targetRepo?: string;
  projectId?: string;
  acceptanceCriteria?: string[];
  structured_spec?: Document | null;
  requirements?: Requirements | Document | null;
}

/** Assigns a task to an agent. */
export interface AssignTask {
  taskId: string;
  /** Its name, its server id, or the id of its run. */
  agent: string;
  /** The agent must submit a plan first. */
  requirePlan?: boolean;
}

/** The outcome of autoAssign. */
export interface AutoAssigned {
  /** no_match: no agent matches, or none has capacity left. */
  status: "assigned" | "no_match";
  server_id?: string;
  server_name?: string;
  match_score?: number;
}

/** How well an agent matches a task. */
export interface Match {
  server_id: string;
  server_name: string;
  /** -1 means no match. */
  score: number;
  status: "online" | "offline";
  reasons: string[];
}

/** A note to add to a task. */
export interface AddNote {
  taskId: string;
  content: string;
  /** Its agent is notified at once. */
  urgent?: boolean;
}

/** A note on a task. */
export interface Note {
  id: string;
  task_id: string;
  /** Such as agent:planner. */
  author: string;
  content: string;
  urgent: boolean;
  created_at: string;
}

/** A question for a person. */
export interface AskUser {
  question: string;
  /** Without options, any text is allowed. */
  options?: (string | { label?: string; value: string })[];
  /** In milliseconds; the default is that of every request. */
  timeout?: number;
}

/** A person's answer. */
export interface UserAnswer {
  answer: string;
  metadata: { answeredAt: string };
}

const blocks = "blocks";

/**
 * @internal Returns a task as it is sent: a dependency of the type blocks becomes the id of its
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
