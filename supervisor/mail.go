package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// MailReader reads the mail of an actor as it comes: what is there, and then what
// is recorded. It keeps nothing: a reader that is slow reads later.
type MailReader struct {
	s     *Supervisor
	actor string
	after int64
}

// OpenMail opens the mail of an actor for a caller that may read it, behind a number,
// or behind what the actor has acked. Actor "" is the one who asks.
func (s *Supervisor) OpenMail(ctx context.Context, from handlers.Actor, actor string, cursor *int64) (*MailReader, error) {
	answer, err := s.Do(ctx, from, "poll-messages", &wire.PollMessages{Actor: actor, Cursor: cursor, Limit: 1})
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*wire.MailList)
	if !ok {
		return nil, fmt.Errorf("poll-messages was answered with a %T", answer)
	}
	r := &MailReader{s: s, actor: list.Actor, after: list.Cursor}
	if cursor != nil {
		r.after = *cursor
	}
	return r, nil
}

// sipBytes is how much a reader gets at once; a message that is larger it gets
// alone. There may be many readers, and slow ones.
const sipBytes = 32 << 10

// Next waits for the next messages.
func (r *MailReader) Next(ctx context.Context) ([]wire.Mail, error) {
	bell, down := r.s.dispatcher.bells.hang(r.actor)
	defer down()
	for {
		page := handlers.MailPage{Actor: r.actor, After: r.after, Limit: pageMessages}
		messages, seen, _, err := handlers.ReadMail(r.s.dispatcher, page, sipBytes)
		if err != nil {
			return nil, r.s.dispatcher.unreadable(err)
		}
		if r.after = seen; len(messages) > 0 {
			return messages, nil
		}
		if _, err := await(ctx, r.s, bell.rung); err != nil {
			return nil, err
		}
	}
}

// MailQuery chooses among all messages.
type MailQuery struct {
	Topic  string // a glob; "": all
	Actor  string // from it or to it; "": all
	Since  int64  // behind this number
	Last   int    // the last so many; 0: all
	Follow bool
}

func (q *MailQuery) wants(m *wire.Mail) bool {
	if q.Actor != "" && m.From != q.Actor && m.To != q.Actor && (m.To != wire.Broadcast || m.From == q.Actor) {
		return false
	}
	if q.Topic == "" {
		return true
	}
	fits, _ := path.Match(q.Topic, m.Topic) // one that cannot be read was refused
	return fits
}

// Messages sends messages, oldest first, and then, if asked, those that come.
func (s *Supervisor) Messages(ctx context.Context, q MailQuery, send func(wire.Mail) error) error {
	if _, err := path.Match(q.Topic, ""); err != nil {
		return &wire.Error{Code: wire.CodeInvalid, Message: "the topic is no pattern: " + q.Topic}
	}
	s.dispatcher.settle()
	bell, down := s.dispatcher.bells.hang("")
	defer down()
	after, err := s.past(ctx, q, send)
	for err == nil && q.Follow {
		if _, err = await(ctx, s, bell.rung); err == nil {
			after, err = s.messages(ctx, wire.Search{After: after}, q, send)
		}
	}
	return err
}

// errEnough ends a search that has found what it was for.
var errEnough = errors.New("enough")

// past sends what is there already, and returns the number behind which is the
// rest. The last few are counted from the end first, so that none is kept
// meanwhile.
func (s *Supervisor) past(ctx context.Context, q MailQuery, send func(wire.Mail) error) (int64, error) {
	search := wire.Search{After: q.Since}
	if q.Last == 0 {
		return s.messages(ctx, search, q, send)
	}
	if search.Until = s.dispatcher.last.Load(); search.Until <= q.Since {
		return q.Since, nil
	}
	from, n := search, 0
	from.Backward = true
	_, err := s.messages(ctx, from, q, func(m wire.Mail) error {
		search.After = m.Seq - 1
		if n++; n == q.Last {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || n == 0 {
		return search.Until, err
	}
	_, err = s.messages(ctx, search, q, send)
	return search.Until, err
}

// messages sends those that a search finds and a query wants, and returns the
// number of the last that it saw.
func (s *Supervisor) messages(ctx context.Context, search wire.Search, q MailQuery, send func(wire.Mail) error) (int64, error) {
	last := search.After
	for r, err := range s.dispatcher.record.Find(ctx, search) {
		if err != nil {
			return last, s.dispatcher.unreadable(err)
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
