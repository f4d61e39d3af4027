// Code generated from wire/schema; DO NOT EDIT.

// The payloads of session messages. Their keys are those of the protocol.

/** The work to do for a task. */
export interface TaskInput {
  /** The id of the task, unique among all tasks. */
  task_id: string;
  /** The work to do, for people. */
  task_description: string;
  /** The context of the task. */
  context: InputContext;
  /** The constraints of the work. */
  constraints: InputConstraints;
  /** The conditions under which the task counts as done. */
  acceptance_criteria: string[];
}

/** What to read before the work on a task begins. */
export interface InputContext {
  /** The specifications of the task. */
  specs: ContextFile[];
  /** Files to read before the work begins. */
  reference_files: ContextFile[];
  /** The previous attempts. */
  previous_attempts?: Attempt[];
}

/** The limits of the work on a task. */
export interface InputConstraints {
  /**
   * Patterns of the files that may be created, modified or deleted. With an empty list no file may
   * be changed.
   */
  scope: string[];
  /** Whether the tests must be run. */
  testing_required: boolean;
  /**
   * The features that must continue to work. Unless the session is strict, the member may be
   * missing.
   */
  must_not_break: string[];
  /** Where the style guide is. */
  style_guide?: string;
}

/** A file to read. */
export interface ContextFile {
  /** The path of the file. */
  path: string;
  /** Why the file is worth reading. */
  reason: string;
  /** The relevant parts of the file; all of it when they are missing. */
  sections?: string[];
}

/** The outcome of an earlier attempt at a task. */
export interface Attempt {
  /** The number of the attempt. */
  attempt_number: number;
  /** The outcome of the attempt. */
  outcome: string;
  /** The feedback on the attempt. */
  feedback: string;
}

/** The tasks that a task waits for. */
export interface TaskDependency {
  /** The task that waits; the assigned task when it is missing. */
  task_id?: string;
  /** The tasks that it waits for. */
  depends_on: string[];
  /**
   * hard: the task waits until they are done. soft: the task does not wait, and its developer gets
   * their results later.
   */
  dependency_type: "hard" | "soft";
}

/** An architect assigns a task to a developer. */
export interface Assignment {
  /** The task. */
  task: TaskInput;
  /** The priority of the task. */
  priority: "high" | "medium" | "low";
  /**
   * When the task should be done: an ISO 8601 time. It is advisory: the work continues after it.
   */
  deadline?: string;
  /** The maximum number of reviews of the task. The default is the maximum of the session. */
  max_iterations?: number;
  /** The tasks that the task waits for. An extension of the published protocol. */
  dependencies?: TaskDependency[];
}

/** A developer reports the progress of a task. */
export interface Progress {
  /** The id of the task. */
  task_id: string;
  /** The progress, from 0 to 100; 1 is one percent. */
  progress_percent: number;
  /** The current step of the developer. */
  current_step: string;
  /** The files that were changed so far. */
  files_modified_so_far: string[];
  /** The estimated remaining time, in free words. */
  estimated_remaining?: string;
  /** The obstacles to the work. */
  blockers?: string[];
}

/** A changed file. */
export interface FileChange {
  /** The path of the file. */
  path: string;
  /** The kind of change. A kind that does not match its list causes a warning. */
  change_type: "created" | "modified" | "deleted";
  /** The number of added lines. */
  lines_added?: number;
  /** The number of removed lines. */
  lines_removed?: number;
  /** The change in the file. */
  description?: string;
}

/** The changed files. */
export interface FileChanges {
  /** The new files. */
  files_created: FileChange[];
  /** The modified files. */
  files_modified: FileChange[];
  /** The deleted files. */
  files_deleted: string[];
}

/** The developer's own checks. */
export interface SelfReview {
  /** Whether the tests ran. */
  tests_run: boolean;
  /** Whether they passed. */
  tests_passed: boolean;
  /** Whether the type check passed. */
  type_check_passed: boolean;
  /** The known problems. */
  known_issues?: string[];
}

/** How a task failed. */
export interface TaskExecutionError {
  /** The id of the task again. */
  task_id: string;
  /**
   * timeout: the work took too long. exception: an unexpected error. scope_violation: a file
   * outside the scope was changed. resource_limit: a resource ran out.
   */
  error_type: "timeout" | "exception" | "scope_violation" | "resource_limit";
  /** The error in words. */
  error_message: string;
  /** Whether another try may succeed. */
  recoverable: boolean;
  /** The suggested action: try again, reassign the task, abort it, or ask a person. */
  suggested_action: "retry" | "reassign" | "abort" | "manual";
}

/** A developer reports the end of the work on a task, even if it failed. */
export interface Completion {
  /** The id of the task. */
  task_id: string;
  /**
   * Whether all of the work is done (completed), part of it (partial), or nothing useful (failed).
   */
  status: "completed" | "partial" | "failed";
  /** The changed files. */
  changes: FileChanges;
  /** A summary of the work. */
  summary: string;
  /** Notes on the implementation. */
  implementation_notes?: string;
  /** The developer's own checks. */
  self_review: SelfReview;
  /** Why the task is not completed. */
  blockers?: string[];
  /** Suggestions for improvements. */
  suggestions?: string[];
  /**
   * The failure of the work. An extension of the published protocol. An invalid error is ignored
   * with a note.
   */
  error?: TaskExecutionError;
}

/** The files and changes to review. */
export interface ReviewScope {
  /** The files. */
  files: string[];
  /** The topics of the review. */
  focus_areas: ("security" | "performance" | "style" | "logic" | "error_handling" | "test_coverage")[];
  /** Patterns of files to ignore. */
  ignore_patterns?: string[];
}

/**
 * A command that the architect suggests. The package never runs it; the author of the reviewer
 * decides whether and where to run it.
 */
export interface CustomCheck {
  /** The name of the check. */
  name: string;
  /** The command for the reviewer. The orchestrator does not run it. */
  command: string;
  /** The exit code of a passed check. */
  expected_exit_code: number;
}

/**
 * The checks that the work has to pass. The package never runs the custom checks: they are text of
 * the architect.
 */
export interface ReviewCriteria {
  /** Whether the tests must pass. */
  must_pass_tests: boolean;
  /** Whether the type check must pass. */
  must_pass_type_check: boolean;
  /** Whether the linter must pass. */
  must_pass_lint?: boolean;
  /** Other checks that must pass. */
  custom_checks?: CustomCheck[];
}

/** The outcome of an earlier review. */
export interface ReviewSummary {
  /** The number of the review. */
  review_number: number;
  /** The verdict of the review. */
  verdict: string;
  /** The main findings. */
  key_findings: string[];
}

/** The context of the review. */
export interface ReviewContext {
  /** The work to review. */
  task_description: string;
  /** The conditions under which the task counts as done. */
  acceptance_criteria: string[];
  /** The previous reviews. */
  previous_reviews?: ReviewSummary[];
}

/** An architect asks a reviewer to review the work on a task. */
export interface ReviewRequest {
  /** The id of the review, unique among all reviews. */
  review_id: string;
  /** The id of the task. */
  task_id: string;
  /** The files and changes to review. */
  scope: ReviewScope;
  /** The criteria for an approval. */
  criteria: ReviewCriteria;
  /** The context of the review. */
  context: ReviewContext;
}

/** The place of the finding. */
export interface Location {
  /** The file. */
  file: string;
  /** The first line. */
  line_start?: number;
  /** The last line; not less than line_start. */
  line_end?: number;
  /** The code at that place. */
  code_snippet?: string;
}

/** A defect that the reviewer found. */
export interface Finding {
  /** The id of the finding, unique in the result. */
  finding_id: string;
  /** The severity of the finding. */
  severity: "critical" | "major" | "minor" | "suggestion";
  /** The category of the finding. */
  category: "bug" | "security" | "performance" | "style" | "logic" | "test";
  /** The place of the finding. */
  location: Location;
  /** The description of the finding. */
  description: string;
  /** Why the finding matters. Unless the session is strict, it may be missing. */
  rationale: string;
  /** A suggestion for an improvement. */
  suggestion?: string;
  /** The iteration that fixed the finding. A fixed finding does not prevent an approval. */
  fixed_in_iteration?: number;
}

/** The result of a check. */
export interface CheckResult {
  /** Whether the check passed. */
  passed: boolean;
  /** The output of the check. */
  output?: string;
  /** The error of the check. */
  error?: string;
}

/** The results of the checks. */
export interface Verification {
  tests: CheckResult;
  type_check: CheckResult;
  lint?: CheckResult;
  /**
   * The results of the custom checks of the request, by name. Unless the session is strict, it may
   * be missing.
   */
  custom: { [name: string]: CheckResult };
}

/** A change that the reviewer requires. */
export interface RequiredChange {
  /** The id of the change. */
  change_id: string;
  /** The priority of the change. */
  priority: "must_fix" | "should_fix" | "consider";
  /** The ids of the findings that the change fixes. */
  related_findings: string[];
  /** The change to make. */
  description: string;
}

/** A reviewer reports the result of a review. */
export interface ReviewResult {
  /** The id of the review. */
  review_id: string;
  /** The id of the task. */
  task_id: string;
  /**
   * Whether the work is right (approved), needs changes (changes_requested), or must be planned
   * again (rejected). It cannot be approved while a critical or major finding is open, or a check
   * has not passed.
   */
  verdict: "approved" | "changes_requested" | "rejected";
  /** The findings. */
  findings: Finding[];
  /** The results of the checks. */
  verification: Verification;
  /** A summary in one line. */
  summary: string;
  /** The changes that the reviewer requires. */
  required_changes?: RequiredChange[];
  /** The strengths of the work. */
  commendations?: string[];
}

/** An agent gives feedback to another agent. */
export interface Feedback {
  /** The kind of feedback. */
  feedback_type: "clarification" | "correction" | "guidance" | "question";
  /** The subject. */
  subject: string;
  /** The text of the feedback. */
  content: string;
  /** Whether an action is required. */
  action_required: boolean;
  /** The id of the task that the feedback is about. */
  related_task_id?: string;
}

/** Asks an agent for its status. Other members are not read. */
export interface StatusQuery {
  /** The id of the task; all tasks when it is missing. */
  task_id?: string;
}

/** Ends a task or the session. */
export interface Abort {
  /** Whether it ends a task or the session. */
  scope: "task" | "session";
  /** The id of the task, or of the session. */
  target_id: string;
  /** The reason. */
  reason: string;
  /** Whether the agent that did the work must clean up. */
  cleanup_required: boolean;
}
