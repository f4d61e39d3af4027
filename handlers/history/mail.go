package history

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// A MailPage selects a page of an actor's mail, which is only in the log.
type MailPage struct {
	Actor string
	After int64 // messages behind this number
	Until int64 // messages up to this number; 0: all
	Limit int64
	Told  bool // without assignments, of which the actor is notified separately
}

// mailPageBytes is the maximum size of a page. A larger message is a page by itself.
const mailPageBytes = 4 << 20

// isFor reports whether mail is for an actor: addressed to it, or a broadcast of another actor.
func isFor(actor string, m *wire.Mail) bool {
	return m.To == actor || m.To == mail.Broadcast && m.From != actor
}

// completeMail completes an answer with messages from the log.
func completeMail(answer any, pages []Page, record Archive) (any, error) {
	if len(pages) == 0 {
		return answer, nil
	}
	switch a := answer.(type) {
	case *wire.MailList:
		messages, _, more, err := ReadMail(record, *pages[0].Mail, mailPageBytes)
		if err != nil {
			return nil, err
		}
		return &wire.MailList{Actor: a.Actor, Messages: messages, Cursor: a.Cursor, More: more}, nil
	case *wire.Sent:
		whole := *a
		if seq := pages[0].Sent; seq != 0 {
			r, err := record.Record(seq)
			if err != nil {
				return nil, err
			}
			whole.Mail = wire.MailOf(&r)
		}
		about := whole.ReplyTo
		if about == nil || *about >= whole.Seq {
			return &whole, nil
		}
		r, err := record.Record(*about)
		if err == nil && !r.IsMail() {
			whole.Warnings = append(slices.Clone(whole.Warnings), fmt.Sprintf("it answers %d, which is not a message", *about))
		}
		return &whole, err
	}
	return answer, nil
}

// ReadMail reads a page of an actor's mail. seen is the number after which the next page begins.
// Broadcasts of the actor itself are skipped.
func ReadMail(record Archive, page MailPage, most int) (messages []wire.Mail, seen int64, more bool, err error) {
	messages, seen = []wire.Mail{}, page.After
	size := 0
	search := wire.Search{To: []string{page.Actor, mail.Broadcast}, After: page.After, Until: page.Until}
	for r, err := range record.Find(search) {
		if err != nil {
			return nil, 0, false, err
		}
		if m := wire.MailOf(&r); isFor(page.Actor, &m) && !(page.Told && r.Kind == events.TaskAssigned) {
			if size += len(m.Payload); int64(len(messages)) == page.Limit || size > most && len(messages) > 0 {
				return messages, seen, true, nil
			}
			messages = append(messages, m)
		}
		seen = r.Seq
	}
	return messages, seen, false, nil
}
