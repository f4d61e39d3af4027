package wire

// Lookup is what had to be looked up in the record before a message with a key can
// be decided about: whether there is one with that key already. The State knows the
// latest by itself, and says when this look is too old for the rest.
type Lookup struct {
	Before int64  // the number of the record with the key; 0: there is none
	Sum    uint64 // of what that one says, where the same key with other words is refused
	Looked int64  // up to this record
	Sender string // whose key it is
}

// SessionSpec is what a session is: as the configuration has it, or as create-session
// makes it. It is the payload of create-session, too.
type SessionSpec struct {
	ID            string          `json:"session_id"`
	Members       []SessionMember `json:"members"`
	Validation    string          `json:"validation"`                 // Validation… below
	MaxIterations int64           `json:"max_iterations"`             // of reviews, for tasks that say nothing
	OnMax         string          `json:"on_max"`                     // Escalate…
	RequireReview bool            `json:"require_review"`             // a task is done when it is approved, not before
	TaskTimeout   int64           `json:"task_timeout_ms,omitzero"`   // milliseconds without a completion; 0: a task may take as long as it does
	ProgressAfter int64           `json:"progress_after_ms,omitzero"` // a task that takes longer reports its progress
	ProgressEvery int64           `json:"progress_every_ms,omitzero"` // this often
}

// When a developer reports progress, by default: in milliseconds.
const (
	SessionProgressAfter = 120_000
	SessionProgressEvery = 30_000
)

// How strictly the messages of a session are held against its protocol.
const (
	ValidationStandard = "standard"
	ValidationStrict   = "strict"
)

// SessionMember is one of a session.
type SessionMember struct {
	AgentID   string `json:"agent_id"`
	AgentType string `json:"agent_type"` // Agent…
}

// SaySession is the payload of send-session-message. An agent says the same by
// printing the message as a line of its own.
type SaySession struct {
	SessionID string // of the session that is meant; "": the only one that both are in
	Session          // the message, or what is wrong with it: that is no reason to refuse the request
	Lookup           // whether it was there before
}

// SessionSaid answers send-session-message: what became of a message.
type SessionSaid struct {
	MessageID      string   `json:"message_id"`
	SessionID      string   `json:"session_id"`
	Seq            int64    `json:"seq"` // its number in the record
	SequenceNumber int64    `json:"sequence_number"`
	CorrelationID  string   `json:"correlation_id,omitzero"`
	Duplicate      bool     `json:"duplicate,omitzero"` // it was there before, and nothing was done
	Held           bool     `json:"held,omitzero"`      // it is delivered when the tasks are done that it waits for
	Notes          []string `json:"notes,omitzero"`     // what was forgiven, and what is odd
}

// GetSession is the payload of get-session.
type GetSession struct {
	SessionID     string `json:"session_id,omitzero"`     // "": the only one that the caller is in
	After         int64  `json:"after,omitzero"`          // messages behind this number of the record
	Limit         int64  `json:"limit,omitzero"`          // SessionPage when it is 0; at most MostSessionPage
	CorrelationID string `json:"correlation_id,omitzero"` // messages of this chain alone
	TaskID        string `json:"task_id,omitzero"`        // and of this task
	To            string `json:"to,omitzero"`             // and for this member
}

// How many messages a page of a session has.
const (
	SessionPage     = 100
	MostSessionPage = 10_000
)

// ListReviews is the payload of list-reviews.
type ListReviews struct {
	SessionID string `json:"session_id,omitzero"`
	TaskID    string `json:"task_id,omitzero"`
	ReviewID  string `json:"review_id,omitzero"`
}
