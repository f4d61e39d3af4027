import type { Document } from "./mail.js";
import type { Raw } from "./json.js";
import type { TaskContext, TaskRouting, TaskTrace } from "./taskrequest.js";

/** Where a task stands. The last three are final. */
export type TaskState =
  | "pending" | "assigned" | "planning" | "plan_review" | "running"
  | "needs_human" | "in_review" | "done" | "failed" | "cancelled";

/** The state in five words. */
export type TaskStatus = "queued" | "running" | "completed" | "failed" | "cancelled";

/** What an agent is there for. */
export type Role = "worker" | "planner" | "reviewer";

/** A number, 1 is first; or critical, high, normal, low. */
export type Priority = number | string;

/**
 * A task as all see it. In a list the parts that can be large (description,
 * payload, result and the documents) are left out; getTask has them.
 */
export interface Task {
  id: string;
  name: string;
  type: string;
  status: TaskStatus;
  state: TaskState;
  description?: string;
  /** Whatever its submitter gave: task.raw.at("payload") has it digit for digit. */
  payload?: { [key: string]: any };
  /** Null: any. */
  requiredRole: Role | null;
  requiredCapabilities: string[];
  /** Tasks that must be done first. */
  dependencies: string[];
  /** All dependencies, when some are not just that. */
  typedDependencies?: Link[];
  /** Dependencies that are still open. */
  waitsFor?: string[];
  structured_spec?: { [key: string]: any };
  requirements?: { [key: string]: any };
  targetRepo?: string;
  acceptanceCriteria?: string[];
  projectId?: string;
  sessionId?: string;
  /** What its submitter was working on. */
  parentTaskId?: string;
  /** An object or a text. */
  plan?: { [key: string]: any } | string;
  /** Why the plan is to be changed. */
  planFeedback?: string;
  help?: Help;
  /** What the tasks that it depends on delivered, by contract. */
  resolved_inputs?: { [contract: string]: any };
  /** What delegated work belongs to. */
  context?: TaskContext;
  /** The way of delegated work. */
  routing?: TaskRouting;
  /** To which trace it belongs. */
  observability?: TaskTrace;
  priority?: Priority;
  /** Such as agent:planner. */
  submittedBy: string;
  /** Null: none. */
  assignedTo: string | null;
  /** From 0 to 1. */
  progress?: number;
  /** Said with the progress. */
  message?: string;
  /** How often it was assigned. */
  attempts?: number;
  /** An object or a text; null: none. */
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

/** What the agent of a task asked a person. */
export interface Help {
  questionId: string;
  question: string;
  context?: unknown;
  answer?: string;
  answeredAt?: string;
}

/** A dependency as it stands. */
export interface Link {
  id: string;
  depends_on_task_id: string;
  dependency_type: "blocks" | "input" | "related";
  /** Null unless it is an input. */
  contract_key: string | null;
  /** Shown as related, and resolved when the other has ended. */
  soft?: boolean;
  resolved: boolean;
  /** Null until it is. */
  resolved_at: string | null;
  /** What came of the other task, when it is done. */
  result?: any;
  /** The result is longer than a task shows. */
  result_left_out?: boolean;
}

/** A dependency to be: the id of a task that must be done first, or more than that. */
export type Dependency = string | TypedDependency;

/** A dependency that is more than the order of two tasks. */
export interface TypedDependency {
  depends_on_task_id: string;
  /** Blocks: the other must be done first. Input: and something of its result is needed. Related: it is worth knowing, no more. */
  dependency_type?: "blocks" | "input" | "related" | "soft";
  /** Of an input. */
  contract_key?: string;
}

/** A task to be submitted. */
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

/** What a task asks of its agent. */
export interface Requirements {
  $schema?: string;
  /** Must be there. */
  repo?: string;
  /** All must be there. */
  languages?: string[];
  /** One must be there. */
  environments?: string[];
  /** The more the better. */
  tools?: string[];
  /** The more the better. */
  tags?: string[];
  /** The name of an agent. */
  prefer_server?: string;
}

/** Which tasks are wanted. */
export interface QueryTasks {
  status?: TaskStatus | TaskState;
  requiredRole?: Role;
  /** 100 when it is missing. */
  limit?: number;
  projectId?: string;
  /** Those of this conversation. */
  conversationId?: string;
}

/** Changes of a task. What is missing stays as it is; null takes a document away. */
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

/** The agent that a task is given to. */
export interface AssignTask {
  taskId: string;
  /** Its name, its server id, or the id of its run. */
  agent: string;
  /** It is to say first how it will go about it. */
  requirePlan?: boolean;
}

/** What auto-assign comes to. */
export interface AutoAssigned {
  /** No match: no agent fits, or none has room. */
  status: "assigned" | "no_match";
  server_id?: string;
  server_name?: string;
  match_score?: number;
}

/** How an agent fits a task. */
export interface Match {
  server_id: string;
  server_name: string;
  /** -1: it does not. */
  score: number;
  status: "online" | "offline";
  reasons: string[];
}

/** A note to be added to a task. */
export interface AddNote {
  taskId: string;
  content: string;
  /** The agent of the task is told at once. */
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
  /** None: any text will do. */
  options?: (string | { label?: string; value: string })[];
  /** Milliseconds; missing: as for every request. */
  timeout?: number;
}

/** A person's answer. */
export interface UserAnswer {
  answer: string;
  metadata: { answeredAt: string };
}

const blocks = "blocks";

/** @internal A task as it is said: a dependency that is nothing special is the id of a task. */
export function submission(task: SubmitTask): object {
  return {
    ...task,
    ...(Array.isArray(task.dependencies) && {
      dependencies: task.dependencies.map((d) => (typeof d === "object" && (d.dependency_type ?? blocks) === blocks ? d.depends_on_task_id : d)),
    }),
  };
}
