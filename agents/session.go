package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Identity is who an agent is in a session.
type Identity struct {
	Agent   string // its name
	Type    string // wire.AgentArchitect, wire.AgentDeveloper or wire.AgentReviewer
	Session string // which one; needed by those alone who are in several
}

// Session is an agent's place in a session. Its verbs say one message each, and
// return when it is written: what may become of it later is in the Sent. What
// makes no sense is refused at once, in the orchestrator's words. What is refused
// because there is too much just now is said again, for a few minutes at most, and
// what would overtake it waits until then.
//
// Its methods may be called at the same time.
type Session struct {
	conn  *Conn
	me    Identity
	chain string
	count *atomic.Int64 // the highest sequence number that was said or heard
}

var errNobody = errors.New("who the agent is in its session is not known")

// OpenSession is the agent's place in a session. What is "" in the identity is
// $ORC_AGENT_ID, $ORC_SESSION_TYPE and $ORC_SESSION, as the orchestrator has set
// them for the agents that it starts.
func (c *Conn) OpenSession(me Identity) (*Session, error) {
	me.Agent = cmp.Or(me.Agent, os.Getenv("ORC_AGENT_ID"))
	me.Type = cmp.Or(me.Type, os.Getenv("ORC_SESSION_TYPE"))
	me.Session = cmp.Or(me.Session, os.Getenv("ORC_SESSION"))
	switch {
	case me.Agent == "":
		return nil, fmt.Errorf("%w: $ORC_AGENT_ID is not set", errNobody)
	case !slices.Contains(wire.AgentTypes, me.Type):
		return nil, fmt.Errorf("%w: %q is none of the types %q ($ORC_SESSION_TYPE)", errNobody, me.Type, wire.AgentTypes)
	}
	return &Session{conn: c, me: me, count: new(atomic.Int64)}, nil
}

// opened checks that a role is for the agent.
func (s *Session) opened(role string) error {
	if s.me.Type != role {
		return fmt.Errorf("%w: %s is of the type %s, and this is for one of the type %s", errNobody, s.me.Agent, s.me.Type, role)
	}
	return nil
}

// Identity is who the agent is.
func (s *Session) Identity() Identity { return s.me }

// Conn is the agent's connection.
func (s *Session) Conn() *Conn { return s.conn }

// Chain is the same session for messages that belong together with others: those
// that answer nothing get this correlation_id.
func (s *Session) Chain(correlation string) *Session {
	chained := *s
	chained.chain = correlation
	return &chained
}

// ArchitectID names an architect as the addressee of a message.
func ArchitectID(name string) wire.AgentIdentifier {
	return wire.AgentIdentifier{AgentID: name, AgentType: wire.AgentArchitect}
}

// DeveloperID names a developer.
func DeveloperID(name string) wire.AgentIdentifier {
	return wire.AgentIdentifier{AgentID: name, AgentType: wire.AgentDeveloper}
}

// ReviewerID names a reviewer.
func ReviewerID(name string) wire.AgentIdentifier {
	return wire.AgentIdentifier{AgentID: name, AgentType: wire.AgentReviewer}
}

// speech is a message of a session, as it is said.
type speech struct {
	MessageID      string               `json:"message_id"`
	Timestamp      string               `json:"timestamp"`
	SequenceNumber int64                `json:"sequence_number"`
	From           wire.AgentIdentifier `json:"from_agent"`
	To             wire.AgentIdentifier `json:"to_agent"`
	MessageType    string               `json:"message_type"`
	Payload        wire.Raw             `json:"payload"`
	CorrelationID  string               `json:"correlation_id,omitzero"`
	ReplyTo        string               `json:"reply_to,omitzero"`
	SessionID      string               `json:"session_id,omitzero"`
}

// to begins a message that answers nothing.
func (s *Session) to(whom wire.AgentIdentifier, kind string) speech {
	return speech{To: whom, MessageType: kind, CorrelationID: s.chain, SessionID: s.me.Session}
}

// about begins one for the sender of another, in the chain of that.
func (s *Session) about(said *Said, kind string) speech {
	s.saw(said)
	m := s.to(said.From, kind)
	m.CorrelationID = cmp.Or(said.CorrelationID, m.CorrelationID)
	m.SessionID = cmp.Or(said.SessionID, m.SessionID)
	return m
}

// answering begins one that answers another.
func (s *Session) answering(said *Said, kind string) speech {
	m := s.about(said, kind)
	m.ReplyTo = said.MessageID
	return m
}

// farAhead is a number that no sender has counted to: an agent that follows it soon
// has none left.
const farAhead = 1 << 20

// saw keeps the numbers rising in the whole session, as far as the agent hears it.
func (s *Session) saw(said *Said) {
	for now := s.count.Load(); now < said.SequenceNumber && said.SequenceNumber-now <= farAhead; now = s.count.Load() {
		s.count.CompareAndSwap(now, said.SequenceNumber)
	}
}

// say says a message. Its number is taken when it is its turn to be written, so
// that numbers rise on the line as well.
func (s *Session) say(ctx context.Context, m speech, payload any) (*Sent, error) {
	var sent *Sent
	body, err := asObject(payload)
	if err == nil {
		m.MessageID, m.Payload = uuid.NewString(), body
		m.From = wire.AgentIdentifier{AgentID: s.me.Agent, AgentType: s.me.Type}
		err = s.conn.writeBehind(ctx, m.To.AgentID, func() (line []byte, err error) {
			m.SequenceNumber, m.Timestamp = s.count.Add(1), wire.Timestamp(time.Now())
			if line, err = m.spell(); err == nil {
				sent = s.conn.toldBy(&m, line)
			}
			return line, err
		})
	} else {
		err = fmt.Errorf("%w: %w", errUnsaid, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.MessageType, err)
	}
	return sent, nil
}

// spell makes a whole line of a message, and looks at it as the orchestrator will.
func (m *speech) spell() ([]byte, error) {
	line, err := object.Encode(m)
	var said *Said
	if err == nil {
		said, err = readSaid(line)
	}
	switch {
	case err != nil:
	case said.Misdirected() != nil:
		err = said.Misdirected()
	case len(line) > maxLine:
		err = errTooLong
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return append(line, '\n'), nil
}

// toldBy remembers a message that is about to be written, because it may be
// refused before its sender goes on.
func (c *Conn) toldBy(m *speech, line []byte) *Sent {
	sent := &Sent{
		MessageID: m.MessageID, CorrelationID: m.CorrelationID, SequenceNumber: m.SequenceNumber,
		kind: m.MessageType, to: m.To.AgentID, lost: make(chan struct{}),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places++
	sent.place = c.places
	c.said.add(sent.MessageID, sent)
	c.lines.add(sent, line)
	return sent
}
