package wire

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire/object"
)

// SessionMessage is what one agent of a session says to another. It is delivered
// as it came; what is read out of it is what decisions need.
type SessionMessage struct {
	MessageID      string // the same message again has the same
	Timestamp      string
	SequenceNumber int64 // its place in the session, as far as its sender knows
	Sequenced      bool  // there is a SequenceNumber
	From, To       AgentIdentifier
	MessageType    string // Type… above
	CorrelationID  string // what it belongs together with
	ReplyTo        string // the MessageID of what it answers
	SessionID      string // an extension: most do not say it
	Body           any    // by its type: *SessionAssignment, *SessionProgress, *Completion and so on

	Document Raw      // all of it, on one line, digit for digit
	Notes    []string // what was forgiven, and what is odd, each with its place
	Sum      uint64   // of its type, its sender and addressee, and its payload: saying it once more changes none of them

	lapses  []object.Problem
	pointer string // to the message, in what it came in
}

// AgentIdentifier names an agent in a session.
type AgentIdentifier struct {
	AgentID    string `json:"agent_id"`
	AgentType  string `json:"agent_type"` // Agent… above
	InstanceID string `json:"instance_id,omitzero"`
}

// Session is what was said in the words of a session, on a line of its own or in
// the payload of a request: a message, or what is wrong with it. Both belong in the
// log of the session; the sender of a wrong message is told so (AppendDeliveryError).
type Session struct {
	ID       string          // its message_id, "" when none can be read
	Type     string          // its message_type, whatever word that is
	Message  *SessionMessage // nil when there is an Err
	Err      *Error
	Document Raw // as it came; nil when it could not be read to its end

	id []byte
}

func (*Session) message() {}

// RawID is the message_id as it was spelled, for the answer; nil when there is none
// to give back.
func (s *Session) RawID() []byte { return s.id }

// Complaints are what the log says beside a message: what was forgiven, or all
// that is wrong with it, each with its place.
func (s *Session) Complaints() []string {
	if s.Err != nil {
		return s.Err.Complaints()
	}
	return slices.Clone(s.Message.Notes)
}

// Strictly is what a strict reader refuses about the message: all that was forgiven,
// told as ReadSessionMessage tells what is wrong; nil when nothing was. What is only
// odd is no mistake.
func (m *SessionMessage) Strictly() *Error { return object.ErrorOf(m.lapses) }

// Placed has an error that points into the message point into what it came in: they
// are the same where the message is a line of its own. One that does so already
// stays as it is.
func (m *SessionMessage) Placed(e *Error) *Error {
	pointer, there := e.Details["pointer"].(string)
	if m.pointer == "" || !there || strings.HasPrefix(pointer+"/", m.pointer+"/") {
		return e
	}
	placed := *e
	placed.Details = maps.Clone(e.Details)
	placed.Details["pointer"] = m.pointer + pointer
	return &placed
}

// Delivered is the message as it is written to its addressee: as it came, with a
// sequence_number and a correlation_id where it had none. What is 0 or "" is not
// filled in.
func (m *SessionMessage) Delivered(sequence int64, correlation string) Raw {
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

// direction is the sender and addressee of messages of a type; "" is any.
type direction struct{ kind, from, to string }

var directions = []direction{
	{TypeTaskAssignment, AgentArchitect, AgentDeveloper},
	{TypeTaskProgress, AgentDeveloper, AgentArchitect},
	{TypeTaskCompletion, AgentDeveloper, AgentArchitect},
	{TypeReviewRequest, AgentArchitect, AgentReviewer},
	{TypeReviewResult, AgentReviewer, AgentArchitect},
	{TypeAbort, AgentArchitect, ""},
}

// Misdirected is why an agent of its type does not say this to one of that type,
// nil if it does. It is Placed.
func (m *SessionMessage) Misdirected() *Error {
	i := slices.IndexFunc(directions, func(d direction) bool { return d.kind == m.MessageType })
	if i < 0 {
		return nil
	}
	switch d := directions[i]; {
	case m.From.AgentType != d.from:
		return m.Placed(denied("/from_agent/agent_type", m.MessageType+" is for an agent of the type "+d.from+" to say"))
	case d.to != "" && m.To.AgentType != d.to:
		return m.Placed(denied("/to_agent/agent_type", m.MessageType+" is said to an agent of the type "+d.to))
	}
	return nil
}

func denied(pointer, message string) *Error {
	return &Error{Code: CodeDenied, Message: message, Details: map[string]any{"pointer": pointer}}
}
