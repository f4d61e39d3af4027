package handlers

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// sessionDelivered records that a message was written to the stdin of its recipient.
type sessionDelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"` // the number of its record
}

func (*sessionDelivered) kind() string { return events.SessionDelivered }

func (sd *sessionDelivered) apply(s *State, r *wire.Record) {
	p := s.sessions.outboxItem(sd.Agent, sd.Message)
	s.sessions.posted.Drop(p)
	p.taken, p.given = true, r.At
	if p.told() {
		p.line = nil
		s.trim(p.to)
	}
}

// sessionDeferred records that a message could not be delivered and when it is retried, or that
// it is retried now.
type sessionDeferred struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Next    string `json:"next_retry_at,omitzero"`
	Again   bool   `json:"again,omitzero"`
	Unread  bool   `json:"unread,omitzero"` // it was sent to a run that does not read
}

func (*sessionDeferred) kind() string { return events.SessionDeferred }

func (sd *sessionDeferred) apply(s *State, r *wire.Record) {
	p := s.sessions.outboxItem(sd.Agent, sd.Message)
	p.retries = sd.Retries
	if sd.Again {
		s.sendItem(p, r.At)
		return
	}
	next, _ := object.ParseTime(sd.Next)
	if sd.Unread {
		s.sessions.askLater(p, next)
		return
	}
	s.sessions.deferUntil(p, next)
}

// sessionUndelivered records that the delivery of a message was given up.
type sessionUndelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Why     string `json:"why"`
}

func (*sessionUndelivered) kind() string { return events.SessionUndelivered }

func (su *sessionUndelivered) apply(s *State, _ *wire.Record) {
	s.sessions.removeItem(s.sessions.outboxItem(su.Agent, su.Message))
}

func (sd *sessionDelivered) check(s *State) error {
	return s.sessions.checkParcel(sd.Agent, sd.Message)
}
func (sd *sessionDeferred) check(s *State) error { return s.sessions.checkParcel(sd.Agent, sd.Message) }
func (su *sessionUndelivered) check(s *State) error {
	return s.sessions.checkParcel(su.Agent, su.Message)
}

func (x *sessions) checkParcel(agent string, message int64) error {
	if x.outboxItem(agent, message) == nil {
		return fmt.Errorf("no message %d is on its way to %q", message, agent)
	}
	return nil
}
