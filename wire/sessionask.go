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
	// The name of the session.
	ID string `json:"session_id"`
	// The members.
	Members []SessionMember `json:"members"`
	// standard tolerates some missing members. strict accepts no deviation from the protocol.
	Validation string `json:"validation" schema:"enum=wire.validations"`
	// The maximum number of reviews of a task that does not set its own.
	MaxIterations int64 `json:"max_iterations" schema:"min=1"`
	// What happens to a task that still needs changes after its last review.
	OnMax string `json:"on_max" schema:"enum=session.Escalations"`
	// Whether a task is done only when it is approved, and not when its developer has completed it.
	RequireReview bool `json:"require_review"`
	// How long a task may take without a completion, in milliseconds; no limit when it is missing.
	TaskTimeout int64 `json:"task_timeout_ms,omitzero" schema:"min=0"`
	// The time after which a task must report progress, in milliseconds; 120000 when it is missing.
	ProgressAfter int64 `json:"progress_after_ms,omitzero" schema:"min=0"`
	// The time between such reports, in milliseconds; 30000 when it is missing.
	ProgressEvery int64 `json:"progress_every_ms,omitzero" schema:"min=0"`
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
	// The name of an agent.
	AgentID string `json:"agent_id"`
	// What the agent does: it plans and assigns, works, or reviews.
	AgentType string `json:"agent_type" schema:"enum=session.AgentTypes"`
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
