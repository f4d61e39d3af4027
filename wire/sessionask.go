package wire

// A Lookup is the result of a search in the log for the key of a message. It is needed before
// the message can be decided. The State knows the latest keys, and reports when the Lookup is
// too old.
type Lookup struct {
	Before int64  // the number of the record with the key; 0: none
	Sum    uint64 // of that record, if the same key with other content is refused
	Looked int64  // the last record that was searched
	Sender string // the sender that the key belongs to
}

// A SessionSpec is the definition of a session, from the configuration or from create-session.
// It is the payload of create-session, too.
type SessionSpec struct {
	ID            string          `json:"session_id"`
	Members       []SessionMember `json:"members"`
	Validation    string          `json:"validation"`                 // Validation… below
	MaxIterations int64           `json:"max_iterations"`             // maximum number of reviews, unless a task has its own
	OnMax         string          `json:"on_max"`                     // Escalate…
	RequireReview bool            `json:"require_review"`             // a task is done when it is approved, not before
	TaskTimeout   int64           `json:"task_timeout_ms,omitzero"`   // milliseconds without a completion; 0: no limit
	ProgressAfter int64           `json:"progress_after_ms,omitzero"` // a task that takes longer must report its progress
	ProgressEvery int64           `json:"progress_every_ms,omitzero"` // the interval of these reports
}

// When a developer reports progress, by default: in milliseconds.
const (
	SessionProgressAfter = 120_000
	SessionProgressEvery = 30_000
)

// The levels of validation of session messages.
const (
	ValidationStandard = "standard"
	ValidationStrict   = "strict"
)

// A SessionMember is a member of a session.
type SessionMember struct {
	AgentID   string `json:"agent_id"`
	AgentType string `json:"agent_type"` // Agent…
}

// SaySession is the payload of send-session-message. An agent says the same by
// printing the message as a line of its own.
type SaySession struct {
	SessionID string // the session; "": the only one that both members share
	Session          // the message, or its error, which does not refuse the request
	Lookup           // whether it was there before
}

// SessionSaid answers send-session-message.
type SessionSaid struct {
	MessageID      string   `json:"message_id"`
	SessionID      string   `json:"session_id"`
	Seq            int64    `json:"seq"` // its number in the record
	SequenceNumber int64    `json:"sequence_number"`
	CorrelationID  string   `json:"correlation_id,omitzero"`
	Duplicate      bool     `json:"duplicate,omitzero"` // a repeat; nothing was done
	Held           bool     `json:"held,omitzero"`      // it is delivered when the tasks that it waits for are done
	Notes          []string `json:"notes,omitzero"`     // what was forgiven, and what is odd
}

// GetSession is the payload of get-session.
type GetSession struct {
	SessionID     string `json:"session_id,omitzero"`     // "": the only one that the caller is in
	After         int64  `json:"after,omitzero"`          // messages behind this number of the record
	Limit         int64  `json:"limit,omitzero"`          // SessionPage when it is 0; at most MaxSessionPage
	CorrelationID string `json:"correlation_id,omitzero"` // only messages of this chain
	TaskID        string `json:"task_id,omitzero"`        // only messages about this task
	To            string `json:"to,omitzero"`             // only messages to this member
}

// How many messages a page of a session has.
const (
	SessionPage    = 100
	MaxSessionPage = 10_000
)

// ListReviews is the payload of list-reviews.
type ListReviews struct {
	SessionID string `json:"session_id,omitzero"`
	TaskID    string `json:"task_id,omitzero"`
	ReviewID  string `json:"review_id,omitzero"`
}
