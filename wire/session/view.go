package session

// The states of a session.
const (
	Open   = "open"
	Closed = "closed"
)

// Where a session comes from.
const (
	FromFile = "file"
	ByHand   = "operation"
)

// A MemberView shows a member and its load.
type MemberView struct {
	Member
	// The status, as in query-agents; empty if no agent has this name.
	Status string `json:"status"`
	// The number of messages that are not delivered yet.
	Waiting int `json:"waiting,omitzero" schema:"min=0"`
	// The number of tasks that the agent has.
	Working int `json:"working,omitzero" schema:"min=0"`
}

// List answers list-sessions.
type List struct {
	Sessions []Brief `json:"sessions"`
}

// A Brief summarizes a session for a list.
type Brief struct {
	// The name of the session.
	ID string `json:"session_id"`
	// Whether the session accepts messages.
	State string `json:"state" schema:"enum=session.states"`
	// Whether the session comes from the configuration or from a request.
	Source  string   `json:"source" schema:"enum=session.sources"`
	Members []Member `json:"members"`
	// The number of messages so far.
	Messages int64 `json:"messages" schema:"min=0"`
	// The number of refused messages among them.
	Refused int64 `json:"refused" schema:"min=0"`
	// The number of open tasks.
	Open int `json:"open_tasks" schema:"min=0"`
	// The number of all tasks.
	Tasks int `json:"tasks" schema:"min=0"`
	// The number of reviews without a verdict.
	Reviews int `json:"open_reviews" schema:"min=0"`
}

// The phases of a task of a session.
const (
	PhaseHeld      = "held"      // it waits for other tasks
	PhaseAssigned  = "assigned"  // the developer has it and has not responded
	PhaseWorking   = "working"   // the developer is at it
	PhaseCompleted = "completed" // the developer is done; no review is requested yet
	PhaseReviewing = "reviewing"
	PhaseRevise    = "revise"   // changes are requested; the architect must assign it again
	PhaseRedesign  = "redesign" // it was rejected and must be planned again
	PhaseHuman     = "human"    // a person has to decide
	PhaseOver      = "over"
)

// A FindingView is a finding, tracked over the reviews of a task.
type FindingView struct {
	// The id of the finding.
	ID string `json:"finding_id"`
	// The severity of the finding.
	Severity string `json:"severity" schema:"enum=session.Severities"`
	// The category of the finding.
	Category string `json:"category" schema:"enum=session.Categories"`
	// The file of the finding.
	File string `json:"file,omitzero"`
	// The description of the finding.
	Text string `json:"description,omitzero"`
	// The review that reported the finding.
	Found int `json:"found_in_iteration" schema:"min=1"`
	// The review that reported the finding as fixed; missing while the finding is open.
	Fixed int `json:"fixed_in_iteration,omitzero" schema:"min=1"`
}

// ReviewView is a review.
type ReviewView struct {
	// The id of the review.
	ReviewID string `json:"review_id"`
	// The session of the review.
	SessionID string `json:"session_id"`
	// The id of the task.
	TaskID string `json:"task_id"`
	// The agent that reviews the task.
	Reviewer string `json:"reviewer"`
	// The number of the review among the reviews of its task, from 1.
	Iteration int `json:"iteration" schema:"min=1"`
	// The verdict; none if the reviewer never received the request. It is missing while the review is
	// open.
	Verdict string `json:"verdict,omitzero" schema:"enum=session.reviewVerdicts"`
	// When the review was requested: UTC, with milliseconds.
	RequestedAt string `json:"requested_at" schema:"stamp"`
	// When the review was closed.
	DecidedAt string `json:"decided_at,omitzero" schema:"stamp"`
	// The ids of the findings.
	Findings []string `json:"findings"`
}

// ReviewList answers list-reviews.
type ReviewList struct {
	Reviews []ReviewView `json:"reviews"`
}

// How many messages a page of a session has.
const (
	Page    = 100
	MaxPage = 10_000
)

// Said answers send-session-message.
type Said struct {
	// The message_id of the message.
	MessageID string `json:"message_id"`
	// The session of the message.
	SessionID string `json:"session_id"`
	// The number of the message in the event log.
	Seq int64 `json:"seq" schema:"min=0"`
	// The position of the message in the session.
	SequenceNumber int64 `json:"sequence_number" schema:"min=0"`
	// The correlation_id of the message.
	CorrelationID string `json:"correlation_id,omitzero"`
	// Whether the message is a repeat, which has no effect; missing if it is not.
	Duplicate bool `json:"duplicate,omitzero"`
	// Whether delivery waits until the tasks that the message waits for are done; missing if it does
	// not.
	Held bool `json:"held,omitzero"`
	// Tolerated errors and warnings.
	Notes []string `json:"notes,omitzero"`
}
