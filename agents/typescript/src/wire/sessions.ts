import type {
  Abort, Assignment, Completion, Feedback, Progress, ReviewRequest, ReviewResult, StatusQuery, TaskDependency,
} from "./sessiondocuments.js";

export type * from "./sessiondocuments.js";

// The words of sessions, in which an architect, developers and reviewers work together. The lists
// are complete: any other word is an error.

export const messageTypes = [
  "task_assignment", "task_progress", "task_completion", "review_request", "review_result",
  "feedback", "status_query", "status_response", "abort", "acknowledgment",
] as const;
export type MessageType = (typeof messageTypes)[number];

export const agentTypes = ["architect", "developer", "reviewer"] as const;
export type AgentType = (typeof agentTypes)[number];

/** The urgency of an assignment. */
export const priorities = ["high", "medium", "low"] as const;
export type SessionPriority = (typeof priorities)[number];

/** A hard dependency must be done first; a soft one does not block. */
export const dependencyTypes = ["hard", "soft"] as const;
export type SessionDependencyType = (typeof dependencyTypes)[number];

/** The outcome of a task. */
export const outcomes = ["completed", "partial", "failed"] as const;
export type Outcome = (typeof outcomes)[number];

/** The kind of a change to a file. */
export const changeTypes = ["created", "modified", "deleted"] as const;
export type ChangeType = (typeof changeTypes)[number];

/** What a review should focus on. */
export const focusAreas = ["security", "performance", "style", "logic", "error_handling", "test_coverage"] as const;
export type FocusArea = (typeof focusAreas)[number];

/**
 * The verdict of a review. With changes_requested the task is revised; if it is rejected, it has to
 * be planned again.
 */
export const verdicts = ["approved", "changes_requested", "rejected"] as const;
export type Verdict = (typeof verdicts)[number];

/** The severity of a finding. */
export const severities = ["critical", "major", "minor", "suggestion"] as const;
export type Severity = (typeof severities)[number];

/** The category of a finding. */
export const categories = ["bug", "security", "performance", "style", "logic", "test"] as const;
export type Category = (typeof categories)[number];

/** The priority of a required change. */
export const fixes = ["must_fix", "should_fix", "consider"] as const;
export type Fix = (typeof fixes)[number];

export const feedbackTypes = ["clarification", "correction", "guidance", "question"] as const;
export type FeedbackType = (typeof feedbackTypes)[number];

/** The scope of an abort. */
export const abortScopes = ["task", "session"] as const;
export type AbortScope = (typeof abortScopes)[number];

/** The payloads by message type. */
export interface Payloads {
  task_assignment: Assignment;
  task_progress: Progress;
  task_completion: Completion;
  review_request: ReviewRequest;
  review_result: ReviewResult;
  feedback: Feedback;
  status_query: StatusQuery;
  /** Any object. The roles send a Status. */
  status_response: { [key: string]: unknown };
  abort: Abort;
  acknowledgment: { [key: string]: unknown };
}

/**
 * A document to send, in which members may be missing. They become empty lists, "" or false; the
 * session rejects a document that lacks a required value.
 */
export type Loose<T> = T extends readonly (infer Item)[] ? Loose<Item>[] : T extends object ? { [K in keyof T]?: Loose<T[K]> | undefined } : T;

/** Returns dependencies on tasks that must be done first. */
export function after(...tasks: string[]): TaskDependency[] {
  return tasks.length === 0 ? [] : [{ depends_on: tasks, dependency_type: "hard" }];
}

/** Returns the paths of all files in the changes of a completion. */
export function touched(changes: Completion["changes"]): string[] {
  return [...changes.files_created.map((f) => f.path), ...changes.files_modified.map((f) => f.path), ...changes.files_deleted];
}

/** The answer of a developer or reviewer to a status query. */
export interface Status {
  status: "idle" | "busy";
  tasks: TaskProgress[];
}

/** The status of one task. */
export interface TaskProgress {
  task_id: string;
  /** From 0 to 100. */
  progress_percent: number;
  current_step: string;
}
