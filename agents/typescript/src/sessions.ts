import type {
  AbortScope, Category, ChangeType, FeedbackType, Fix, FocusArea, Outcome, SessionDependencyType, SessionPriority, Severity, Verdict,
} from "./protocol.js";

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
