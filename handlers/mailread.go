package handlers

import (
	"cmp"
	"fmt"

	"orchestrator/wire"
)

// MailPage is a page of somebody's mail, which is in the record alone.
type MailPage struct {
	Actor string
	After int64 // messages behind this number
	Until int64 // and up to this one: what came later is for the next page
	Limit int64
}

// mailPageBytes is how much a page holds; a message that is larger is a page by
// itself.
const mailPageBytes = 4 << 20

func pollMessages(t *turn, r *wire.PollMessages) (*wire.MailList, *wire.Error) {
	id, err := t.writer(r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	answer := &wire.MailList{Actor: id, Messages: []wire.Mail{}}
	if c := t.bus.actors[id]; c != nil {
		answer.Cursor = c.cursor
	}
	page := &MailPage{Actor: id, After: answer.Cursor, Until: t.seq, Limit: cmp.Or(r.Limit, wire.MailPage)}
	if r.Cursor != nil {
		page.After = *r.Cursor
	}
	t.pages = append(t.pages, Page{Mail: page})
	return answer, nil
}

// Wants says whether mail is for an actor: what is addressed to it, and what is
// for everybody and not by itself.
func Wants(actor string, m *wire.Mail) bool {
	return m.To == actor || m.To == wire.Broadcast && m.From != actor
}

// MailFor is what an actor's mail is found by.
func MailFor(actor string, after int64) wire.Search {
	return wire.Search{To: []string{actor, wire.Broadcast}, After: after}
}

// completeMail reads what an answer says of messages.
func completeMail(answer any, pages []Page, record Archive) (any, error) {
	for _, p := range pages {
		switch a := answer.(type) {
		case *wire.MailList:
			messages, more, err := p.Mail.read(record)
			if err != nil {
				return nil, err
			}
			return &wire.MailList{Actor: a.Actor, Messages: messages, Cursor: a.Cursor, More: more}, nil
		case *wire.Sent:
			r, err := record.Record(p.Sent)
			if err != nil {
				return nil, err
			}
			whole := *a
			whole.Mail = wire.MailOf(&r)
			return &whole, nil
		}
	}
	return answer, nil
}

// read finds the messages of a page.
func (p *MailPage) read(record Archive) ([]wire.Mail, bool, error) {
	messages := []wire.Mail{}
	if p.Until == 0 {
		return messages, false, nil
	}
	size := 0
	search := MailFor(p.Actor, p.After)
	search.Until = p.Until
	for r, err := range record.Find(search) {
		if err != nil {
			return nil, false, err
		}
		m := wire.MailOf(&r)
		if !Wants(p.Actor, &m) {
			continue
		}
		if size += len(m.Payload); int64(len(messages)) == p.Limit || size > mailPageBytes && len(messages) > 0 {
			return messages, true, nil
		}
		messages = append(messages, m)
	}
	return messages, false, nil
}

func ackMessages(t *turn, r *wire.AckMessages) (*wire.Acked, *wire.Error) {
	id, err := t.writer(r.Actor, "actor")
	switch {
	case err != nil:
		return nil, err
	case r.Seq > t.seq:
		return nil, &wire.Error{
			Code: wire.CodeInvalid, Message: fmt.Sprintf("there is no message %d yet: the last number is %d", r.Seq, t.seq),
			Details: map[string]any{"pointer": "/payload/seq", "last": t.seq},
		}
	}
	if c := t.bus.actors[id]; c == nil || r.Seq > c.cursor {
		t.factOf(id, "", "", &mailAcked{Actor: id, Seq: r.Seq})
	}
	return &wire.Acked{Actor: id, Cursor: t.bus.actors[id].cursor}, nil
}

// mailAcked says that an actor has dealt with its mail up to a number.
type mailAcked struct {
	Actor string `json:"actor"`
	Seq   int64  `json:"seq"`
}

func (*mailAcked) kind() string { return wire.EventMailAcked }

func (f *mailAcked) apply(s *State, r *wire.Record) {
	c := s.bus.enter(f.Actor, r.Seq)
	c.cursor = max(c.cursor, f.Seq)
	if f.Actor != wire.ActorBus {
		c.seen = r.At
	}
}
