package session

import (
	"fmt"
)

// ReviewRequest asks a reviewer to review a task.
type ReviewRequest struct {
	// The id of the review, unique among all reviews.
	ReviewID string `json:"review_id" schema:"id"`
	// The id of the task.
	TaskID string `json:"task_id" schema:"id"`
	// The files and changes to review.
	Scope ReviewScope `json:"scope"`
	// The criteria for an approval.
	Criteria ReviewCriteria `json:"criteria"`
	// The context of the review.
	Context ReviewContext `json:"context"`
}

// ReviewScope limits a review.
type ReviewScope struct {
	// The files.
	Files []string `json:"files" schema:"each:nonblank"`
	// The topics of the review.
	FocusAreas []string `json:"focus_areas" schema:"each:enum=session.FocusAreas"`
	// Patterns of files to ignore.
	IgnorePatterns []string `json:"ignore_patterns,omitzero" schema:"each:nonblank"`
}

// ReviewCriteria lists the checks that the work has to pass.
type ReviewCriteria struct {
	// Whether the tests must pass.
	MustPassTests bool `json:"must_pass_tests"`
	// Whether the type check must pass.
	MustPassTypeCheck bool `json:"must_pass_type_check"`
	// Whether the linter must pass.
	MustPassLint bool `json:"must_pass_lint,omitzero"`
	// Other checks that must pass.
	CustomChecks []CustomCheck `json:"custom_checks,omitzero" schema:"each:about=A check."`
}

// CustomCheck is a command that the architect suggests. This package never runs it; the author
// of the reviewer decides whether and where to run it.
type CustomCheck struct {
	// The name of the check.
	Name string `json:"name" schema:"nonblank"`
	// The command for the reviewer. The orchestrator does not run it.
	Command string `json:"command" schema:"nonblank"`
	// The exit code of a passed check.
	ExitCode int64 `json:"expected_exit_code" schema:"whole=-9007199254740991"`
}

// ReviewContext describes the task that was to be done.
type ReviewContext struct {
	// The work to review.
	TaskDescription string `json:"task_description"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptance_criteria"`
	// The previous reviews.
	PreviousReviews []ReviewSummary `json:"previous_reviews,omitzero" schema:"each:about=A review."`
}

// ReviewSummary is the outcome of an earlier review.
type ReviewSummary struct {
	// The number of the review.
	Number int64 `json:"review_number" schema:"whole=0"`
	// The verdict of the review.
	Verdict string `json:"verdict"`
	// The main findings.
	KeyFindings []string `json:"key_findings"`
}

// ReviewResult is the outcome of a review. An approval must have no open critical or major
// finding and no failed check.
type ReviewResult struct {
	// The id of the review.
	ReviewID string `json:"review_id" schema:"id"`
	// The id of the task.
	TaskID string `json:"task_id" schema:"id"`
	// Whether the work is right (approved), needs changes (changes_requested), or must be planned
	// again (rejected). It cannot be approved while a critical or major finding is open, or a check
	// has not passed.
	Verdict string `json:"verdict" schema:"enum=session.Verdicts"`
	// The findings.
	Findings []Finding `json:"findings"`
	// The results of the checks.
	Verification Verification `json:"verification"`
	// A summary in one line.
	Summary string `json:"summary"`
	// The changes that the reviewer requires.
	RequiredChanges []RequiredChange `json:"required_changes,omitzero"`
	// The strengths of the work.
	Commendations []string `json:"commendations,omitzero"`

	custom []string // the names of the custom checks, in the order of the message
}

// Finding is one finding of a review.
type Finding struct {
	// The id of the finding, unique in the result.
	FindingID string `json:"finding_id" schema:"id"`
	// The severity of the finding.
	Severity string `json:"severity" schema:"enum=session.Severities"`
	// The category of the finding.
	Category string `json:"category" schema:"enum=session.Categories"`
	// The place of the finding.
	Location Location `json:"location"`
	// The description of the finding.
	Description string `json:"description"`
	// Why the finding matters. Unless the session is strict, it may be missing.
	Rationale string `json:"rationale"`
	// A suggestion for an improvement.
	Suggestion string `json:"suggestion,omitzero"`
	// The iteration that fixed the finding. A fixed finding does not prevent an approval.
	FixedIn int64 `json:"fixed_in_iteration,omitzero" schema:"whole=1"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	place := f.Location.File
	if f.Location.LineStart > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Location.LineStart)
	}
	text := fmt.Sprintf("%s (%s) in %s: %s", f.Severity, f.Category, place, f.Description)
	if f.Suggestion != "" {
		text += " Suggestion: " + f.Suggestion
	}
	return text
}

// Location is the place of a finding.
type Location struct {
	// The file.
	File string `json:"file" schema:"nonblank"`
	// The first line.
	LineStart int64 `json:"line_start,omitzero" schema:"whole=0"`
	// The last line; not less than line_start.
	LineEnd int64 `json:"line_end,omitzero" schema:"whole=0"`
	// The code at that place.
	Snippet string `json:"code_snippet,omitzero"`
}

// Verification holds the results of the checks.
type Verification struct {
	Tests     CheckResult  `json:"tests"`
	TypeCheck CheckResult  `json:"type_check"`
	Lint      *CheckResult `json:"lint,omitzero"`
	// The results of the custom checks of the request, by name. Unless the session is strict, it may
	// be missing.
	Custom map[string]CheckResult `json:"custom"`
}

// CheckResult is the result of one check.
type CheckResult struct {
	// Whether the check passed.
	Passed bool `json:"passed"`
	// The output of the check.
	Output string `json:"output,omitzero"`
	// The error of the check.
	Error string `json:"error,omitzero"`
}

// RequiredChange is a change that a reviewer requires.
type RequiredChange struct {
	// The id of the change.
	ChangeID string `json:"change_id" schema:"id"`
	// The priority of the change.
	Priority string `json:"priority" schema:"enum=session.Fixes"`
	// The ids of the findings that the change fixes.
	Findings []string `json:"related_findings" schema:"each:nonblank"`
	// The change to make.
	Description string `json:"description"`
}
