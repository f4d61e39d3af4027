package session

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire/object"
)

// A Message is a message from one agent of a session to another. It is delivered
// unchanged. The fields hold what decisions need.
type Message struct {
	MessageID      string // the same message again has the same
	Timestamp      string
	SequenceNumber int64 // its position in the session, according to its sender
	Sequenced      bool  // SequenceNumber is set
	From, To       Agent
	MessageType    string // Type… above
	CorrelationID  string // groups related messages
	ReplyTo        string // the MessageID that it answers
	SessionID      string // an extension; usually ""
	Body           any    // by its type: *Assignment, *Progress, *Completion and so on

	Document object.Raw // all of it, on one line, digit for digit
	Notes    []string   // tolerated errors and warnings, each with its place
	Sum      uint64     // of its type, sender, recipient and payload; a repeat has the same

	lapses  []object.Problem
	pointer string // to the message, within the line or the request
}

// Agent names an agent in a session.
type Agent struct {
	AgentID    string `json:"agent_id"`
	AgentType  string `json:"agent_type"` // Agent… above
	InstanceID string `json:"instance_id,omitzero"`
}

// Strictly returns the error that a strict reader reports, with everything that was tolerated.
// It is nil if nothing was. Warnings do not count.
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

// Delivered returns the message as it is written to its recipient. It is the received document,
// with a sequence_number and a correlation_id if it had none. Zero values are not filled in.
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
		return m.Placed(object.Denied("/to_agent/agent_type", m.MessageType+" is said to an agent of the type "+d.to))
	}
	return nil
}
