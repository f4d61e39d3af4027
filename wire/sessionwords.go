package wire

// The words of sessions, in which an architect, developers and reviewers work
// together. They are closed lists: a word that is not here is a mistake.

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

// SessionTypes are all types of session messages.
var SessionTypes = []string{
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

// How urgent an assignment is.
const (
	PriorityHigh   = "high"
	PriorityMedium = "medium"
	PriorityLow    = "low"
)

var sessionPriorities = []string{PriorityHigh, PriorityMedium, PriorityLow}

// DependsHard is a SessionDependency that is waited for; the other kind is
// DependsSoft.
const DependsHard = "hard"

var sessionDependencies = []string{DependsHard, DependsSoft}

// What a completion says became of the task.
const (
	OutcomeCompleted = "completed"
	OutcomePartial   = "partial"
	OutcomeFailed    = "failed"
)

var outcomes = []string{OutcomeCompleted, OutcomePartial, OutcomeFailed}

// What was done to a file.
const (
	ChangeCreated  = "created"
	ChangeModified = "modified"
	ChangeDeleted  = "deleted"
)

var changeTypes = []string{ChangeCreated, ChangeModified, ChangeDeleted}

// What a reviewer is asked to look at.
const (
	FocusSecurity      = "security"
	FocusPerformance   = "performance"
	FocusStyle         = "style"
	FocusLogic         = "logic"
	FocusErrorHandling = "error_handling"
	FocusTestCoverage  = "test_coverage"
)

var focusAreas = []string{FocusSecurity, FocusPerformance, FocusStyle, FocusLogic, FocusErrorHandling, FocusTestCoverage}

// What a review comes to.
const (
	VerdictApproved         = "approved"
	VerdictChangesRequested = "changes_requested" // it can be mended
	VerdictRejected         = "rejected"          // it has to be planned anew
)

// VerdictNone is said of a review that came to nothing: its reviewer never had it.
const VerdictNone = "none"

var verdicts = []string{VerdictApproved, VerdictChangesRequested, VerdictRejected}

// How bad a finding is.
const (
	SeverityCritical   = "critical"
	SeverityMajor      = "major"
	SeverityMinor      = "minor"
	SeveritySuggestion = "suggestion"
)

var severities = []string{SeverityCritical, SeverityMajor, SeverityMinor, SeveritySuggestion}

// What kind of thing a finding is. The words are not those of what a reviewer is
// asked to look at.
const (
	CategoryBug         = "bug"
	CategorySecurity    = "security"
	CategoryPerformance = "performance"
	CategoryStyle       = "style"
	CategoryLogic       = "logic"
	CategoryTest        = "test"
)

var categories = []string{CategoryBug, CategorySecurity, CategoryPerformance, CategoryStyle, CategoryLogic, CategoryTest}

// How much a reviewer insists on a change.
const (
	FixMust     = "must_fix"
	FixShould   = "should_fix"
	FixConsider = "consider"
)

var fixes = []string{FixMust, FixShould, FixConsider}

// What feedback is.
const (
	FeedbackClarification = "clarification"
	FeedbackCorrection    = "correction"
	FeedbackGuidance      = "guidance"
	FeedbackQuestion      = "question"
)

var feedbackTypes = []string{FeedbackClarification, FeedbackCorrection, FeedbackGuidance, FeedbackQuestion}

// What an abort ends.
const (
	AbortTask    = "task"
	AbortSession = "session"
)

var abortScopes = []string{AbortTask, AbortSession}

// SessionIterations is how often a task is reviewed at most, by default.
const SessionIterations = 3

// What becomes of a task that was reviewed that often and is still not right. No
// message says it.
const (
	EscalateAbort        = "abort"
	EscalateForceApprove = "force_approve"
	EscalateHumanReview  = "human_review"
)

// Escalations are all of these.
var Escalations = []string{EscalateAbort, EscalateForceApprove, EscalateHumanReview}
