import { Raw } from "./json.js";
import type { Abort, Assignment, Completion, Feedback, FileChange, Finding, Loose, Progress, ReviewRequest, ReviewResult } from "./sessions.js";

// Default values in the documents of a session, when sent and when received.

type Open = { [key: string]: unknown };

function isOpen(value: unknown): value is Open {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Raw);
}

/** Returns a document with defaults for missing members. */
function fill<T>(defaults: object, given: unknown): T {
  if (!isOpen(given)) return (given ?? defaults) as T;
  const all: Open = { ...defaults };
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    const usual = all[key];
    all[key] = isOpen(usual) && isOpen(value) ? fill(usual, value) : value;
  }
  return all as T;
}

/** Applies complete to each item of a list. */
function each<T>(list: T[] | undefined, complete: (item: T) => T): T[] | undefined {
  return Array.isArray(list) ? list.map(complete) : list;
}

/** Sets a member that is present, in an object that fill has made. */
function correct<T extends object, K extends keyof T>(of: T, key: K, value: T[K] | undefined): void {
  if (of[key] !== undefined && value !== undefined) of[key] = value;
}

export function assignment(given: Loose<Assignment>): Assignment {
  const a = fill<Assignment>(
    {
      task: {
        task_id: "",
        task_description: "",
        context: { specs: [], reference_files: [] },
        constraints: { scope: [], testing_required: false, must_not_break: [] },
        acceptance_criteria: [],
      },
      priority: "medium",
    },
    given,
  );
  const context = a.task.context;
  for (const key of ["specs", "reference_files"] as const) correct(context, key, each(context[key], (f) => fill({ path: "", reason: "" }, f)));
  correct(context, "previous_attempts", each(context.previous_attempts, (t) => fill({ attempt_number: 0, outcome: "", feedback: "" }, t)));
  correct(a, "dependencies", each(a.dependencies, (d) => fill({ depends_on: [], dependency_type: "hard" }, d)));
  return a;
}

export function progress(given: Loose<Progress>): Progress {
  return fill({ task_id: "", progress_percent: 0, current_step: "", files_modified_so_far: [] }, given);
}

/** Fills in a completion. It also sets the change_type of each file that has none. */
export function completion(given: Loose<Completion>): Completion {
  const c = fill<Completion>(
    {
      task_id: "",
      status: "completed",
      changes: { files_created: [], files_modified: [], files_deleted: [] },
      summary: "",
      self_review: { tests_run: false, tests_passed: false, type_check_passed: false },
    },
    given,
  );
  const typed = (change_type: string) => (f: FileChange) => fill<FileChange>({ path: "", change_type }, f);
  correct(c.changes, "files_created", each(c.changes.files_created, typed("created")));
  correct(c.changes, "files_modified", each(c.changes.files_modified, typed("modified")));
  return c;
}

export function reviewRequest(given: Loose<ReviewRequest>): ReviewRequest {
  const r = fill<ReviewRequest>(
    {
      review_id: "",
      task_id: "",
      scope: { files: [], focus_areas: [] },
      criteria: { must_pass_tests: false, must_pass_type_check: false },
      context: { task_description: "", acceptance_criteria: [] },
    },
    given,
  );
  correct(r.criteria, "custom_checks", each(r.criteria.custom_checks, (c) => fill({ name: "", command: "", expected_exit_code: 0 }, c)));
  return r;
}

export function reviewResult(given: Loose<ReviewResult>): ReviewResult {
  const r = fill<ReviewResult>(
    {
      review_id: "",
      task_id: "",
      verdict: "",
      findings: [],
      verification: { tests: { passed: false }, type_check: { passed: false }, custom: {} },
      summary: "",
    },
    given,
  );
  correct(r, "findings", each(r.findings, finding));
  correct(r, "required_changes", each(r.required_changes, (c) => fill({ change_id: "", priority: "", related_findings: [], description: "" }, c)));
  return r;
}

function finding(given: Finding): Finding {
  return fill({ finding_id: "", severity: "", category: "", location: { file: "" }, description: "", rationale: "" }, given);
}

export function feedback(given: Loose<Feedback>): Feedback {
  return fill({ feedback_type: "", subject: "", content: "", action_required: false }, given);
}

export function abort(given: Loose<Abort>): Abort {
  return fill({ scope: "", target_id: "", reason: "", cleanup_required: false }, given);
}
