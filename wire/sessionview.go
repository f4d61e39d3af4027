package wire

import (
	"orchestrator/wire/session"
)

// SessionView answers get-session with a whole session and a page of its log.
type SessionView struct {
	SessionSpec
	// Whether the session accepts messages.
	State string `json:"state" schema:"enum=wire.sessionStates"`
	// Why the session is closed.
	Reason string `json:"reason,omitzero"`
	// Whether the session comes from the configuration or from a request.
	Source string `json:"source" schema:"enum=wire.sessionSources"`
	// The members with their load.
	Standing []MemberView `json:"standing"`
	// The tasks, in the order in which they were assigned.
	Tasks []SessionTask `json:"tasks"`
	// The reviews, in the order in which they were requested.
	Reviews []ReviewView `json:"reviews"`
	// A page of messages, in the order in which they were received.
	Messages []SessionEntry `json:"messages"`
	// Whether more messages follow.
	More bool `json:"more"`
	// The value of after for the next page.
	Next int64 `json:"next" schema:"min=0"`
}

// The states of a session.
const (
	SessionOpen   = "open"
	SessionClosed = "closed"
)

// Where a session comes from.
const (
	SessionFromFile = "file"
	SessionByHand   = "operation"
)

// A MemberView shows a member and its load.
type MemberView struct {
	SessionMember
	// The status, as in query-agents; empty if no agent has this name.
	Status string `json:"status"`
	// The number of messages that are not delivered yet.
	Waiting int `json:"waiting,omitzero" schema:"min=0"`
	// The number of tasks that the agent has.
	Working int `json:"working,omitzero" schema:"min=0"`
}

// SessionList answers list-sessions.
type SessionList struct {
	Sessions []SessionBrief `json:"sessions"`
}

// A SessionBrief summarizes a session for a list.
type SessionBrief struct {
	// The name of the session.
	ID string `json:"session_id"`
	// Whether the session accepts messages.
	State string `json:"state" schema:"enum=wire.sessionStates"`
	// Whether the session comes from the configuration or from a request.
	Source  string          `json:"source" schema:"enum=wire.sessionSources"`
	Members []SessionMember `json:"members"`
	// The number of messages so far.
	Messages int64 `json:"messages" schema:"min=0"`
	// The number of refused messages among them.
	Refused int64 `json:"refused" schema:"min=0"`
	// The number of tasks that have not ended.
	Open int `json:"open_tasks" schema:"min=0"`
	// The number of all tasks.
	Tasks int `json:"tasks" schema:"min=0"`
	// The number of reviews without a verdict.
	Reviews int `json:"open_reviews" schema:"min=0"`
}

// SessionTask is a task of a session as its members see it.
type SessionTask struct {
	// The id of the task.
	TaskID string `json:"task_id"`
	// The name of the task.
	Name string `json:"name"`
	// The agent that assigned it.
	Architect string `json:"architect"`
	// The agent that has the task.
	Developer string `json:"developer"`
	// held: it waits for other tasks. assigned: the developer has it and has not responded. working:
	// the developer works on it. completed: the developer is done, and no review is requested yet.
	// reviewing: it is reviewed. revise: the architect must assign it again with changes. redesign: it
	// must be planned again. human: a person has to decide. over: it has ended.
	Phase string `json:"phase" schema:"enum=wire.phases"`
	// The state, as of every task.
	State TaskState `json:"state"`
	// The progress, from 0 to 1.
	Progress float64 `json:"progress" schema:"min=0,max=1"`
	// What the developer is doing now.
	Step string `json:"step,omitzero"`
	// Whether the progress report is overdue.
	Overdue bool `json:"overdue,omitzero"`
	// How often the task was assigned: 2 if it was retried after an error.
	Tries int `json:"tries" schema:"min=0"`
	// The number of reviews so far.
	Iteration int `json:"iteration" schema:"min=0"`
	// The maximum number of reviews.
	MaxIterations int `json:"max_iterations" schema:"min=1"`
	// What happened when the last allowed review did not approve the task.
	Escalated string `json:"escalated,omitzero" schema:"enum=session.Escalations"`
	// The correlation_id of all messages about the task.
	CorrelationID string `json:"correlation_id"`
	// The id of the task that this task revises.
	Revises string `json:"revises,omitzero"`
	// Patterns of the files that may be changed.
	Scope []string `json:"scope"`
	// The findings of all reviews.
	Findings []FindingView `json:"findings"`
	// The latest error in the work on the task.
	Error *session.ExecutionError `json:"error,omitzero"`
}

// The phases of a task of a session.
const (
	PhaseHeld      = "held"      // it waits for others
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
	Verdict string `json:"verdict,omitzero" schema:"enum=wire.reviewVerdicts"`
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

// A SessionEntry is a message in the log of its session.
type SessionEntry struct {
	Document  Raw    `json:"-"` // the message as received; nil if it could not be read completely
	MessageID string `json:"-"` // only without a document
	Type      string `json:"-"` // likewise
	From      string `json:"-"` // the agent that said it
	Sequence  int64  `json:"-"` // the number that was assigned at delivery, if it had none
	Chain     string `json:"-"` // the correlation_id that was assigned at delivery, if it had none

	// When the message was logged: UTC, with milliseconds.
	LoggedAt string `json:"logged_at" schema:"stamp"`
	// The time from the receipt of the message to the decision about it, in milliseconds.
	TookMS float64 `json:"processing_duration_ms" schema:"min=0"`
	// The tolerated errors of the message, or all errors, each with its place. It is missing if there
	// are none.
	Errors []string `json:"validation_errors,omitzero" schema:"minitems=1"`
	// The number of the message in the event log. An extension of the published protocol.
	Seq int64 `json:"log_seq" schema:"min=1"`
	// Why the message was not delivered; missing if it was. An extension of the published protocol.
	Refused string `json:"refused,omitzero" schema:"minlen=1"`
	// Who sent the message in the name of its sender, such as the orchestrator or an operator. It is
	// missing if the sender did. An extension of the published protocol.
	By string `json:"said_by,omitzero" schema:"minlen=1"`
}
