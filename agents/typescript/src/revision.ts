import { reviewRequest } from "./fill.js";
import { type Assignment, type Completion, type Finding, type Loose, type ReviewRequest, type ReviewResult, type ReviewSummary, touched } from "./sessions.js";

/** Returns a review request with missing members filled in from the task. */
export function asked(
  given: Loose<ReviewRequest>,
  as: { id: string; task: string; done: Completion | undefined; first: string; work: Assignment | undefined; reviews: ReviewSummary[] },
): ReviewRequest {
  const { scope = {}, context = {} } = given;
  const previous = context.previous_reviews ?? (as.reviews.length > 0 ? [...as.reviews] : undefined);
  return reviewRequest({
    ...given,
    review_id: as.id,
    task_id: as.task,
    scope: {
      ...scope,
      files: scope.files ?? (as.done ? touched(as.done.changes) : []),
      focus_areas: scope.focus_areas ?? ["logic"],
    },
    context: {
      ...context,
      task_description: context.task_description || as.first,
      acceptance_criteria: context.acceptance_criteria ?? as.work?.task.acceptance_criteria ?? [],
      ...(previous && { previous_reviews: previous }),
    },
  });
}

/** Returns the changes that a result asks for, as text. */
export function wanted(r: ReviewResult): string {
  const changes = (r.required_changes ?? []).map((c) => `\n- ${c.priority}: ${c.description}`);
  const open = r.findings.filter((f) => !f.fixed_in_iteration).map((f) => `\n- ${inWords(f)}`);
  return `The review says ${r.verdict}: ${r.summary}` + changes.join("") + open.join("");
}

/** Returns the open findings of a result, for the next reviewer. */
export function keyFindings(r: ReviewResult): string[] {
  return r.findings.filter((f) => !f.fixed_in_iteration && f.severity !== "suggestion").map(inWords);
}

/** Returns a finding in one line. */
export function inWords(f: Finding): string {
  const place = f.location.line_start ? `${f.location.file}:${f.location.line_start}` : f.location.file;
  const suggestion = f.suggestion ? ` Suggestion: ${f.suggestion}` : "";
  return `${f.severity} (${f.category}) in ${place}: ${f.description}${suggestion}`;
}
