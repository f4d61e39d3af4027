package wire

import (
	"orchestrator/wire/session"
)

// SessionView answers get-session with a whole session and a page of its log.
type SessionView struct {
	SessionSpec
	State    string         `json:"state"` // SessionOpen or SessionClosed
	Reason   string         `json:"reason,omitzero"`
	Source   string         `json:"source"` // SessionFromFile or SessionByHand
	Standing []MemberView   `json:"standing"`
	Tasks    []SessionTask  `json:"tasks"`    // in the order in which they were assigned
	Reviews  []ReviewView   `json:"reviews"`  // in the order in which they were asked for
	Messages []SessionEntry `json:"messages"` // in the order in which they came
	More     bool           `json:"more"`     // more messages follow
	Next     int64          `json:"next"`     // the After of the next page
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
	Status  string `json:"status"`           // as query-agents has it; absent: no agent has this name
	Waiting int    `json:"waiting,omitzero"` // messages not yet delivered to it
	Working int    `json:"working,omitzero"` // tasks that it has
}

// SessionList answers list-sessions.
type SessionList struct {
	Sessions []SessionBrief `json:"sessions"`
}

// A SessionBrief summarizes a session for a list.
type SessionBrief struct {
	ID       string          `json:"session_id"`
	State    string          `json:"state"`
	Source   string          `json:"source"`
	Members  []SessionMember `json:"members"`
	Messages int64           `json:"messages"` // so far
	Refused  int64           `json:"refused"`  // among them
	Open     int             `json:"open_tasks"`
	Tasks    int             `json:"tasks"`
	Reviews  int             `json:"open_reviews"`
}

// SessionTask is a task of a session as its members see it.
type SessionTask struct {
	TaskID        string                  `json:"task_id"`
	Name          string                  `json:"name"`
	Architect     string                  `json:"architect"`
	Developer     string                  `json:"developer"`
	Phase         string                  `json:"phase"`    // Phase… below
	State         TaskState               `json:"state"`    // of the task
	Progress      float64                 `json:"progress"` // from 0 to 1
	Step          string                  `json:"step,omitzero"`
	Overdue       bool                    `json:"overdue,omitzero"` // its progress report is overdue
	Tries         int                     `json:"tries"`            // 2: it was retried after an error
	Iteration     int                     `json:"iteration"`        // reviews that it has had
	MaxIterations int                     `json:"max_iterations"`
	Escalated     string                  `json:"escalated,omitzero"` // Escalate…: its last review was one too many
	CorrelationID string                  `json:"correlation_id"`
	Revises       string                  `json:"revises,omitzero"` // the task of which this one is a revision
	Scope         []string                `json:"scope"`
	Findings      []FindingView           `json:"findings"`
	Error         *session.ExecutionError `json:"error,omitzero"` // the latest
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
	ID       string `json:"finding_id"`
	Severity string `json:"severity"`
	Category string `json:"category"`
	File     string `json:"file,omitzero"`
	Text     string `json:"description,omitzero"`
	Found    int    `json:"found_in_iteration"`
	Fixed    int    `json:"fixed_in_iteration,omitzero"` // 0: it is open
}

// ReviewView is a review.
type ReviewView struct {
	ReviewID    string   `json:"review_id"`
	SessionID   string   `json:"session_id"`
	TaskID      string   `json:"task_id"`
	Reviewer    string   `json:"reviewer"`
	Iteration   int      `json:"iteration"`        // of its task, from 1
	Verdict     string   `json:"verdict,omitzero"` // Verdict…; absent: it is open
	RequestedAt string   `json:"requested_at"`
	DecidedAt   string   `json:"decided_at,omitzero"`
	Findings    []string `json:"findings"` // ids of the findings in its result
}

// ReviewList answers list-reviews.
type ReviewList struct {
	Reviews []ReviewView `json:"reviews"`
}

// A SessionEntry is a message in the log of its session.
type SessionEntry struct {
	Seq       int64  // its number in the record
	Document  Raw    // the message as received; nil if it could not be read completely
	MessageID string // only without a document
	Type      string // likewise
	From      string // the agent that said it
	LoggedAt  string
	TookMS    float64  // from its receipt to the decision
	Errors    []string // tolerated problems, or all problems
	Refused   string   // why it was not delivered; "" when it was
	By        string   // who sent it for its sender; "" if the sender did
	Sequence  int64    // the number that was assigned at delivery, if it had none
	Chain     string
}
