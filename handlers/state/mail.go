package state

import (
	"orchestrator/handlers/bus"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Mailed records a message from an actor. The fields of the record hold the message; its
// correlation holds the cause.
type Mailed struct {
	mail.Message
	Key   string `json:"-"`
	Cause *Cause `json:"-"`
}

// A cause names the agent that sent a message, its request if that can be repeated, and the
// warnings in the answer.
type Cause struct {
	Agent    string      `json:"agent"`
	Request  *RequestKey `json:"request,omitzero"`
	Warnings []string    `json:"warnings,omitzero"`
}

func (*Mailed) kind() string { return events.MessageSent }

// Read makes the fact of its record.
func (m *Mailed) Read(r *wire.Record) error {
	m.Message, m.Key = wire.MailOf(r), r.Key
	if r.Correlation == "" {
		return nil
	}
	m.Cause = new(Cause)
	return object.DecodeOwn([]byte(r.Correlation), m.Cause)
}

func (m *Mailed) apply(s *State, r *wire.Record) {
	s.Bus.Keys.Keep(r.From, m.Key, bus.Sent{Seq: r.Seq})
	if r.From != mail.Bus {
		m.heard(s, s.Bus.Enter(r.From, r.Seq), r)
	}
	if m.Cause != nil {
		answer := &mail.Sent{Message: m.Message, Warnings: m.Cause.Warnings}
		answer.Payload = nil // the payload may be large and is in the record
		s.saveReply(m.Cause.Agent, m.Cause.Request, answer, nil)
	}
}

// heard updates the sender of a message. An agent does not send agent.spawned itself.
func (m *Mailed) heard(s *State, c *BusActor, r *wire.Record) {
	if r.Topic != mail.TopicAgentSpawned {
		c.Seen = r.At
	}
	switch r.Topic {
	case mail.TopicHeartbeat:
		beat(&s.Bus, c, r.At)
	case mail.TopicAgentTerminated:
		switch {
		case r.To != mail.Global:
		case c.Agent != nil:
			c.Agent.Farewell = true
		default: // it has ended regularly
			s.Bus.Unwatch(c)
		}
	}
}

// SumOf returns the checksum of a record with a key, if the same key with other content is
// refused. It returns 0 if only the key counts.
func SumOf(r *wire.Record) uint64 {
	if r.Kind != events.SessionMessage {
		return 0
	}
	var said struct {
		Sum uint64 `json:"sum"`
	}
	_ = object.DecodeOwn(r.Payload, &said) // an unreadable record never matches
	return said.Sum
}

// MailAcked records that an actor has processed its mail up to a number.
type MailAcked struct {
	Actor string `json:"actor"`
	Seq   int64  `json:"seq"`

	Agent   string      `json:"agent,omitzero"` // the agent that requested it
	Request *RequestKey `json:"request,omitzero"`
}

func (*MailAcked) kind() string { return events.MessageAcked }

func (m *MailAcked) apply(s *State, r *wire.Record) {
	c := s.Bus.Enter(m.Actor, r.Seq)
	c.Cursor = max(c.Cursor, m.Seq)
	if m.Actor != mail.Bus {
		c.Seen = r.At
	}
	s.saveReply(m.Agent, m.Request, &mail.Acked{Actor: m.Actor, Cursor: c.Cursor}, nil)
}

// Receipt implements history.Receipt.
func (m *MailAcked) Receipt(of *mail.Message) *mail.State {
	if m.Seq < of.Seq || of.To != m.Actor && of.To != mail.Broadcast {
		return nil
	}
	return &mail.State{State: mail.StateAcked, Actor: m.Actor}
}

// Acked reports whether an actor has acknowledged a message.
func (s *State) Acked(actor string, seq int64) bool {
	a := s.Bus.Actor(actor)
	return a != nil && a.Cursor >= seq
}

// An onBus fact is also shown on the bus: polls and streams of the actor that mailTo returns
// find its record. If the actor is "", the bus does not show it.
type OnBus interface {
	MailTo(s *State) (actor, topic string)
}

func (t *TaskAssigned) MailTo(s *State) (actor, topic string) {
	if t.Mailed {
		return "", ""
	}
	return s.Agents.actorOf(t.Agent), mail.TopicTaskAssigned
}

func (t *TaskDone) MailTo(s *State) (actor, topic string) {
	if t.Mailed {
		return "", ""
	}
	t.Actor = s.Agents.actorOf(t.Agent)
	return mail.Global, mail.TopicTaskCompleted
}

func (f *TaskFailed) MailTo(s *State) (actor, topic string) {
	if f.Mailed {
		return "", ""
	}
	f.Actor = s.Agents.actorOf(f.Agent)
	return mail.Global, mail.TopicTaskFailed
}

func (t *TaskHelp) MailTo(s *State) (actor, topic string) {
	t.Actor = s.Agents.actorOf(t.Agent)
	return mail.Global, mail.TopicAlertFired
}

// actorOf returns the actor id of an agent, or "" if it has none.
func (as *agents) actorOf(agent string) string {
	if a := as.ByID[agent]; a != nil && a.Mail != nil {
		return a.Mail.ID
	}
	return ""
}
