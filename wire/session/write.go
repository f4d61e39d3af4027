package session

import (
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
	CorrelationID  string // "" when there is none
	ReplyTo        string
	SessionID      string // "" unless its sender and its receiver share several sessions
}

// Completion returns a task_completion for a developer who will not send one. It has an outcome
// and the reason. It reports no changes and no checks. The error is an extension: it describes
// what went wrong.
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
