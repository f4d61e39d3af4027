package session

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"orchestrator/wire/object"
)

// Head is the envelope of a session message that the orchestrator sends for an agent that
// cannot send it itself.
type Head struct {
	MessageID      string // a UUID of version 4
	At             time.Time
	SequenceNumber int64
	From, To       Agent  // From is the member that it is sent for
	CorrelationID  string // may be ""
	ReplyTo        string
	SessionID      string // "" unless its sender and its receiver share several sessions
}

// Completion returns a task_completion for a developer who will not send one. It has an outcome and
// the reason. It reports no changes and no checks. The error is an extension: it describes the
// failure.
func (h Head) Completion(task, outcome, why string, e *ExecutionError) *Message {
	c := &Completion{
		TaskID: task, Status: outcome, Changes: FileChanges{Deleted: []string{}}, Summary: why,
		SelfReview: SelfReview{KnownIssues: []string{}}, Blockers: []string{}, Suggestions: []string{},
	}
	p := object.AppendText([]byte(`{"task_id":`), task)
	p = object.AppendMember(p, "status", outcome)
	p = append(p, `,"changes":{"files_created":[],"files_modified":[],"files_deleted":[]}`...)
	p = object.AppendMember(p, "summary", why)
	p = append(p, `,"self_review":{"tests_run":false,"tests_passed":false,"type_check_passed":false}`...)
	if outcome != OutcomeCompleted {
		c.Blockers = append(c.Blockers, why)
		p = object.AppendTexts(p, "blockers", c.Blockers)
	}
	if e != nil {
		if text, err := object.Encode(e); err == nil {
			p = object.AppendRaw(p, "error", text)
		}
	}
	return h.Say(TypeTaskCompletion, append(p, '}'), c)
}

// Abort returns an abort to be passed on to the developer of its task.
func (h Head) Abort(payload object.Raw, a *Abort) *Message {
	return h.Say(TypeAbort, payload, a)
}

// StatusResponse returns the answer to a status_query for an agent that does not run.
func (h Head) StatusResponse(payload object.Raw) *Message {
	return h.Say(TypeStatusResponse, payload, &StatusResponse{})
}

func (h Head) Say(kind string, payload object.Raw, body any) *Message {
	m := &Message{
		MessageID: h.MessageID, Timestamp: object.Timestamp(h.At), SequenceNumber: h.SequenceNumber, Sequenced: true, From: h.From, To: h.To,
		MessageType: kind, CorrelationID: h.CorrelationID, ReplyTo: h.ReplyTo, SessionID: h.SessionID, Body: body,
	}
	m.Sum = m.checksum(payload)
	b := object.AppendText([]byte(`{"message_id":`), m.MessageID)
	b = object.AppendMember(b, "timestamp", m.Timestamp)
	b = strconv.AppendInt(object.AppendKey(b, "sequence_number"), m.SequenceNumber, 10)
	b = m.From.append(object.AppendKey(b, "from_agent"))
	b = m.To.append(object.AppendKey(b, "to_agent"))
	b = object.AppendMember(b, "message_type", m.MessageType)
	b = object.AppendRaw(b, "payload", payload)
	b = object.AppendOptional(b, "correlation_id", m.CorrelationID)
	b = object.AppendOptional(b, "reply_to", m.ReplyTo)
	m.Document = append(object.AppendOptional(b, "session_id", m.SessionID), '}')
	return m
}

func (a Agent) append(b []byte) []byte {
	b = object.AppendText(append(b, `{"agent_id":`...), a.AgentID)
	b = object.AppendMember(b, "agent_type", a.AgentType)
	return append(object.AppendOptional(b, "instance_id", a.InstanceID), '}')
}

// Again returns a new task_assignment for the same task. The outcome of the last attempt is
// appended to its previous attempts. The rest of the payload is unchanged, digit for digit.
func (h Head) Again(original *Message, attempt int64, outcome, feedback string) (*Message, error) {
	if original.MessageType != TypeTaskAssignment {
		return nil, fmt.Errorf("saying %s again: it is no %s", original.MessageID, TypeTaskAssignment)
	}
	members, _, _ := object.Scan(original.Document, object.AnyDepth, nil)
	payload, ok := withAttempt(object.Once(members, "payload"), spellAttempt(attempt, outcome, feedback))
	if !ok {
		return nil, fmt.Errorf("saying %s again: it has no task with a context", original.MessageID)
	}
	m, err := Read(h.Say(TypeTaskAssignment, payload, nil).Document, object.AnyDepth)
	if err != nil {
		return nil, fmt.Errorf("saying %s again: %w", original.MessageID, err)
	}
	return m, nil
}

func spellAttempt(number int64, outcome, feedback string) []byte {
	b := strconv.AppendInt([]byte(`{"attempt_number":`), number, 10)
	b = object.AppendMember(b, "outcome", outcome)
	return append(object.AppendMember(b, "feedback", feedback), '}')
}

// withAttempt returns the payload of a task_assignment with one more attempt at the end.
func withAttempt(payload, attempt []byte) (more object.Raw, ok bool) {
	in, at := payload, 0
	for _, key := range [...]string{"task", "context"} {
		from, to, ok := object.Place(in, key)
		if !ok {
			return nil, false
		}
		in, at = in[from:to], at+from
	}
	from, to, there := object.Place(in, "previous_attempts")
	if !there {
		at += len(in) - 1 // before the closing brace of the context, which has other members
		return slices.Concat(payload[:at], []byte(`,"previous_attempts":[`), attempt, []byte{']'}, payload[at:]), true
	}
	if in[from] != '[' {
		return nil, false
	}
	at += to - 1
	if list := in[from+1 : to-1]; len(bytes.TrimSpace(list)) > 0 {
		attempt = slices.Concat([]byte{','}, attempt)
	}
	return slices.Concat(payload[:at], attempt, payload[at:]), true
}
