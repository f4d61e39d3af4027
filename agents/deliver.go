package agents

import (
	"context"

	"orchestrator/wire/session"
)

// Order describes a task to deliver: completed and, with a Reviewer, approved.
type Order struct {
	Developer, Reviewer string // without a Reviewer, a completion is enough
	Assignment          Assignment
	Review              ReviewRequest // empty fields are taken from the task
	// Rename returns the id of an attempt, from the second on. If nil, the task keeps its id.
	Rename func(attempt int) string
}

// Delivery is the outcome of an order. After an error it holds what was reached.
type Delivery struct {
	TaskID     string       // of the last attempt that was reviewed, or of the first
	Completion Completion   // the last one
	Review     ReviewResult // the last one; its Verdict is "" if there was no review
	Reviews    int          // how many there were
	Forced     bool         // accepted although the last review did not approve it
}

// Deliver assigns a task, has it reviewed, and has it revised until it is approved. It also
// returns nil if the session accepts the task because it has used up its reviews.
//
// The error is ErrIncomplete or ErrRejected if the developer or the reviewer says so, and
// ErrUnreviewed if the task cannot be reviewed. It is an *Ended if the task was aborted or
// waits for a person. It is an *Undelivered if a required message was refused.
func (a *Architect) Deliver(ctx context.Context, o Order) (Delivery, error) {
	t, err := a.Assign(ctx, o.Developer, o.Assignment)
	if err != nil {
		return Delivery{TaskID: t.ID()}, err
	}
	return t.Deliver(ctx, o)
}

// Deliver is like Architect.Deliver for a task that is already assigned, such as a dependency
// of the next one.
func (t *SessionTask) Deliver(ctx context.Context, o Order) (Delivery, error) {
	d := Delivery{TaskID: t.ID()}
	var err error
	for again := true; again && err == nil; {
		again, err = t.attempt(ctx, &o, &d)
	}
	if err != nil && d.Reviews > 0 {
		err = t.architect.settled(ctx, d.TaskID, err)
	}
	d.Forced = err == nil && d.Review.Verdict == session.VerdictChangesRequested
	return d, err
}

// attempt waits for a completion and its review. It reports whether another attempt follows.
func (t *SessionTask) attempt(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
	d.Completion, err = t.Completion(ctx)
	switch {
	case err != nil:
		return false, err
	case d.Completion.Status == session.OutcomeFailed, o.Reviewer == "" && d.Completion.Status != session.OutcomeCompleted:
		return false, ErrIncomplete
	case o.Reviewer == "":
		return false, nil
	}
	result, err := t.Review(ctx, o.Reviewer, o.Review)
	if err != nil {
		return false, err
	}
	d.TaskID, d.Review = t.ID(), result
	d.Reviews++
	switch result.Verdict {
	case session.VerdictApproved:
		return false, nil
	case session.VerdictRejected:
		return false, ErrRejected
	}
	if err := t.mayRevise(ctx); err != nil {
		return false, err
	}
	id := t.ID()
	if o.Rename != nil {
		id = o.Rename(d.Reviews + 1)
	}
	return true, t.ReviseAs(ctx, id, result)
}
