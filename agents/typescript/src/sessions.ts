import type {
  AbortScope, Category, ChangeType, FeedbackType, Fix, FocusArea, Outcome, SessionDependencyType, SessionPriority, Severity, Verdict,
} from "./protocol.js";

// What the messages of a session say. Keys are as they stand on the line.

/** The payloads of messages, by their types. */
export interface Payloads {
  task_assignment: Assignment;
  task_progress: Progress;
  task_completion: Completion;
  review_request: ReviewRequest;
  review_result: ReviewResult;
  feedback: Feedback;
  status_query: StatusQuery;
  /** Any object, which is for the caller. The roles say a Status. */
  status_response: { [key: string]: unknown };
  abort: Abort;
  acknowledgment: { [key: string]: unknown };
}

/**
 * What is said, as far as it is said: lists are empty, texts are "" and truths
 * are false otherwise, and what must be said is missed when it is spoken.
 */
export type Loose<T> = T extends readonly (infer Item)[] ? Loose<Item>[] : T extends object ? { [K in keyof T]?: Loose<T[K]> | undefined } : T;

/** A task as an architect gives it to a developer. */
export interface Assignment {
  task: TaskInput;
  priority: SessionPriority;
  /** A wish: an ISO 8601 time. */
  deadline?: string;
  /** Of reviews; missing: as the session has it. */
  max_iterations?: number;
  dependencies?: TaskDependency[];
}

/** What there is to do. */
export interface TaskInput {
  task_id: string;
  task_description: string;
  /** What there is to read before the work begins. */
  context: {
    specs: ContextFile[];
    reference_files: ContextFile[];
    previous_attempts?: Attempt[];
  };
  /** What the work must keep to. */
  constraints: {
    /** Patterns of the files that may be changed; without any, none may. */
    scope: string[];
    testing_required: boolean;
    must_not_break: string[];
    /** The path of one. */
    style_guide?: string;
  };
  acceptance_criteria: string[];
}

/** A file to read, and why. */
export interface ContextFile {
  path: string;
  reason: string;
  /** What matters of it; all, when there are none. */
  sections?: string[];
}

/** What came of an earlier attempt at a task. */
export interface Attempt {
  attempt_number: number;
  outcome: string;
  feedback: string;
}

/** What a task waits for. */
export interface TaskDependency {
  /** That waits; the assigned one when it is missing. */
  task_id?: string;
  depends_on: string[];
  dependency_type: SessionDependencyType;
}

/** Dependencies on tasks that must be done first. */
export function after(...tasks: string[]): TaskDependency[] {
  return tasks.length === 0 ? [] : [{ depends_on: tasks, dependency_type: "hard" }];
}

/** How far a developer is. */
export interface Progress {
  task_id: string;
  /** From 0 to 100. */
  progress_percent: number;
  current_step: string;
  files_modified_so_far: string[];
  /** How long it takes yet, in any words. */
  estimated_remaining?: string;
  blockers?: string[];
}

/** What came of a task. */
export interface Completion {
  task_id: string;
  status: Outcome;
  changes: { files_created: FileChange[]; files_modified: FileChange[]; files_deleted: string[] };
  summary: string;
  implementation_notes?: string;
  /** What a developer has looked at before saying that it is done. */
  self_review: { tests_run: boolean; tests_passed: boolean; type_check_passed: boolean; known_issues?: string[] };
  /** Why it is not completed. */
  blockers?: string[];
  suggestions?: string[];
  /** How it went wrong: an extension. */
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

/** How the work on a task went wrong. */
export interface TaskExecutionError {
  task_id: string;
  error_type: "timeout" | "exception" | "scope_violation" | "resource_limit";
  error_message: string;
  recoverable: boolean;
  suggested_action: "retry" | "reassign" | "abort" | "manual";
}

/** All files of a completion. */
export function touched(changes: Completion["changes"]): string[] {
  return [...changes.files_created.map((f) => f.path), ...changes.files_modified.map((f) => f.path), ...changes.files_deleted];
}

/** What an architect asks a reviewer to look at. */
export interface ReviewRequest {
  /** A new one for each request. */
  review_id: string;
  task_id: string;
  scope: { files: string[]; focus_areas: FocusArea[]; ignore_patterns?: string[] };
  criteria: { must_pass_tests: boolean; must_pass_type_check: boolean; must_pass_lint?: boolean; custom_checks?: CustomCheck[] };
  /** What the work was to be. */
  context: { task_description: string; acceptance_criteria: string[]; previous_reviews?: ReviewSummary[] };
}

/**
 * A command that the architect would like to see run. It is not run here: whether a
 * reviewer does, and where, is for its author to decide.
 */
export interface CustomCheck {
  name: string;
  command: string;
  expected_exit_code: number;
}

/** What came of an earlier review. */
export interface ReviewSummary {
  review_number: number;
  verdict: string;
  key_findings: string[];
}

/**
 * What a reviewer thinks of it. One that approves must have no critical or major
 * finding that is open, and no check that did not pass.
 */
export interface ReviewResult {
  review_id: string;
  task_id: string;
  verdict: Verdict;
  findings: Finding[];
  /** What the checks came to; custom ones by their names. */
  verification: { tests: CheckResult; type_check: CheckResult; lint?: CheckResult; custom: { [name: string]: CheckResult } };
  summary: string;
  /** Where the verdict is not approved. */
  required_changes?: RequiredChange[];
  /** Where it is. */
  commendations?: string[];
}

/** Something that a reviewer has found. */
export interface Finding {
  finding_id: string;
  severity: Severity;
  category: Category;
  location: { file: string; line_start?: number; line_end?: number; code_snippet?: string };
  description: string;
  rationale: string;
  suggestion?: string;
  /** Missing: it is open. */
  fixed_in_iteration?: number;
}

/** What one check came to. */
export interface CheckResult {
  passed: boolean;
  output?: string;
  error?: string;
}

/** What a reviewer wants to be changed. */
export interface RequiredChange {
  change_id: string;
  priority: Fix;
  /** By their ids. */
  related_findings: string[];
  description: string;
}

/** What any agent may say to any other. */
export interface Feedback {
  feedback_type: FeedbackType;
  subject: string;
  content: string;
  action_required: boolean;
  related_task_id?: string;
}

/** A question how things are. */
export interface StatusQuery {
  /** Missing: of everything. */
  task_id?: string;
}

/** What a developer or a reviewer answers when it is asked how things are. */
export interface Status {
  status: "idle" | "busy";
  tasks: TaskProgress[];
}

/** How a task is that it has. */
export interface TaskProgress {
  task_id: string;
  /** From 0 to 100. */
  progress_percent: number;
  current_step: string;
}

/** Ends a task or a session. */
export interface Abort {
  scope: AbortScope;
  /** Of the task or the session. */
  target_id: string;
  reason: string;
  /** Passed on: the agent of the work knows what there is to clean up. */
  cleanup_required: boolean;
}
