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

// SessionHead returns a session message of which only the id and the type are known.
func SessionHead(members []object.Member) *Session {
	s := new(Session)
	s.Type, _ = object.Text(object.Once(members, "message_type"))
	id := object.Once(members, "message_id")
	s.ID, _ = object.Text(id)
	s.RawID = bytes.Clone(dialect.Correlatable(id))
	return s
}

// Complaints returns the validation errors for the log, each with its place: those that were
// tolerated, or all errors of a message that was refused.
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
type CreateSession struct{ session.Spec }

// SaySession is the payload of send-session-message. An agent says the same by
// printing the message as a line of its own.
type SaySession struct {
	SessionID string // the session; "": the only one that both members share
	Session          // the message, or its error, which does not refuse the request
	Lookup           // whether it was there before
}

// GetSession is the payload of get-session.
type GetSession struct {
	SessionID     string `json:"session_id,omitzero"`     // "": the only one that the caller is in
	After         int64  `json:"after,omitzero"`          // messages behind this number of the record
	Limit         int64  `json:"limit,omitzero"`          // session.Page when it is 0; at most session.MaxPage
	CorrelationID string `json:"correlation_id,omitzero"` // only messages of this chain
	TaskID        string `json:"task_id,omitzero"`        // only messages about this task
	To            string `json:"to,omitzero"`             // only messages to this member
}

// ListReviews is the payload of list-reviews.
type ListReviews struct {
	SessionID string `json:"session_id,omitzero"`
	TaskID    string `json:"task_id,omitzero"`
	ReviewID  string `json:"review_id,omitzero"`
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
	// The tasks, in the order in which they were assigned.
	Tasks []SessionTask `json:"tasks"`
	// The reviews, in the order in which they were requested.
	Reviews []session.ReviewView `json:"reviews"`
	// A page of messages, in the order in which they were received.
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
	Findings []session.FindingView `json:"findings"`
	// The latest error in the work on the task.
	Error *session.ExecutionError `json:"error,omitzero"`
}

// fields accepts any message. An error inside it belongs in the log of the session.
func (s *SaySession) fields(f *fields) {
	const key = "message"
	f.text(&s.SessionID, "session_id", "The session; optional if both members share only one session.")
	if f.describe(key, "The message: see session-message. It is delivered unchanged, digit for digit.", `"type": "object"`, true) {
		return
	}
	o := f.in
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

func (g *GetSession) fields(f *fields) {
	f.text(&g.SessionID, "session_id", "The session; optional for a member of only one.")
	f.whole(&g.After, "after", "Only messages after this number in the event log: the next of the previous page.", 0, object.MaxWhole)
	f.whole(&g.Limit, "limit", "The maximum number of messages; 100 when it is missing or 0.", 0, session.MaxPage)
	f.text(&g.CorrelationID, "correlation_id", "Only messages with this correlation_id.")
	f.text(&g.TaskID, "task_id", "Only messages about this task.")
	f.text(&g.To, "to", "Only messages for this member.")
}

func (l *ListReviews) fields(f *fields) {
	f.text(&l.SessionID, "session_id", "Only reviews in this session.")
	f.text(&l.TaskID, "task_id", "Only reviews of this task.")
	f.text(&l.ReviewID, "review_id", "Only this review.")
}

func (c *CreateSession) fields(f *fields) {
	s := &c.Spec
	if !f.describe("session_id", "The name of the session: at most 64 letters, digits, dots, dashes and underscores, the first of them a letter or digit.",
		`"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"`, true) {
		s.ID = f.in.NeedText("session_id")
		if s.ID != "" && !session.IsID(s.ID) {
			f.in.Refuse("session_id", fmt.Sprintf("must be 1 to %d letters, digits, dots, dashes and underscores, the first of them a letter or digit, not %.80q", session.MaxIDLength, s.ID))
		}
	}
	if !f.describe("members", "The members.", schemaMembers, true) {
		s.Members = session.MembersIn(f.in, "members")
	}
	f.oneOf(&s.Validation, "validation", "standard, the default, tolerates some missing members. strict accepts no deviation from the protocol.",
		session.ValidationStandard, session.ValidationStrict)
	f.whole(&s.MaxIterations, "max_iterations", "The maximum number of reviews of a task that does not set its own; 3 when it is missing.", 1, object.MaxWhole)
	f.oneOf(&s.OnMax, "on_max", "What happens to a task that still needs changes after its last review: abort gives it up, force_approve approves it, "+
		"and human_review, the default, asks a person.", session.Escalations...)
	f.truth(&s.RequireReview, "require_review", "Whether a task is done only when it is approved, and not when its developer has completed it.")
	f.milliseconds(&s.TaskTimeout, "task_timeout_ms", "How long a task may take, in milliseconds; no limit when it is missing or 0.", 0)
	f.millisecondsOr(&s.ProgressAfter, "progress_after_ms", "The time after which a task must report progress, in milliseconds; 120000 when it is missing.", session.ProgressAfter)
	f.millisecondsOr(&s.ProgressEvery, "progress_every_ms", "The time between such reports, in milliseconds; 30000 when it is missing.", session.ProgressEvery)
	f.commands(&s.Verify, "verify", "Commands that must succeed before a task is done, besides those of its agent. Only a person may name them.")
	s.Validation, s.OnMax = cmp.Or(s.Validation, session.ValidationStandard), cmp.Or(s.OnMax, session.EscalateHumanReview)
	s.MaxIterations = cmp.Or(s.MaxIterations, session.DefaultIterations)
}

const schemaMembers = `"type": "array", "items": {"type": "object", "properties": {` +
	`"agent_id": {"type": "string", "maxLength": 200, "pattern": "^[^\u0000-\u001f\u007f-\u009f]*[^\u0000- \u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$", ` +
	`"description": "The name of an agent, at most 200 bytes. Each member has a different name."}, ` +
	`"agent_type": {"enum": ["architect", "developer", "reviewer"], "description": "What the agent does: it plans and assigns, works, or reviews."}}, ` +
	`"required": ["agent_id", "agent_type"]}`

// millisecondsOr is milliseconds with a default.
func millisecondsOr(o *object.Reader, key string, otherwise int64) int64 {
	if o.Find(key) == nil {
		return otherwise
	}
	return o.Milliseconds(key, 0)
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
		Name: "send-session-message", Answer: answerSaid, Writes: true,
		Summary: "Send a message to a member of a session; an agent may also print it itself",
		About:   "A line that is the message itself does the same and is answered only when it is refused. A message with the same message_id is not delivered twice. A refusal lists every error with its place, and the log of the session keeps it.",
		Examples: []string{
			`{"session_id": "kitchen", "message": {"message_id": "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d0b", "timestamp": "2026-11-20T09:15:00Z", "sequence_number": 11, "from_agent": {"agent_id": "coder", "agent_type": "developer"}, "to_agent": {"agent_id": "lead", "agent_type": "architect"}, "message_type": "status_query", "payload": {"task_id": "kettle-1"}}}`,
			`{"message": {"message_id": "msg-12", "timestamp": "2026-11-20T09:16:00Z", "from_agent": {"agent_id": "coder", "agent_type": "developer"}, "to_agent": {"agent_id": "lead", "agent_type": "architect"}, "message_type": "acknowledgment", "payload": {}}}`,
		},
	}),
	request[GetSession](Operation{
		Name: "get-session", Answer: answerSession,
		Summary: "Show a session with its members, tasks, reviews and a page of its log",
		Examples: []string{
			`{"session_id": "kitchen", "after": 41, "limit": 20, "correlation_id": "kettle", "task_id": "kettle-1", "to": "coder"}`,
			`{}`,
			"",
		},
	}),
	request[Nothing](Operation{
		Name: "list-sessions", Answer: answerSessions,
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
		Name: "list-reviews", Answer: answerReviews,
		Summary:  "List the reviews of your sessions",
		Examples: []string{`{"session_id": "kitchen", "task_id": "kettle-1", "review_id": "kettle-1-a"}`, `{}`, ""},
	}),
}
