package dispatch

import (
	"context"
	"errors"
	"time"

	"orchestrator/handlers"
)

// Hold stops all decisions, commits and deliveries until release is called. Everything that was decided before is
// durable then, and its letters are in the mailboxes. Requests wait until release is called. The callers have stopped
// the output of agents. Hold returns an error if the postman does not come to rest within patience.
func (d *Dispatcher) Hold(patience time.Duration) (release func(), err error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		d.Settle()
		d.mu.Lock()
		switch {
		case d.broken != nil:
			d.mu.Unlock()
			return nil, errors.New(d.broken.Message)
		case !d.recording && d.filling.empty() && d.mail.rests():
			d.keepNow()
			d.audit.flush()
			return d.mu.Unlock, nil
		}
		d.mu.Unlock()
		if time.Now().After(end) {
			return nil, errors.New("lines for an agent wait in the record, because it does not read its stdin")
		}
	}
}

// Committed returns the number of the last committed fact. It then calls note, and waits until everything decided
// by then is committed, and its letters are in the mailboxes.
func (d *Dispatcher) Committed(note func()) int64 {
	seq := d.last.Load()
	note()
	d.Settle()
	return seq
}

// Quiet returns the last mail that was put into the mailbox of the run, whether the run waits for an answer, and
// whether it has received all messages to it.
func (c *Channel) Quiet() (mail int64, waits, ok bool) {
	mail = c.MailAfter()
	p := &c.dispatcher.mail
	p.mu.Lock()
	late := p.loads[c.actor.Run] != nil
	p.mu.Unlock()
	c.dispatcher.Look(func(state *handlers.State) { waits = state.HasPendingReply(c.actor.Run) })
	return mail, waits, !late && c.mail.IsIdle()
}

// keepNow stores a snapshot, so that the next program need not read many facts. The recorder
// rests. If another snapshot is being stored, that one must do: its goroutine may wait for d.mu while it
// keeps the record from taking a second one. d.mu must be held.
func (d *Dispatcher) keepNow() {
	select {
	case <-d.snapshots.stored:
		d.snapshots.stored = nil
	default:
	}
	if d.snapshots.stored != nil {
		return
	}
	d.takeSnapshot(true)
	if s := d.snapshots.begun; s != nil && s.done {
		if err := d.record.Keep(context.Background(), s.seq, s); err != nil {
			d.log.Error("the state cannot be saved; the next start reads more facts", "error", err)
		}
		d.snapshots.begun = nil
	}
	d.keeping.Store(0)
}

// rests reports whether the postman has no work.
func (p *postman) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.walking && len(p.due) == 0 && len(p.loads) == 0
}

// MailAfter returns the number of the last message that was put into the mailbox of the run.
func (c *Channel) MailAfter() int64 {
	p := &c.dispatcher.mail
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.agents[c.actor.Name]; r != nil {
		return r.after
	}
	return 0
}
