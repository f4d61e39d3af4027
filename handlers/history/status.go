package history

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A StatusPage selects the records about the states of a message.
type StatusPage struct {
	Seq    int64
	Sender string // the only actor that may read it; "": any

	Cut bool // set by Complete: records after the last one that was read may have more states
}

// NoMessage returns the error for a number that no message has.
func NoMessage(seq int64) *wire.Error {
	return &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("message %d does not exist", seq), Details: map[string]any{"seq": seq},
	}
}

// completeStatus reads the states of a message: its record and the receipts after it.
func (l Log) completeStatus(answer *mail.Status, pages []Page) (any, error) {
	if len(pages) == 0 {
		return answer, nil
	}
	page := pages[0].Status
	r, err := l.Record(page.Seq)
	if err != nil {
		return nil, err
	}
	m := wire.MailOf(&r)
	if !r.IsMail() || page.Sender != "" && m.From != page.Sender {
		return nil, NoMessage(page.Seq)
	}
	whole := &mail.Status{
		Seq: m.Seq, From: m.From, To: m.To, Topic: m.Topic,
		States: []mail.State{{State: mail.StateKept, At: m.CreatedAt}},
	}
	scanned := 0
	for r, err := range l.After(m.Seq) {
		if err != nil {
			return nil, err
		}
		if scanned++; scanned > maxScanned {
			page.Cut = true
			break
		}
		if r.Kind != events.MessageAcked && r.Kind != events.MessageReceipt {
			continue
		}
		if err := l.addReceipt(whole, &m, &r); err != nil {
			return nil, err
		}
		if whole.Has(mail.StateAcked) && m.To != mail.Broadcast {
			break
		}
	}
	return whole, nil
}

// addReceipt adds the state in a record to the states of a message, unless it is a known one.
func (l Log) addReceipt(to *mail.Status, m *mail.Message, r *wire.Record) error {
	f, err := l.Decode(r)
	if err != nil {
		return err
	}
	receipt, ok := f.(Receipt)
	if !ok {
		return nil
	}
	s := receipt.Receipt(m)
	if s == nil || slices.ContainsFunc(to.States, func(o mail.State) bool {
		return o.State == s.State && o.Agent == s.Agent && o.Actor == s.Actor
	}) {
		return nil
	}
	s.At = object.Timestamp(r.At)
	to.States = append(to.States, *s)
	return nil
}
