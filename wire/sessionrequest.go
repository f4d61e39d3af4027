package wire

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// fields accepts any message. An error inside it belongs in the log of the session.
func (s *SaySession) fields(f *fields) {
	const key = "message"
	f.text(&s.SessionID, "session_id", "The session; optional if both members share only one session.")
	if f.describe(key, "The message: see session-message. It is delivered unchanged, digit for digit.", `"type": "object"`, true) {
		return
	}
	o := f.in
	document := o.Document(key)
	if document == nil {
		o.Refuse(key, "is missing: it must be an object")
		return
	}
	members, _, _ := object.Scan(document, object.AnyDepth, nil)
	s.Session = *named(members)
	s.Document = document
	s.Message, s.Err = session.ReadMembers(document, members, o.Below(key))
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
	f.whole(&g.Limit, "limit", "The maximum number of messages; 100 when it is missing or 0.", 0, MaxSessionPage)
	f.text(&g.CorrelationID, "correlation_id", "Only messages with this correlation_id.")
	f.text(&g.TaskID, "task_id", "Only messages about this task.")
	f.text(&g.To, "to", "Only messages for this member.")
}

func (l *ListReviews) fields(f *fields) {
	f.text(&l.SessionID, "session_id", "Only reviews in this session.")
	f.text(&l.TaskID, "task_id", "Only reviews of this task.")
	f.text(&l.ReviewID, "review_id", "Only this review.")
}

func (s *SessionSpec) fields(f *fields) {
	if !f.describe("session_id", "The name of the session: at most 64 letters, digits, dots, dashes and underscores, the first of them a letter or digit.",
		`"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"`, true) {
		s.ID = f.in.NeedText("session_id")
		if s.ID != "" && !IsSessionID(s.ID) {
			f.in.Refuse("session_id", fmt.Sprintf("must be 1 to %d letters, digits, dots, dashes and underscores, the first of them a letter or digit, not %.80q", maxSessionLength, s.ID))
		}
	}
	if !f.describe("members", "The members.", schemaMembers, true) {
		s.Members = readSessionMembers(f.in, "members")
	}
	f.oneOf(&s.Validation, "validation", "standard, the default, tolerates some missing members. strict accepts no deviation from the protocol.",
		ValidationStandard, ValidationStrict)
	f.whole(&s.MaxIterations, "max_iterations", "The maximum number of reviews of a task that does not set its own; 3 when it is missing.", 1, object.MaxWhole)
	f.oneOf(&s.OnMax, "on_max", "What happens to a task that still needs changes after its last review: abort gives it up, force_approve approves it, "+
		"and human_review, the default, asks a person.", session.Escalations...)
	f.truth(&s.RequireReview, "require_review", "Whether a task is done only when it is approved, and not when its developer has completed it.")
	f.milliseconds(&s.TaskTimeout, "task_timeout_ms", "How long a task may take, in milliseconds; no limit when it is missing or 0.", 0)
	f.millisecondsOr(&s.ProgressAfter, "progress_after_ms", "The time after which a task must report progress, in milliseconds; 120000 when it is missing.", SessionProgressAfter)
	f.millisecondsOr(&s.ProgressEvery, "progress_every_ms", "The time between such reports, in milliseconds; 30000 when it is missing.", SessionProgressEvery)
	s.Validation, s.OnMax = cmp.Or(s.Validation, ValidationStandard), cmp.Or(s.OnMax, session.EscalateHumanReview)
	s.MaxIterations = cmp.Or(s.MaxIterations, session.DefaultIterations)
}

const schemaMembers = `"type": "array", "items": {"type": "object", "properties": {` +
	`"agent_id": {"type": "string", "maxLength": 200, "pattern": "^[^\u0000-\u001f\u007f-\u009f]*[^\u0000- \u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$", ` +
	`"description": "The name of an agent, at most 200 bytes. Each member has a different name."}, ` +
	`"agent_type": {"enum": ["architect", "developer", "reviewer"], "description": "What the agent does: it plans and assigns, works, or reviews."}}, ` +
	`"required": ["agent_id", "agent_type"]}`

// maxSessionLength is the maximum length of a session id, in bytes.
const maxSessionLength = 64

// IsSessionID reports whether a text may be the id of a session. People type it, and it is part
// of URLs.
func IsSessionID(id string) bool {
	plain := func(c byte) bool { return object.IsAlphanumeric(c) || c == '.' || c == '-' || c == '_' }
	return len(id) <= maxSessionLength && object.IsRun(id, plain) && object.IsAlphanumeric(id[0])
}

// readSessionMembers reads a list of members without duplicates.
func readSessionMembers(o *object.Reader, key string) []SessionMember {
	if o.Find(key) == nil {
		o.Refuse(key, "is missing: it must be a list")
	}
	members := []SessionMember{}
	known := make(map[string]bool)
	o.Objects(key, func(in *object.Reader) {
		m := SessionMember{AgentID: in.NeedText("agent_id"), AgentType: in.NeedOneOf("agent_type", session.AgentTypes...)}
		in.NoControls("agent_id", m.AgentID)
		switch {
		case len(m.AgentID) > object.MaxIDLength:
			in.Refuse("agent_id", fmt.Sprintf("must not be longer than %d bytes", object.MaxIDLength))
		case known[m.AgentID]:
			in.Refuse("agent_id", "stands twice")
		}
		known[m.AgentID] = true
		members = append(members, m)
	})
	return members
}

// millisecondsOr is milliseconds with a default.
func millisecondsOr(o *object.Reader, key string, otherwise int64) int64 {
	if o.Find(key) == nil {
		return otherwise
	}
	return o.Milliseconds(key, 0)
}

// The answers.
var (
	answerSaid     = &Answer{Name: "said", Of: SessionSaid{}}
	answerSessions = &Answer{Name: "sessions", Of: SessionList{}}
	answerReviews  = &Answer{Name: "reviews", Of: ReviewList{}}
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
	request[SessionSpec](Operation{
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
