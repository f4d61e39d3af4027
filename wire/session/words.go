package session

// The words of the session protocol between an architect, developers and reviewers. The lists are
// closed: any other word is an error.

// The types of session messages.
const (
	TypeTaskAssignment = "task_assignment"
	TypeTaskProgress   = "task_progress"
	TypeTaskCompletion = "task_completion"
	TypeReviewRequest  = "review_request"
	TypeReviewResult   = "review_result"
	TypeFeedback       = "feedback"
	TypeStatusQuery    = "status_query"
	TypeStatusResponse = "status_response"
	TypeAbort          = "abort"
	TypeAcknowledgment = "acknowledgment"
)

// Types are all types of session messages.
var Types = []string{
	TypeTaskAssignment, TypeTaskProgress, TypeTaskCompletion, TypeReviewRequest, TypeReviewResult,
	TypeFeedback, TypeStatusQuery, TypeStatusResponse, TypeAbort, TypeAcknowledgment,
}

// The types of agents in a session.
const (
	AgentArchitect = "architect" // gives out the work
	AgentDeveloper = "developer" // does it
	AgentReviewer  = "reviewer"  // judges it
)

// AgentTypes are all types of agents in a session.
var AgentTypes = []string{AgentArchitect, AgentDeveloper, AgentReviewer}

// The priorities of an assignment.
const (
	PriorityHigh   = "high"
	PriorityMedium = "medium"
	PriorityLow    = "low"
)

var Priorities = []string{PriorityHigh, PriorityMedium, PriorityLow}

// The types of a Dependency. A task waits for a hard one.
const (
	DependsHard = "hard"
	DependsSoft = "soft"
)

var DependencyTypes = []string{DependsHard, DependsSoft}

// The outcomes of a completion.
const (
	OutcomeCompleted = "completed"
	OutcomePartial   = "partial"
	OutcomeFailed    = "failed"
)

var Outcomes = []string{OutcomeCompleted, OutcomePartial, OutcomeFailed}

// The types of change to a file.
const (
	ChangeCreated  = "created"
	ChangeModified = "modified"
	ChangeDeleted  = "deleted"
)

var ChangeTypes = []string{ChangeCreated, ChangeModified, ChangeDeleted}

// The focus areas of a review.
const (
	FocusSecurity      = "security"
	FocusPerformance   = "performance"
	FocusStyle         = "style"
	FocusLogic         = "logic"
	FocusErrorHandling = "error_handling"
	FocusTestCoverage  = "test_coverage"
)

var FocusAreas = []string{FocusSecurity, FocusPerformance, FocusStyle, FocusLogic, FocusErrorHandling, FocusTestCoverage}

// The verdicts of a review.
const (
	VerdictApproved         = "approved"
	VerdictChangesRequested = "changes_requested" // it can be corrected
	VerdictRejected         = "rejected"          // it must be planned again
)

// VerdictNone is the verdict of a review that its reviewer never received.
const VerdictNone = "none"

var Verdicts = []string{VerdictApproved, VerdictChangesRequested, VerdictRejected}

// The severities of a finding.
const (
	SeverityCritical   = "critical"
	SeverityMajor      = "major"
	SeverityMinor      = "minor"
	SeveritySuggestion = "suggestion"
)

var Severities = []string{SeverityCritical, SeverityMajor, SeverityMinor, SeveritySuggestion}

// The categories of a finding. They differ from the focus areas.
const (
	CategoryBug         = "bug"
	CategorySecurity    = "security"
	CategoryPerformance = "performance"
	CategoryStyle       = "style"
	CategoryLogic       = "logic"
	CategoryTest        = "test"
)

var Categories = []string{CategoryBug, CategorySecurity, CategoryPerformance, CategoryStyle, CategoryLogic, CategoryTest}

// How much a reviewer insists on a change.
const (
	FixMust     = "must_fix"
	FixShould   = "should_fix"
	FixConsider = "consider"
)

var Fixes = []string{FixMust, FixShould, FixConsider}

// The types of feedback.
const (
	FeedbackClarification = "clarification"
	FeedbackCorrection    = "correction"
	FeedbackGuidance      = "guidance"
	FeedbackQuestion      = "question"
)

var FeedbackTypes = []string{FeedbackClarification, FeedbackCorrection, FeedbackGuidance, FeedbackQuestion}

// The scopes of an abort.
const (
	AbortTask    = "task"
	AbortSession = "session"
)

var AbortScopes = []string{AbortTask, AbortSession}

// DefaultIterations is the default maximum number of reviews of a task.
const DefaultIterations = 3

// The actions for a task that is not approved after the maximum number of reviews. No message
// contains them.
const (
	EscalateAbort        = "abort"
	EscalateForceApprove = "force_approve"
	EscalateHumanReview  = "human_review"
)

// Escalations lists these actions.
var Escalations = []string{EscalateAbort, EscalateForceApprove, EscalateHumanReview}
