package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// readSaySession reads a SaySession. What is wrong with the message belongs in the
// log of its session, so it refuses nothing here.
func readSaySession(o *Object) *SaySession {
	const key = "message"
	s := &SaySession{SessionID: o.Text("session_id")}
	document := o.Document(key)
	if document == nil {
		o.Refuse(key, "is missing: it must be an object")
		return s
	}
	members, _, _ := scan(document, scannedBefore, nil)
	s.Session = *named(members)
	s.Document = document
	s.Message, s.Err = readSession(document, members, o.below(key))
	return s
}

// MarshalJSONTo implements the encoder's interface, for those who say a message.
func (s SaySession) MarshalJSONTo(e *jsontext.Encoder) error {
	b := []byte{'{'}
	if s.SessionID != "" {
		b = append(appendText(append(b, `"session_id":`...), s.SessionID), ',')
	}
	b = append(append(b, `"message":`...), s.Document...)
	return e.WriteValue(append(b, '}'))
}

// readGetSession reads a GetSession.
func readGetSession(o *Object) *GetSession {
	g := &GetSession{
		SessionID: o.Text("session_id"), After: o.Whole("after", 0), Limit: o.Whole("limit", 0),
		CorrelationID: o.Text("correlation_id"), TaskID: o.Text("task_id"), To: o.Text("to"),
	}
	if g.Limit > MostSessionPage {
		o.Refuse("limit", fmt.Sprintf("must not be more than %d", MostSessionPage))
	}
	return g
}

// readListReviews reads a ListReviews.
func readListReviews(o *Object) *ListReviews {
	return &ListReviews{SessionID: o.Text("session_id"), TaskID: o.Text("task_id"), ReviewID: o.Text("review_id")}
}

// readSessionSpec reads a SessionSpec, with what holds by default.
func readSessionSpec(o *Object) *SessionSpec {
	s := &SessionSpec{ID: o.NeedText("session_id")}
	if s.ID != "" && !IsSessionID(s.ID) {
		o.Refuse("session_id", fmt.Sprintf("must be 1 to %d letters, digits, dots, dashes and underscores, the first of them a letter or digit, not %.80q", longestSession, s.ID))
	}
	s.Members = o.sessionMembers("members")
	if s.Validation = o.OneOf("validation", ValidationStandard, ValidationStrict); s.Validation == "" {
		s.Validation = ValidationStandard
	}
	if s.MaxIterations = o.Whole("max_iterations", 1); s.MaxIterations == 0 {
		s.MaxIterations = SessionIterations
	}
	if s.OnMax = o.OneOf("on_max", Escalations...); s.OnMax == "" {
		s.OnMax = EscalateHumanReview
	}
	s.RequireReview, _ = o.Truth("require_review")
	s.TaskTimeout = o.millisecondsOr("task_timeout_ms", 0)
	s.ProgressAfter = o.millisecondsOr("progress_after_ms", SessionProgressAfter)
	s.ProgressEvery = o.millisecondsOr("progress_every_ms", SessionProgressEvery)
	return s
}

// longestSession is how long the id of a session may be, in characters.
const longestSession = 64

// IsSessionID reports whether a text is plain enough to be the id of a session: people
// type it, and it stands in addresses.
func IsSessionID(id string) bool {
	plain := func(c byte) bool { return alphanumeric(c) || c == '.' || c == '-' || c == '_' }
	return len(id) <= longestSession && isRun(id, plain) && alphanumeric(id[0])
}

// sessionMembers is a list of members, each of them once.
func (o *Object) sessionMembers(key string) []SessionMember {
	if o.find(key) == nil {
		o.Refuse(key, "is missing: it must be a list")
	}
	members := []SessionMember{}
	known := make(map[string]bool)
	o.Objects(key, func(in *Object) {
		m := SessionMember{AgentID: in.NeedText("agent_id"), AgentType: in.NeedOneOf("agent_type", AgentTypes...)}
		in.needPlain("agent_id", m.AgentID)
		switch {
		case len(m.AgentID) > longestSessionID:
			in.Refuse("agent_id", fmt.Sprintf("must not be longer than %d bytes", longestSessionID))
		case known[m.AgentID]:
			in.Refuse("agent_id", "stands twice")
		}
		known[m.AgentID] = true
		members = append(members, m)
	})
	return members
}

// millisecondsOr is milliseconds with a default.
func (o *Object) millisecondsOr(key string, otherwise int64) int64 {
	if o.find(key) == nil {
		return otherwise
	}
	return o.milliseconds(key, 0)
}
