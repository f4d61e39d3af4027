package agents

import (
	"context"

	"orchestrator/wire"
)

// Order is a task that is to be delivered: done, and right.
type Order struct {
	Developer, Reviewer string // without a reviewer, done is right
	Assignment          Assignment
	Review              ReviewRequest // what it does not say is as the task has it
	// Rename gives the task a new id for an attempt, from the second on; without it the
	// task keeps its own.
	Rename func(attempt int) string
}

// Delivery is what came of an order, as far as it came.
type Delivery struct {
	TaskID     string       // the last one that was reviewed, or the first
	Completion Completion   // the last one
	Review     ReviewResult // likewise; its verdict is "" when there was none
	Reviews    int          // how many there were
	Forced     bool         // it was taken as it is, though the last review did not approve it
}

// Deliver gives out a task, has it reviewed, and has it revised until it is
// approved. It returns nil then, and when it was taken as it is because it had
// been reviewed often enough.
//
// The error is ErrIncomplete or ErrRejected when its developer or its reviewer says
// so, ErrUnreviewed when it cannot be reviewed, an *Ended when it was aborted or
// is in the hands of people, and an *Undelivered when something that had to be
// said was refused.
func (a *Architect) Deliver(ctx context.Context, o Order) (Delivery, error) {
	t, err := a.Assign(ctx, o.Developer, o.Assignment)
	if err != nil {
		return Delivery{TaskID: t.ID()}, err
	}
	return t.Deliver(ctx, o)
}

// Deliver is the same for a task that has been assigned, such as one on which the
// next one depends.
func (t *SessionTask) Deliver(ctx context.Context, o Order) (Delivery, error) {
	d := Delivery{TaskID: t.ID()}
	var err error
	for again := true; again && err == nil; {
		again, err = t.attempt(ctx, &o, &d)
	}
	if err != nil && d.Reviews > 0 {
		err = t.architect.settled(ctx, d.TaskID, err)
	}
	d.Forced = err == nil && d.Review.Verdict == wire.VerdictChangesRequested
	return d, err
}

// attempt is a completion and its review. It reports whether there is to be another.
func (t *SessionTask) attempt(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
	d.Completion, err = t.Completion(ctx)
	switch {
	case err != nil:
		return false, err
	case d.Completion.Status == wire.OutcomeFailed, o.Reviewer == "" && d.Completion.Status != wire.OutcomeCompleted:
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
	case wire.VerdictApproved:
		return false, nil
	case wire.VerdictRejected:
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
