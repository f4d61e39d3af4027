package wire

// SessionView answers get-session: a session whole, with a page of its log.
type SessionView struct {
	SessionSpec
	State    string         `json:"state"` // SessionOpen or SessionClosed
	Reason   string         `json:"reason,omitzero"`
	Source   string         `json:"source"` // SessionFromFile or SessionByHand
	Standing []MemberView   `json:"standing"`
	Tasks    []SessionTask  `json:"tasks"`    // in the order in which they were assigned
	Reviews  []ReviewView   `json:"reviews"`  // in the order in which they were asked for
	Messages []SessionEntry `json:"messages"` // in the order in which they came
	More     bool           `json:"more"`     // there are messages behind these
	Next     int64          `json:"next"`     // ask again behind this number
}

// What a session can be.
const (
	SessionOpen   = "open"
	SessionClosed = "closed"
)

// Where a session comes from.
const (
	SessionFromFile = "file"
	SessionByHand   = "operation"
)

// MemberView is how a member is.
type MemberView struct {
	SessionMember
	Status  string `json:"status"`           // as query-agents has it; absent: no agent has this name
	Waiting int    `json:"waiting,omitzero"` // messages that it has not been given yet
	Working int    `json:"working,omitzero"` // tasks that it has
}

// SessionList answers list-sessions.
type SessionList struct {
	Sessions []SessionBrief `json:"sessions"`
}

// SessionBrief is what there is room for of a session beside others.
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
	TaskID        string              `json:"task_id"`
	Name          string              `json:"name"`
	Architect     string              `json:"architect"`
	Developer     string              `json:"developer"`
	Phase         string              `json:"phase"`    // Phase… below
	State         TaskState           `json:"state"`    // of the task
	Progress      float64             `json:"progress"` // from 0 to 1
	Step          string              `json:"step,omitzero"`
	Overdue       bool                `json:"overdue,omitzero"` // no progress is heard of for too long
	Tries         int                 `json:"tries"`            // 2: it was retried after an error
	Iteration     int                 `json:"iteration"`        // reviews that it has had
	MaxIterations int                 `json:"max_iterations"`
	Escalated     string              `json:"escalated,omitzero"` // Escalate…: its last review was one too many
	CorrelationID string              `json:"correlation_id"`
	Revises       string              `json:"revises,omitzero"` // the task of which this one is a revision
	Scope         []string            `json:"scope"`
	Findings      []FindingView       `json:"findings"`
	Error         *TaskExecutionError `json:"error,omitzero"` // the latest
}

// The phases of a task of a session.
const (
	PhaseHeld      = "held"      // it waits for others
	PhaseAssigned  = "assigned"  // the developer was told, and has said nothing yet
	PhaseWorking   = "working"   // the developer is at it
	PhaseCompleted = "completed" // the developer is done, and no review was asked for
	PhaseReviewing = "reviewing"
	PhaseRevise    = "revise"   // changes are requested: the architect assigns it again
	PhaseRedesign  = "redesign" // it was rejected, and is to be planned anew
	PhaseHuman     = "human"    // a person has to decide
	PhaseOver      = "over"
)

// FindingView is a finding, followed over the reviews of a task.
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
	Findings    []string `json:"findings"` // ids of those that its result has
}

// ReviewList answers list-reviews.
type ReviewList struct {
	Reviews []ReviewView `json:"reviews"`
}

// SessionEntry is a message as the log of its session has it.
type SessionEntry struct {
	Seq       int64  // its number in the record
	Document  Raw    // the message as it came; nil when it could not be read to its end
	MessageID string // where there is no document
	Type      string // likewise
	From      string // the agent that said it
	LoggedAt  string
	TookMS    float64  // from when it came to when it was decided about
	Errors    []string // what was forgiven, or all that is wrong with it
	Refused   string   // why it was not delivered; "" when it was
	By        string   // who said it in its sender's name; "" when its sender did
	Sequence  int64    // what it was delivered with, where it had none itself
	Chain     string
}
