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
	correct   func(ctx context.Context, e *errand, why *Undelivered) error
	status    func() TaskStatus

	stop      context.CancelCauseFunc
	before    *errand       // the errand that it replaces
	done      chan struct{} // closed when do has returned
	corrected int
}

// corrections is how often a refused answer is corrected.
const corrections = 3

var errAgain = errors.New("the task was assigned again")

// start begins an errand. An older errand with the same key is stopped: the last message
// counts.
func (i *inbox) start(ctx context.Context, e *errand) {
	ctx, e.stop = context.WithCancelCause(ctx)
	e.done = make(chan struct{})
	i.mu.Lock()
	e.before = i.errands[e.key]
	i.errands[e.key] = e
	i.mu.Unlock()
	if e.before != nil {
		e.before.stop(errAgain)
	}
	i.running.Go(func() {
		defer close(e.done)
		defer e.stop(nil)
		i.finish(e, e.do(ctx, e))
		if e.before != nil { // a caller that waits for this one waits for both
			<-e.before.done
		}
	})
}

// turn waits until an errand may be done, and returns a function that releases its place.
// Errands with the same key never run together, because they would change the same files.
func (i *inbox) turn(ctx context.Context, e *errand) (leave func(), err error) {
	if e.before != nil {
		select {
		case <-e.before.done:
			e.before = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case i.turns <- struct{}{}:
		return func() { <-i.turns }, nil
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
func (i *inbox) finish(e *errand, err error) {
	i.mu.Lock()
	if i.errands[e.key] == e {
		delete(i.errands, e.key)
	}
	if errors.Is(err, errUnfinished) {
		i.unfinished++
	}
	i.mu.Unlock()
	if err != nil && !errors.Is(err, errUnfinished) {
		i.troubled(fmt.Errorf("task %s: %w", e.task, err))
	}
}

// expects remembers the answer of an errand, because it may be refused. It handles a refusal
// that has already arrived.
func (i *inbox) expects(ctx context.Context, e *errand, answer *Sent) {
	i.mu.Lock()
	i.answered.add(answer.MessageID, e)
	i.mu.Unlock()
	if answer.Err() != nil {
		i.lost(ctx, answer)
	}
}

// lost handles a message of the agent that was not delivered.
func (i *inbox) lost(ctx context.Context, sent *Sent) {
	i.mu.Lock()
	e, answer := i.answered.take(sent.MessageID)
	i.mu.Unlock()
	why := sent.undelivered()
	i.running.Go(func() {
		switch {
		case !answer && (sent.kind == session.TypeTaskCompletion || sent.kind == session.TypeReviewResult): // expects comes yet
		case !answer:
			i.troubled(why)
		case e.corrected >= corrections:
			i.troubled(fmt.Errorf("task %s, given up: %w", e.task, why))
		default:
			e.corrected++
			i.finish(e, e.correct(ctx, e, why))
		}
	})
}
