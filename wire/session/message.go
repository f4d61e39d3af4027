package session

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire/object"
)

// A Message is a message from one agent of a session to another. It is delivered
// unchanged. Its Body is an *Assignment, *Progress, *Completion and so on.
type Message struct {
	// A UUID of version 4 that differs for every message. A repeated message has the same id and is
	// not delivered twice. Unless the session is strict, the form msg-12 or msg-12-a is allowed too.
	MessageID string `json:"message_id" schema:"messageID"`
	// When the message was sent: an ISO 8601 time, such as 2026-11-20T09:15:00Z.
	Timestamp string `json:"timestamp" schema:"time"`
	// The position of the message in the session. Unless the session is strict, a missing number is
	// filled in.
	SequenceNumber int64 `json:"sequence_number" schema:"whole=0"`
	// The sender. A message in the name of another agent is refused.
	From Agent `json:"from_agent"`
	// The recipient.
	To Agent `json:"to_agent"`
	// The type of the message, which determines its payload.
	MessageType string `json:"message_type" schema:"enum=session.Types"`

	// The payload, which depends on the type.
	Body any `json:"payload" schema:"type=object"`
	// An id that all messages about one task share.
	CorrelationID string `json:"correlation_id,omitzero" schema:"id"`
	// The message_id of the message that this one answers.
	ReplyTo string `json:"reply_to,omitzero" schema:"id"`
	// The session. An extension of the published protocol.
	SessionID string `json:"session_id,omitzero" schema:"id"`

	Sequenced bool       `json:"-"` // SequenceNumber is set
	Document  object.Raw `json:"-"` // all of it, on one line, digit for digit
	Notes     []string   `json:"-"` // tolerated errors and warnings, each with its place
	Sum       uint64     `json:"-"` // of its type, sender, recipient and payload; a repeat has the same

	lapses  []object.Problem
	pointer string // to the message, within the line or the request
}

// Agent names an agent in a session.
type Agent struct {
	// The name of the agent.
	AgentID string `json:"agent_id" schema:"id"`
	// The role of the agent: it plans and assigns, works, or reviews.
	AgentType string `json:"agent_type" schema:"enum=session.AgentTypes"`
	// The instance of the agent, if it has several.
	InstanceID string `json:"instance_id,omitzero" schema:"id"`
}

// Strictly returns the error that a strict reader reports, with all tolerated errors. It is nil for
// a message without errors. Warnings do not count.
func (m *Message) Strictly() *object.Error { return object.ErrorOf(m.lapses) }

// Placed returns e with its pointer moved from the message to the line or the request that
// contains it. An error that points there already is returned unchanged.
func (m *Message) Placed(e *object.Error) *object.Error {
	pointer, there := e.Details["pointer"].(string)
	if m.pointer == "" || !there || strings.HasPrefix(pointer+"/", m.pointer+"/") {
		return e
	}
	placed := *e
	placed.Details = maps.Clone(e.Details)
	placed.Details["pointer"] = m.pointer + pointer
	return &placed
}

// Delivered returns the message in the form for its recipient. It is the received document, with a
// sequence_number and a correlation_id if it had none. Zero values are not filled in.
func (m *Message) Delivered(sequence int64, correlation string) object.Raw {
	fillsSequence, fillsCorrelation := !m.Sequenced && sequence != 0, m.CorrelationID == "" && correlation != ""
	if !fillsSequence && !fillsCorrelation {
		return m.Document
	}
	line := slices.Clone(m.Document[:len(m.Document)-1]) // without its brace
	if fillsSequence {
		line = strconv.AppendInt(object.AppendKey(line, "sequence_number"), sequence, 10)
	}
	if fillsCorrelation {
		line = object.AppendMember(line, "correlation_id", correlation)
	}
	return append(line, '}')
}

// A direction gives the sender and the recipient of a message type; "" is any.
type direction struct{ kind, from, to string }

var directions = []direction{
	{TypeTaskAssignment, AgentArchitect, AgentDeveloper},
	{TypeTaskProgress, AgentDeveloper, AgentArchitect},
	{TypeTaskCompletion, AgentDeveloper, AgentArchitect},
	{TypeReviewRequest, AgentArchitect, AgentReviewer},
	{TypeReviewResult, AgentReviewer, AgentArchitect},
	{TypeAbort, AgentArchitect, ""},
}

// Misdirected returns an error if the types of the sender and the recipient do not fit the type
// of the message. The error is already Placed.
func (m *Message) Misdirected() *object.Error {
	i := slices.IndexFunc(directions, func(d direction) bool { return d.kind == m.MessageType })
	if i < 0 {
		return nil
	}
	switch d := directions[i]; {
	case m.From.AgentType != d.from:
		return m.Placed(object.Denied("/from_agent/agent_type", m.MessageType+" is for an agent of the type "+d.from+" to say"))
	case d.to != "" && m.To.AgentType != d.to:
		return m.Placed(object.Denied("/to_agent/agent_type", m.MessageType+" must be sent to an agent of the type "+d.to))
	}
	return nil
}
