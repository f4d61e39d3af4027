package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire/session"
)

// errand is work that a session message asks for.
type errand struct {
	key, task string
	do        func(ctx context.Context, e *errand) error // until it is answered
	mend      func(ctx context.Context, e *errand, why *Undelivered) error
	status    func() TaskStatus

	stop   context.CancelCauseFunc
	before *errand       // the errand that it replaces
	done   chan struct{} // closed when do has returned
	mended int
}

// mendings is how often a refused answer is corrected.
const mendings = 3

var errAgain = errors.New("the task was assigned again")

// start begins an errand. An older errand with the same key is stopped: the last message
// counts.
func (d *inbox) start(ctx context.Context, e *errand) {
	ctx, e.stop = context.WithCancelCause(ctx)
	e.done = make(chan struct{})
	d.mu.Lock()
	e.before = d.errands[e.key]
	d.errands[e.key] = e
	d.mu.Unlock()
	if e.before != nil {
		e.before.stop(errAgain)
	}
	d.running.Go(func() {
		defer close(e.done)
		defer e.stop(nil)
		d.finish(e, e.do(ctx, e))
		if e.before != nil { // a caller that waits for this one waits for both
			<-e.before.done
		}
	})
}

// turn waits until an errand may be done, and returns a function that releases its place.
// Errands with the same key never run together, because they would change the same files.
func (d *inbox) turn(ctx context.Context, e *errand) (leave func(), err error) {
	if e.before != nil {
		select {
		case <-e.before.done:
			e.before = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case d.turns <- struct{}{}:
		return func() { <-d.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// off reports whether an errand was cancelled or replaced.
func off(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrCancelled) || errors.Is(cause, errAgain)
}

// finish removes an errand and reports its error.
func (d *inbox) finish(e *errand, err error) {
	d.mu.Lock()
	if d.errands[e.key] == e {
		delete(d.errands, e.key)
	}
	if errors.Is(err, errUnfinished) {
		d.unfinished++
	}
	d.mu.Unlock()
	if err != nil && !errors.Is(err, errUnfinished) {
		d.troubled(fmt.Errorf("task %s: %w", e.task, err))
	}
}

// expects remembers the answer of an errand, because it may be refused. It handles a refusal
// that has already arrived.
func (d *inbox) expects(ctx context.Context, e *errand, answer *Sent) {
	d.mu.Lock()
	d.answered.add(answer.MessageID, e)
	d.mu.Unlock()
	if answer.Err() != nil {
		d.lost(ctx, answer)
	}
}

// lost handles a message of the agent that was not delivered.
func (d *inbox) lost(ctx context.Context, sent *Sent) {
	d.mu.Lock()
	e, answer := d.answered.take(sent.MessageID)
	d.mu.Unlock()
	why := sent.undelivered()
	d.running.Go(func() {
		switch {
		case !answer && (sent.kind == session.TypeTaskCompletion || sent.kind == session.TypeReviewResult): // expects comes yet
		case !answer:
			d.troubled(why)
		case e.mended >= mendings:
			d.troubled(fmt.Errorf("task %s, given up: %w", e.task, why))
		default:
			e.mended++
			d.finish(e, e.mend(ctx, e, why))
		}
	})
}
