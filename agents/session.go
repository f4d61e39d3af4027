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

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Identity identifies an agent in a session.
type Identity struct {
	Agent   string // its name
	Type    string // wire.AgentArchitect, wire.AgentDeveloper or wire.AgentReviewer
	Session string // required only if the agent is in several sessions
}

// A Session is an agent's membership in a session. Its methods send one message each and return
// when it is written; the Sent reports a later refusal. Invalid messages are rejected at once,
// with the orchestrator's error.
//
// A message refused for a rate limit or a full queue is sent again, for a few minutes at most.
// Messages that would overtake it wait. The methods may be called concurrently.
type Session struct {
	conn  *Conn
	me    Identity
	chain string
	count *atomic.Int64 // the highest sequence number sent or received
}

var errNobody = errors.New("who the agent is in its session is not known")

// OpenSession returns the agent's membership in a session. Empty fields of the identity default
// to $ORC_AGENT_ID, $ORC_SESSION_TYPE and $ORC_SESSION, which the orchestrator sets for the
// agents that it starts.
func (c *Conn) OpenSession(me Identity) (*Session, error) {
	me.Agent = cmp.Or(me.Agent, os.Getenv("ORC_AGENT_ID"))
	me.Type = cmp.Or(me.Type, os.Getenv("ORC_SESSION_TYPE"))
	me.Session = cmp.Or(me.Session, os.Getenv("ORC_SESSION"))
	switch {
	case me.Agent == "":
		return nil, fmt.Errorf("%w: $ORC_AGENT_ID is not set", errNobody)
	case !slices.Contains(session.AgentTypes, me.Type):
		return nil, fmt.Errorf("%w: %q is none of the types %q ($ORC_SESSION_TYPE)", errNobody, me.Type, session.AgentTypes)
	}
	return &Session{conn: c, me: me, count: new(atomic.Int64)}, nil
}

// opened checks that the agent has the given role.
func (s *Session) opened(role string) error {
	if s.me.Type != role {
		return fmt.Errorf("%w: %s is of the type %s, and this is for one of the type %s", errNobody, s.me.Agent, s.me.Type, role)
	}
	return nil
}

// Identity returns the agent's identity in the session.
func (s *Session) Identity() Identity { return s.me }

// Conn returns the agent's connection.
func (s *Session) Conn() *Conn { return s.conn }

// Chain returns the same session with a correlation_id for its messages. Answers keep the
// correlation_id of the message that they answer.
func (s *Session) Chain(correlation string) *Session {
	chained := *s
	chained.chain = correlation
	return &chained
}

// ArchitectID returns the identifier of an architect, for use as a recipient.
func ArchitectID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentArchitect}
}

// DeveloperID returns the identifier of a developer.
func DeveloperID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentDeveloper}
}

// ReviewerID returns the identifier of a reviewer.
func ReviewerID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentReviewer}
}

// to returns a message that answers no other.
func (s *Session) to(whom session.Agent, kind string) session.Message {
	return session.Message{To: whom, MessageType: kind, CorrelationID: s.chain, SessionID: s.me.Session}
}

// about returns a message to the sender of another, with the same correlation_id.
func (s *Session) about(said *Said, kind string) session.Message {
	s.saw(said)
	m := s.to(said.From, kind)
	m.CorrelationID = cmp.Or(said.CorrelationID, m.CorrelationID)
	m.SessionID = cmp.Or(said.SessionID, m.SessionID)
	return m
}

// answering returns a message that answers another.
func (s *Session) answering(said *Said, kind string) session.Message {
	m := s.about(said, kind)
	m.ReplyTo = said.MessageID
	return m
}

// farAhead bounds the jump of a sequence number. Following a larger one could use up the
// numbers.
const farAhead = 1 << 20

// saw raises the sequence number to that of a received message, so that numbers rise in the
// whole session.
func (s *Session) saw(said *Said) {
	for now := s.count.Load(); now < said.SequenceNumber && said.SequenceNumber-now <= farAhead; now = s.count.Load() {
		s.count.CompareAndSwap(now, said.SequenceNumber)
	}
}

// say sends a message. Its sequence number is taken when its turn to be written comes, so that
// numbers rise on the stream as well.
func (s *Session) say(ctx context.Context, m session.Message, payload any) (*Sent, error) {
	var sent *Sent
	body, err := asObject(payload)
	if err == nil {
		m.MessageID, m.Body = uuid.NewString(), body
		m.From = session.Agent{AgentID: s.me.Agent, AgentType: s.me.Type}
		err = s.conn.writeBehind(ctx, m.To.AgentID, func() (line []byte, err error) {
			m.SequenceNumber, m.Timestamp = s.count.Add(1), object.Timestamp(time.Now())
			if line, err = spelled(&m); err == nil {
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

// spelled encodes a message as a line and validates it as the orchestrator will. Its Body is the
// payload.
func spelled(m *session.Message) ([]byte, error) {
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

// toldBy registers a message before it is written, because a refusal may arrive before the
// sender goes on.
func (c *Conn) toldBy(m *session.Message, line []byte) *Sent {
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
