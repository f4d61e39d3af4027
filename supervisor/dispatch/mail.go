package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A MailReader reads the mail of an actor: the recorded messages first, then new ones. It holds
// no messages, so a slow reader only reads later.
type MailReader struct {
	dispatcher *Dispatcher
	actor      string
	after      int64
}

// OpenMail opens the mail of an actor for a caller that may read it. Reading begins after
// cursor, or after the last message that the actor has acked. Actor "" means the caller.
func (r Requests) OpenMail(ctx context.Context, from handlers.Actor, actor string, cursor *int64) (*MailReader, error) {
	answer, err := r.Do(ctx, from, "poll-messages", &wire.PollMessages{Actor: actor, Cursor: cursor, Limit: 1})
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*wire.MailList)
	if !ok {
		return nil, fmt.Errorf("poll-messages was answered with a %T", answer)
	}
	reader := &MailReader{dispatcher: r.dispatcher, actor: list.Actor, after: list.Cursor}
	if cursor != nil {
		reader.after = *cursor
	}
	return reader, nil
}

// maxReadBytes is how many bytes a reader gets at once, as there may be many slow readers. A larger
// message is delivered by itself.
const maxReadBytes = 32 << 10

// Next waits for new messages and returns them.
func (r *MailReader) Next(ctx context.Context) ([]wire.Mail, error) {
	d := r.dispatcher
	waiter, remove := d.notifier.add(r.actor)
	defer remove()
	for {
		page := history.MailPage{Actor: r.actor, After: r.after, Limit: pageMessages}
		messages, seen, _, err := history.ReadMail(d, page, maxReadBytes)
		if err != nil {
			return nil, d.unreadable(err)
		}
		if r.after = seen; len(messages) > 0 {
			return messages, nil
		}
		if _, err := Await(ctx, d.options.Done, waiter.ready); err != nil {
			return nil, err
		}
	}
}

// A MailQuery selects messages.
type MailQuery struct {
	Topic  string // a glob; "": all
	Actor  string // sender or recipient; "": all
	Since  int64  // only messages after this number
	Last   int    // number of latest messages; 0: all
	Follow bool
}

func (q *MailQuery) wants(m *wire.Mail) bool {
	if q.Actor != "" && m.From != q.Actor && m.To != q.Actor && (m.To != mail.Broadcast || m.From == q.Actor) {
		return false
	}
	if q.Topic == "" {
		return true
	}
	fits, _ := path.Match(q.Topic, m.Topic) // Messages has refused invalid patterns
	return fits
}

// Messages sends messages, oldest first, and then new ones if asked to.
func (r Requests) Messages(ctx context.Context, q MailQuery, send func(wire.Mail) error) error {
	if _, err := path.Match(q.Topic, ""); err != nil {
		return &wire.Error{Code: wire.CodeInvalid, Message: "the topic is no pattern: " + q.Topic}
	}
	d := r.dispatcher
	d.Settle()
	waiter, remove := d.notifier.add("")
	defer remove()
	after, err := d.past(ctx, q, send)
	for err == nil && q.Follow {
		if _, err = Await(ctx, d.options.Done, waiter.ready); err == nil {
			after, err = d.messages(ctx, wire.Search{After: after}, q, send)
		}
	}
	return err
}

// errEnough ends a search early.
var errEnough = errors.New("enough")

// past sends the recorded messages and returns the number after which new ones begin. For
// q.Last it first counts from the end, so that no messages are held in memory.
func (d *Dispatcher) past(ctx context.Context, q MailQuery, send func(wire.Mail) error) (int64, error) {
	search := wire.Search{After: q.Since}
	if q.Last == 0 {
		return d.messages(ctx, search, q, send)
	}
	if search.Until = d.last.Load(); search.Until <= q.Since {
		return q.Since, nil
	}
	from, n := search, 0
	from.Backward = true
	_, err := d.messages(ctx, from, q, func(m wire.Mail) error {
		search.After = m.Seq - 1
		if n++; n == q.Last {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || n == 0 {
		return search.Until, err
	}
	_, err = d.messages(ctx, search, q, send)
	return search.Until, err
}

// messages sends the messages that match a search and a query. It returns the number of the
// last one that it saw.
func (d *Dispatcher) messages(ctx context.Context, search wire.Search, q MailQuery, send func(wire.Mail) error) (int64, error) {
	last := search.After
	for r, err := range d.record.Find(ctx, search) {
		if err != nil {
			return last, d.unreadable(err)
		}
		last = r.Seq
		if m := wire.MailOf(&r); q.wants(&m) {
			if err := send(m); err != nil {
				return last, err
			}
		}
	}
	return last, ctx.Err()
}
