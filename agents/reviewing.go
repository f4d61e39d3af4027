package agents

// ReviewRequest is what an architect asks a reviewer to look at.
type ReviewRequest struct {
	ReviewID string         `json:"review_id"` // a new one for each request
	TaskID   string         `json:"task_id"`
	Scope    ReviewScope    `json:"scope"`
	Criteria ReviewCriteria `json:"criteria"`
	Context  ReviewContext  `json:"context"`
}

// ReviewScope is what there is to look at.
type ReviewScope struct {
	Files          []string `json:"files"`
	FocusAreas     []string `json:"focus_areas"` // wire.FocusLogic and so on
	IgnorePatterns []string `json:"ignore_patterns,omitzero"`
}

// ReviewCriteria are what the work has to pass.
type ReviewCriteria struct {
	MustPassTests     bool          `json:"must_pass_tests"`
	MustPassTypeCheck bool          `json:"must_pass_type_check"`
	MustPassLint      bool          `json:"must_pass_lint,omitzero"`
	CustomChecks      []CustomCheck `json:"custom_checks,omitzero"`
}

// CustomCheck is a command that the architect would like to see run. Nothing here
// runs it: whether a reviewer does, and where, is for its author to decide.
type CustomCheck struct {
	Name     string `json:"name"`
	Command  string `json:"command"`
	ExitCode int64  `json:"expected_exit_code"`
}

// ReviewContext is what the work was to be.
type ReviewContext struct {
	TaskDescription    string          `json:"task_description"`
	AcceptanceCriteria []string        `json:"acceptance_criteria"`
	PreviousReviews    []ReviewSummary `json:"previous_reviews,omitzero"`
}

// ReviewSummary is what came of an earlier review.
type ReviewSummary struct {
	Number      int64    `json:"review_number"`
	Verdict     string   `json:"verdict"`
	KeyFindings []string `json:"key_findings"`
}

// ReviewResult is what a reviewer thinks of it. One that approves must have no
// critical or major finding that is open, and no check that did not pass.
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

// Finding is something that a reviewer has found.
type Finding struct {
	FindingID   string   `json:"finding_id"`
	Severity    string   `json:"severity"` // wire.SeverityCritical and so on
	Category    string   `json:"category"` // wire.CategoryBug and so on
	Location    Location `json:"location"`
	Description string   `json:"description"`
	Rationale   string   `json:"rationale"`
	Suggestion  string   `json:"suggestion,omitzero"`
	FixedIn     int64    `json:"fixed_in_iteration,omitzero"` // 0: it is open
}

// Location is where it is.
type Location struct {
	File      string `json:"file"`
	LineStart int64  `json:"line_start,omitzero"`
	LineEnd   int64  `json:"line_end,omitzero"`
	Snippet   string `json:"code_snippet,omitzero"`
}

// Verification is what the checks came to.
type Verification struct {
	Tests     CheckResult            `json:"tests"`
	TypeCheck CheckResult            `json:"type_check"`
	Lint      *CheckResult           `json:"lint,omitzero"`
	Custom    map[string]CheckResult `json:"custom"` // by the names of the custom checks
}

// CheckResult is what one check came to.
type CheckResult struct {
	Passed bool   `json:"passed"`
	Output string `json:"output,omitzero"`
	Error  string `json:"error,omitzero"`
}

// RequiredChange is what a reviewer wants to be changed.
type RequiredChange struct {
	ChangeID    string   `json:"change_id"`
	Priority    string   `json:"priority"`         // wire.FixMust and so on
	Findings    []string `json:"related_findings"` // by their ids
	Description string   `json:"description"`
}
