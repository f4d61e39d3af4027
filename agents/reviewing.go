package agents

// ReviewRequest asks a reviewer to review a task.
type ReviewRequest struct {
	ReviewID string         `json:"review_id"` // a new one for each request
	TaskID   string         `json:"task_id"`
	Scope    ReviewScope    `json:"scope"`
	Criteria ReviewCriteria `json:"criteria"`
	Context  ReviewContext  `json:"context"`
}

// ReviewScope limits what to review.
type ReviewScope struct {
	Files          []string `json:"files"`
	FocusAreas     []string `json:"focus_areas"` // wire.FocusLogic and so on
	IgnorePatterns []string `json:"ignore_patterns,omitzero"`
}

// ReviewCriteria lists the checks that the work has to pass.
type ReviewCriteria struct {
	MustPassTests     bool          `json:"must_pass_tests"`
	MustPassTypeCheck bool          `json:"must_pass_type_check"`
	MustPassLint      bool          `json:"must_pass_lint,omitzero"`
	CustomChecks      []CustomCheck `json:"custom_checks,omitzero"`
}

// CustomCheck is a command that the architect suggests. This package never runs it; the author
// of the reviewer decides whether and where to run it.
type CustomCheck struct {
	Name     string `json:"name"`
	Command  string `json:"command"`
	ExitCode int64  `json:"expected_exit_code"`
}

// ReviewContext describes the task that was to be done.
type ReviewContext struct {
	TaskDescription    string          `json:"task_description"`
	AcceptanceCriteria []string        `json:"acceptance_criteria"`
	PreviousReviews    []ReviewSummary `json:"previous_reviews,omitzero"`
}

// ReviewSummary is the outcome of an earlier review.
type ReviewSummary struct {
	Number      int64    `json:"review_number"`
	Verdict     string   `json:"verdict"`
	KeyFindings []string `json:"key_findings"`
}

// ReviewResult is the outcome of a review. An approval must have no open critical or major
// finding and no failed check.
type ReviewResult struct {
	ReviewID        string           `json:"review_id"` // that of the request when it is ""
	TaskID          string           `json:"task_id"`   // likewise
	Verdict         string           `json:"verdict"`   // wire.VerdictApproved and so on
	Findings        []Finding        `json:"findings"`
	Verification    Verification     `json:"verification"`
	Summary         string           `json:"summary"`
	RequiredChanges []RequiredChange `json:"required_changes,omitzero"` // where the verdict is not approved
	Commendations   []string         `json:"commendations,omitzero"`    // where it is
}

// Finding is one finding of a review.
type Finding struct {
	FindingID   string   `json:"finding_id"`
	Severity    string   `json:"severity"` // wire.SeverityCritical and so on
	Category    string   `json:"category"` // wire.CategoryBug and so on
	Location    Location `json:"location"`
	Description string   `json:"description"`
	Rationale   string   `json:"rationale"`
	Suggestion  string   `json:"suggestion,omitzero"`
	FixedIn     int64    `json:"fixed_in_iteration,omitzero"` // 0: still open
}

// Location is the place of a finding.
type Location struct {
	File      string `json:"file"`
	LineStart int64  `json:"line_start,omitzero"`
	LineEnd   int64  `json:"line_end,omitzero"`
	Snippet   string `json:"code_snippet,omitzero"`
}

// Verification holds the results of the checks.
type Verification struct {
	Tests     CheckResult            `json:"tests"`
	TypeCheck CheckResult            `json:"type_check"`
	Lint      *CheckResult           `json:"lint,omitzero"`
	Custom    map[string]CheckResult `json:"custom"` // by the names of the custom checks
}

// CheckResult is the result of one check.
type CheckResult struct {
	Passed bool   `json:"passed"`
	Output string `json:"output,omitzero"`
	Error  string `json:"error,omitzero"`
}

// RequiredChange is a change that a reviewer requires.
type RequiredChange struct {
	ChangeID    string   `json:"change_id"`
	Priority    string   `json:"priority"`         // wire.FixMust and so on
	Findings    []string `json:"related_findings"` // by their ids
	Description string   `json:"description"`
}
