package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A Session is a message in the session dialect, from a line or from the payload of a request.
// It is either a Message or an Err. Both are recorded in the log of the session. The sender of a
// wrong message gets a delivery error (AppendDeliveryError).
type Session struct {
	ID       string           // its message_id; "" if it cannot be read
	Type     string           // its message_type, whatever word that is
	Message  *session.Message // nil if Err is set
	Err      *object.Error
	Document object.Raw // as received; nil if it could not be read completely

	RawID []byte // its message_id as it was written; nil if it cannot be repeated
}

func (*Session) message() {}

// SessionHead returns a session message with only its id and its type.
func SessionHead(members []object.Member) *Session {
	s := new(Session)
	s.Type, _ = object.Text(object.Once(members, "message_type"))
	id := object.Once(members, "message_id")
	s.ID, _ = object.Text(id)
	s.RawID = bytes.Clone(dialect.Correlatable(id))
	return s
}

// Complaints returns the validation errors for the log, each with its place: the tolerated errors,
// or all errors of a refused message.
func (s *Session) Complaints() []string {
	if s.Err != nil {
		return s.Err.Complaints()
	}
	return slices.Clone(s.Message.Notes)
}

// A Lookup is the result of a search in the log for the key of a message. It is needed before
// the message can be decided. The State knows the latest keys, and reports when the Lookup is
// too old.
type Lookup struct {
	Before int64  // the number of the record with the key; 0: none
	Sum    uint64 // of that record, if the same key with other content is refused
	Looked int64  // the last record that was searched
	Sender string // the sender that the key belongs to
}

// CreateSession is the payload of create-session.
type CreateSession struct {
	// The name of the session: at most 64 letters, digits, dots, dashes and underscores, the first of
	// them a letter or digit.
	ID string `json:"session_id" schema:"session"`
	// The members.
	Members []session.Member `json:"members"`
	// standard, the default, tolerates some missing members. strict accepts no deviation from the
	// protocol.
	Validation string `json:"validation,omitzero" schema:"enum=session.validations"`
	// The maximum number of reviews of a task that does not set its own; 3 when it is missing.
	MaxIterations int64 `json:"max_iterations,omitzero" schema:"whole=1"`
	// The action for a task that still needs changes after its last review: abort gives it up,
	// force_approve approves it, and human_review, the default, asks a person.
	OnMax string `json:"on_max,omitzero" schema:"enum=session.Escalations"`
	// Whether a task is done only after its approval, not when its developer completes it.
	RequireReview bool `json:"require_review,omitzero"`
	// How long a task may take, in milliseconds; no limit when it is missing or 0.
	TaskTimeout int64 `json:"task_timeout_ms,omitzero" schema:"ms=0"`
	// The time after which a task must report progress, in milliseconds; 120000 when it is missing.
	ProgressAfter int64 `json:"progress_after_ms,omitzero" schema:"ms=0"`
	// The time between such reports, in milliseconds; 30000 when it is missing.
	ProgressEvery int64 `json:"progress_every_ms,omitzero" schema:"ms=0"`
	// Commands that must succeed before a task is done, besides the commands of its agent. Only a
	// person may name them.
	Verify [][]string `json:"verify,omitzero" schema:"maxitems=20,each:minitems=1,each:maxitems=1000"`
}

// SaySession is the payload of send-session-message. An agent may also
// print the message itself as a line.
type SaySession struct {
	// The session; optional if both members share only one session.
	SessionID string `json:"session_id,omitzero"`
	// The message: see session-message. It is delivered unchanged, digit for digit.
	Session `json:"message" schema:"own,type=object"`

	Lookup `json:"-"` // whether it was there before
}

// GetSession is the payload of get-session.
type GetSession struct {
	// The session; optional for a member of only one.
	SessionID string `json:"session_id,omitzero"`
	// Only messages after this number in the event log: the next of the previous page.
	After int64 `json:"after,omitzero" schema:"whole=0"`
	// The maximum number of messages; 100 when it is missing or 0.
	Limit int64 `json:"limit,omitzero" schema:"min=0,max=10000"`
	// Only messages with this correlation_id.
	CorrelationID string `json:"correlation_id,omitzero"`
	// Only messages about this task.
	TaskID string `json:"task_id,omitzero"`
	// Only messages for this member.
	To string `json:"to,omitzero"`
}

// ListReviews is the payload of list-reviews.
type ListReviews struct {
	// Only reviews in this session.
	SessionID string `json:"session_id,omitzero"`
	// Only reviews of this task.
	TaskID string `json:"task_id,omitzero"`
	// Only this review.
	ReviewID string `json:"review_id,omitzero"`
}

// SessionView answers get-session with a whole session and a page of its log.
type SessionView struct {
	session.Spec
	// Whether the session accepts messages.
	State string `json:"state" schema:"enum=session.states"`
	// Why the session is closed.
	Reason string `json:"reason,omitzero"`
	// Whether the session comes from the configuration or from a request.
	Source string `json:"source" schema:"enum=session.sources"`
	// The highest sequence_number so far. A message that is sent next has a higher one.
	SequenceNumber int64 `json:"sequence_number" schema:"min=0"`
	// The members with their load.
	Standing []session.MemberView `json:"standing"`
	// The tasks, in the order of their assignment.
	Tasks []SessionTask `json:"tasks"`
	// The reviews, in the order of their requests.
	Reviews []session.ReviewView `json:"reviews"`
	// A page of messages, in the order of their arrival.
	Messages []session.Entry `json:"messages"`
	// Whether more messages follow.
	More bool `json:"more"`
	// The value of after for the next page.
	Next int64 `json:"next" schema:"min=0"`
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
	Phase string `json:"phase" schema:"enum=session.phases"`
	// The state, as of every task.
	State TaskState `json:"state"`
	// The progress, from 0 to 1.
	Progress float64 `json:"progress" schema:"min=0,max=1"`
	// The current step of the developer.
	Step string `json:"step,omitzero"`
	// Whether the progress report is overdue.
	Overdue bool `json:"overdue,omitzero"`
	// How often the task was assigned: 2 if it was retried after an error.
	Tries int `json:"tries" schema:"min=0"`
	// The number of reviews so far.
	Iteration int `json:"iteration" schema:"min=0"`
	// The maximum number of reviews.
	MaxIterations int `json:"max_iterations" schema:"min=1"`
	// The action after the last allowed review did not approve the task.
	Escalated string `json:"escalated,omitzero" schema:"enum=session.Escalations"`
	// The correlation_id of all messages about the task.
	CorrelationID string `json:"correlation_id"`
	// The id of the task that this task revises.
	Revises string `json:"revises,omitzero"`
	// Patterns of the files that may be changed.
	Scope []string `json:"scope"`
	// The findings of all reviews.
	Findings []session.FindingView `json:"findings"`
	// The latest error in the work on the task.
	Error *session.ExecutionError `json:"error,omitzero"`
}

// read accepts any message. An error inside it belongs in the log of the session.
func (s *SaySession) read(o *object.Reader) {
	const key = "message"
	value := o.Find(key)
	switch {
	case value == nil:
		o.Refuse(key, "is missing: it must be an object")
		return
	case !object.IsObject(value):
		o.Refuse(key, "must be an object")
		return
	}
	document := object.Clone(value)
	members, _, _ := object.Scan(document, object.AnyDepth, nil)
	s.Session = *SessionHead(members)
	s.Document = document
	if s.Message, s.Err = session.ReadMembers(document, members, o.Below(key)); s.Err == nil {
		s.Err = object.RefuseDuplicate(document, o.Below(key))
	}
	if s.Err != nil {
		s.Message = nil
	}
}

// MarshalJSONTo implements json.MarshalerTo, for clients.
func (s SaySession) MarshalJSONTo(e *jsontext.Encoder) error {
	b := []byte{'{'}
	if s.SessionID != "" {
		b = append(object.AppendText(append(b, `"session_id":`...), s.SessionID), ',')
	}
	b = append(append(b, `"message":`...), s.Document...)
	return e.WriteValue(append(b, '}'))
}

// readSessionID reads the id of a new session.
func readSessionID(o *object.Reader, key string) string {
	id := o.NeedText(key)
	if id != "" && !session.IsID(id) {
		o.Refuse(key, fmt.Sprintf("must be 1 to %d letters, digits, dots, dashes and underscores, the first of them a letter or digit, not %.80q", session.MaxIDLength, id))
	}
	return id
}

func (c *CreateSession) read(o *object.Reader) {
	c.Validation, c.OnMax = cmp.Or(c.Validation, session.ValidationStandard), cmp.Or(c.OnMax, session.EscalateHumanReview)
	c.MaxIterations = cmp.Or(c.MaxIterations, session.DefaultIterations)
	if o.Find("progress_after_ms") == nil {
		c.ProgressAfter = session.ProgressAfter
	}
	if o.Find("progress_every_ms") == nil {
		c.ProgressEvery = session.ProgressEvery
	}
}

// The answers.
var (
	answerSaid     = &Answer{Name: "said", Of: session.Said{}}
	answerSessions = &Answer{Name: "sessions", Of: session.List{}}
	answerReviews  = &Answer{Name: "reviews", Of: session.ReviewList{}}
	answerSession  = &Answer{Name: "session", Of: SessionView{}}
)

// sessionOperations are the operations on sessions.
var sessionOperations = []Operation{
	request[SaySession](Operation{
		Name: "send-session-message", Answer: answerSaid, Writes: true, NoSDK: "a Session sends it",
		Summary: "Send a message to a member of a session; an agent may also print it itself",
		About:   "A line with the message itself does the same. It gets an answer only if it is refused. A message with the same message_id is not delivered twice. A refusal lists every error with its place and is kept in the log of the session.",
		Examples: []string{
			`{"session_id": "kitchen", "message": {"message_id": "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d0b", "timestamp": "2026-11-20T09:15:00Z", "sequence_number": 11, "from_agent": {"agent_id": "coder", "agent_type": "developer"}, "to_agent": {"agent_id": "lead", "agent_type": "architect"}, "message_type": "status_query", "payload": {"task_id": "kettle-1"}}}`,
			`{"message": {"message_id": "msg-12", "timestamp": "2026-11-20T09:16:00Z", "from_agent": {"agent_id": "coder", "agent_type": "developer"}, "to_agent": {"agent_id": "lead", "agent_type": "architect"}, "message_type": "acknowledgment", "payload": {}}}`,
		},
	}),
	request[GetSession](Operation{
		Name: "get-session", Answer: answerSession, NoSDK: "Ask sends it",
		Summary: "Show a session with its members, tasks, reviews and a page of its log",
		Examples: []string{
			`{"session_id": "kitchen", "after": 41, "limit": 20, "correlation_id": "kettle", "task_id": "kettle-1", "to": "coder"}`,
			`{}`,
			"",
		},
	}),
	request[Nothing](Operation{
		Name: "list-sessions", Answer: answerSessions, NoSDK: "Ask sends it",
		Summary:  "List your sessions; people see all",
		Examples: []string{`{}`, ""},
	}),
	request[CreateSession](Operation{
		Name: "create-session", Answer: answerSession, Audience: ForOperators, Writes: true,
		Summary: "Create a session of agents that work together",
		About:   "An architect, developers and reviewers work together in it.",
		Examples: []string{
			`{"session_id": "kitchen", "members": [{"agent_id": "lead", "agent_type": "architect"}, {"agent_id": "coder", "agent_type": "developer"}, {"agent_id": "critic", "agent_type": "reviewer"}], "validation": "strict", "max_iterations": 2, "on_max": "abort", "require_review": true, "task_timeout_ms": 3600000, "progress_after_ms": 60000, "progress_every_ms": 10000}`,
			`{"session_id": "attic", "members": []}`,
		},
	}),
	request[ListReviews](Operation{
		Name: "list-reviews", Answer: answerReviews, NoSDK: "Ask sends it",
		Summary:  "List the reviews of your sessions",
		Examples: []string{`{"session_id": "kitchen", "task_id": "kettle-1", "review_id": "kettle-1-a"}`, `{}`, ""},
	}),
}
