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

// The payloads of session messages. Their keys are those of the protocol.

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

/** A task as an architect assigns it to a developer. */
export interface Assignment {
  task: TaskInput;
  priority: SessionPriority;
  /** Advisory; an ISO 8601 time. */
  deadline?: string;
  /** Of reviews; the default is that of the session. */
  max_iterations?: number;
  dependencies?: TaskDependency[];
}

/** The work to do for a task. */
export interface TaskInput {
  task_id: string;
  task_description: string;
  /** What to read before the work begins. */
  context: {
    specs: ContextFile[];
    reference_files: ContextFile[];
    previous_attempts?: Attempt[];
  };
  /** The limits of the work. */
  constraints: {
    /** Patterns of the files that may change; if empty, none may. */
    scope: string[];
    testing_required: boolean;
    must_not_break: string[];
    /** The path of a style guide. */
    style_guide?: string;
  };
  acceptance_criteria: string[];
}

/** A file to read, and why. */
export interface ContextFile {
  path: string;
  reason: string;
  /** The relevant ones; by default the whole file. */
  sections?: string[];
}

/** The outcome of an earlier attempt at a task. */
export interface Attempt {
  attempt_number: number;
  outcome: string;
  feedback: string;
}

/** The tasks that a task waits for. */
export interface TaskDependency {
  /** The task that waits; by default the assigned one. */
  task_id?: string;
  depends_on: string[];
  dependency_type: SessionDependencyType;
}

/** Returns dependencies on tasks that must be done first. */
export function after(...tasks: string[]): TaskDependency[] {
  return tasks.length === 0 ? [] : [{ depends_on: tasks, dependency_type: "hard" }];
}

/** A developer's progress on a task. */
export interface Progress {
  task_id: string;
  /** From 0 to 100. */
  progress_percent: number;
  current_step: string;
  files_modified_so_far: string[];
  /** In free text. */
  estimated_remaining?: string;
  blockers?: string[];
}

/** The outcome of a task. */
export interface Completion {
  task_id: string;
  status: Outcome;
  changes: { files_created: FileChange[]; files_modified: FileChange[]; files_deleted: string[] };
  summary: string;
  implementation_notes?: string;
  /** The developer's own checks of the work. */
  self_review: { tests_run: boolean; tests_passed: boolean; type_check_passed: boolean; known_issues?: string[] };
  /** Why it is not completed. */
  blockers?: string[];
  suggestions?: string[];
  /** How it failed; an extension. */
  error?: TaskExecutionError;
}

/** A file that a developer has changed. */
export interface FileChange {
  path: string;
  change_type: ChangeType;
  lines_added?: number;
  lines_removed?: number;
  description?: string;
}

/** How a task failed. */
export interface TaskExecutionError {
  task_id: string;
  error_type: "timeout" | "exception" | "scope_violation" | "resource_limit";
  error_message: string;
  recoverable: boolean;
  suggested_action: "retry" | "reassign" | "abort" | "manual";
}

/** Returns the paths of all files in the changes of a completion. */
export function touched(changes: Completion["changes"]): string[] {
  return [...changes.files_created.map((f) => f.path), ...changes.files_modified.map((f) => f.path), ...changes.files_deleted];
}

/** An architect's request to review a task. */
export interface ReviewRequest {
  /** A new one for each request. */
  review_id: string;
  task_id: string;
  scope: { files: string[]; focus_areas: FocusArea[]; ignore_patterns?: string[] };
  criteria: { must_pass_tests: boolean; must_pass_type_check: boolean; must_pass_lint?: boolean; custom_checks?: CustomCheck[] };
  /** The task that was to be done. */
  context: { task_description: string; acceptance_criteria: string[]; previous_reviews?: ReviewSummary[] };
}

/**
 * A command that the architect suggests. The package never runs it; the author of the reviewer
 * decides whether and where to run it.
 */
export interface CustomCheck {
  name: string;
  command: string;
  expected_exit_code: number;
}

/** The outcome of an earlier review. */
export interface ReviewSummary {
  review_number: number;
  verdict: string;
  key_findings: string[];
}

/**
 * The outcome of a review. An approval must have no open critical or major finding and no failed
 * check.
 */
export interface ReviewResult {
  review_id: string;
  task_id: string;
  verdict: Verdict;
  findings: Finding[];
  /** The results of the checks. Custom checks are listed by their names. */
  verification: { tests: CheckResult; type_check: CheckResult; lint?: CheckResult; custom: { [name: string]: CheckResult } };
  summary: string;
  /** If the verdict is not approved. */
  required_changes?: RequiredChange[];
  /** If the verdict is approved. */
  commendations?: string[];
}

/** One finding of a review. */
export interface Finding {
  finding_id: string;
  severity: Severity;
  category: Category;
  location: { file: string; line_start?: number; line_end?: number; code_snippet?: string };
  description: string;
  rationale: string;
  suggestion?: string;
  /** Missing: still open. */
  fixed_in_iteration?: number;
}

/** The result of one check. */
export interface CheckResult {
  passed: boolean;
  output?: string;
  error?: string;
}

/** A change that a reviewer requires. */
export interface RequiredChange {
  change_id: string;
  priority: Fix;
  /** The ids of findings. */
  related_findings: string[];
  description: string;
}

/** A message that any agent may send to any other. */
export interface Feedback {
  feedback_type: FeedbackType;
  subject: string;
  content: string;
  action_required: boolean;
  related_task_id?: string;
}

/** A query for the status of an agent. */
export interface StatusQuery {
  /** By default, all tasks. */
  task_id?: string;
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

/** Aborts a task or a session. */
export interface Abort {
  scope: AbortScope;
  /** The id of the task or the session. */
  target_id: string;
  reason: string;
  /** Passed on: the agent that does the work knows what to clean up. */
  cleanup_required: boolean;
}
