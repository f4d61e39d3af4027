package handlers

import (
	"cmp"
	"fmt"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

func pollMessages(md mailDecision, r *wire.PollMessages) (*wire.MailList, *wire.Error) {
	id, err := md.writer(r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	answer := &wire.MailList{Actor: id, Messages: []wire.Mail{}}
	if c := md.state.bus.Actor(id); c != nil {
		answer.Cursor = c.Cursor
	}
	page := &history.MailPage{Actor: id, After: answer.Cursor, Until: max(md.state.seq, 1), Limit: cmp.Or(r.Limit, wire.MailPage)}
	if r.Cursor != nil {
		page.After = *r.Cursor
	}
	md.pages = append(md.pages, history.Page{Mail: page})
	return answer, nil
}

func ackMessages(md mailDecision, r *wire.AckMessages) (*wire.Acked, *wire.Error) {
	id, err := md.writer(r.Actor, "actor")
	switch {
	case err != nil:
		return nil, err
	case r.Seq > md.state.seq:
		return nil, &wire.Error{
			Code: wire.CodeInvalid, Message: fmt.Sprintf("there is no message %d yet: the last number is %d", r.Seq, md.state.seq),
			Details: map[string]any{"pointer": "/payload/seq", "last": md.state.seq},
		}
	}
	if c := md.state.bus.Actor(id); c == nil || r.Seq > c.Cursor {
		md.factOf(id, "", "", &mailAcked{Actor: id, Seq: r.Seq, Agent: agentOf(md.from.String()), Request: md.mark()})
	}
	return &wire.Acked{Actor: id, Cursor: md.state.bus.Actor(id).Cursor}, nil
}

// mailAcked records that an actor has processed its mail up to a number.
type mailAcked struct {
	Actor string `json:"actor"`
	Seq   int64  `json:"seq"`

	Agent   string      `json:"agent,omitzero"` // the agent that requested it
	Request *requestKey `json:"request,omitzero"`
}

func (*mailAcked) kind() string { return events.MessageAcked }

func (m *mailAcked) apply(s *State, r *wire.Record) {
	c := s.bus.Enter(m.Actor, r.Seq)
	c.Cursor = max(c.Cursor, m.Seq)
	if m.Actor != mail.Bus {
		c.Seen = r.At
	}
	s.saveReply(m.Agent, m.Request, &wire.Acked{Actor: m.Actor, Cursor: c.Cursor}, nil)
}
