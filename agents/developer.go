package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
)

// Developer is what an agent does that is given tasks in a session, for those to
// which one function is not enough.
type Developer struct {
	// Do does a task and says what came of it. Its context ends when the task or the
	// session is aborted or the agent has to go; then it should return soon. With an
	// error, or when it panics, the task has failed, and what the Completion says of
	// it is told as well. The orchestrator may want one more try: then the task is
	// assigned again, and the previous attempts in it say what went wrong.
	Do func(ctx context.Context, task *Assigned) (Completion, error)
	// Rescope says anew what came of a task whose completion was refused because a
	// file was changed that was not to be: once it is as it was, or without it. The
	// refusal has the Scope. When it fails, or is refused again and again, or when
	// there is none, so has the task.
	Rescope func(ctx context.Context, task *Assigned, refused *Undelivered) (Completion, error)
	// Capacity is how many tasks are done at a time; one when it is 0. The others are
	// acknowledged and wait.
	Capacity int
	// Hear is told every message before it is heeded, in order. It must not wait.
	Hear func(*Said)
	// Progress of a task is told by itself once it has taken longer than
	// ProgressAfter, every ProgressEvery: two minutes and 30 seconds when they are 0.
	ProgressAfter, ProgressEvery time.Duration
	// Work does the tasks that the agent gets beside those of the session, as WorkAs
	// does: by matching, by its role, by hand. Without it they are not done.
	Work *Worker
}

// Develop does tasks as they are assigned, until the agent is to shut down, the
// stream ends or ctx does; then it waits for what is being done and returns. It
// acknowledges each, tells how far it is while it takes long, and says what came
// of it, whatever that is: as a Developer does, one task at a time.
//
// An assignment that comes twice is done once. A new one of the same task takes
// the place of the old one, of which nothing more is said; nor is anything of one
// that was aborted.
//
// What was given up because the agent has to go is not told: the orchestrator
// knows what is to become of it. Develop then returns an error, as Work does.
func (s *Session) Develop(ctx context.Context, do func(ctx context.Context, task *Assigned) (Completion, error)) error {
	return s.DevelopAs(ctx, Developer{Do: do})
}

// DevelopAs is Develop for a Developer.
func (s *Session) DevelopAs(ctx context.Context, developer Developer) error {
	if err := s.opened(wire.AgentDeveloper); err != nil {
		return err
	}
	developer.Capacity = max(developer.Capacity, 1)
	developer.ProgressAfter = cmp.Or(developer.ProgressAfter, 2*time.Minute)
	developer.ProgressEvery = cmp.Or(developer.ProgressEvery, 30*time.Second)
	d := &developing{inbox: inbox{Session: s, hear: developer.Hear}, Developer: developer}
	d.begin = d.assigned
	return d.work(ctx, developer.Capacity, developer.Work)
}

// developing is one call of DevelopAs.
type developing struct {
	inbox
	Developer
}

// assigned is the errand of an assignment.
func (d *developing) assigned(said *Said) *errand {
	a := &Assigned{Said: said, session: d.Session}
	if said.MessageType != wire.TypeTaskAssignment || said.Read(&a.Assignment) != nil {
		return nil
	}
	return &errand{
		key: a.Task.TaskID, task: a.Task.TaskID, status: a.status,
		do:   func(ctx context.Context, e *errand) error { return d.do(ctx, e, a) },
		mend: func(ctx context.Context, e *errand, why *Undelivered) error { return d.mend(ctx, e, a, why) },
	}
}

// do does a task from its acknowledgment to its completion.
func (d *developing) do(ctx context.Context, e *errand, a *Assigned) error {
	if _, err := d.Acknowledge(ctx, a.Said); err != nil && !gaveUp(ctx, err) {
		return err
	}
	reporting, enough := context.WithCancel(ctx)
	defer enough()
	var reports sync.WaitGroup
	reports.Go(func() { a.report(reporting, d.ProgressAfter, d.ProgressEvery) })
	completion, err := d.done(ctx, e, a)
	enough()
	reports.Wait()
	return d.complete(ctx, e, a, completion, err)
}

// done does a task when it is its turn. One that panics takes nothing with it.
func (d *developing) done(ctx context.Context, e *errand, a *Assigned) (_ Completion, err error) {
	leave, err := d.turn(ctx, e)
	if err != nil {
		return Completion{}, err
	}
	defer leave()
	defer func() {
		if reason := recover(); reason != nil {
			err = d.panicked(e.task, reason)
		}
	}()
	a.at("at work")
	return d.Developer.Do(ctx, a)
}

// complete returns what came of a task, if a caller still waits.
func (d *developing) complete(ctx context.Context, e *errand, a *Assigned, what Completion, failed error) error {
	switch {
	case off(ctx):
		return nil
	case gaveUp(ctx, failed):
		return errUnfinished
	case failed != nil:
		what = failing(what, e.task, failed)
	}
	ctx = context.WithoutCancel(ctx) // the work is over, what came of it is not told yet
	sent, err := d.Complete(ctx, a.Said, what)
	if errors.Is(err, errUnsaid) {
		sent, err = d.Complete(ctx, a.Said, failing(Completion{}, e.task, fmt.Errorf("what came of it cannot be told: %w", err)))
	}
	if err == nil {
		d.expects(ctx, e, sent)
	}
	return err
}

// fix says anew what came of a task. Something must be said about it, if it can
// be: one that was refused because the task has ended is no more than trouble.
func (d *developing) mend(ctx context.Context, e *errand, a *Assigned, why *Undelivered) error {
	scope, outside := why.Scope()
	switch {
	case outside && d.Rescope != nil && e.mended < mendings:
		completion, err := d.rescoped(ctx, e, a, why)
		return d.complete(ctx, e, a, completion, err)
	case outside:
		what := failing(Completion{}, e.task, fmt.Errorf("%w; what may be changed: %s", why, strings.Join(scope, ", ")))
		what.Error.ErrorType = wire.ExecutionScopeViolation
		return d.complete(ctx, e, a, what, nil)
	case why.ErrorType == wire.DeliveryMalformed:
		return d.complete(ctx, e, a, Completion{}, why)
	}
	return why
}

func (d *developing) rescoped(ctx context.Context, e *errand, a *Assigned, why *Undelivered) (_ Completion, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = d.panicked(e.task, reason)
		}
	}()
	return d.Rescope(ctx, a, why)
}

// failing is the completion of a task that has failed.
func failing(what Completion, task string, err error) Completion {
	why := err.Error()
	if strings.TrimSpace(why) == "" {
		why = "it failed without a word"
	}
	kind := wire.ExecutionException
	if errors.Is(err, context.DeadlineExceeded) {
		kind = wire.ExecutionTimeout
	}
	what.Status = wire.OutcomeFailed
	what.Summary = cmp.Or(what.Summary, why)
	what.Blockers = append(what.Blockers[:len(what.Blockers):len(what.Blockers)], why)
	if what.Error == nil {
		what.Error = &wire.TaskExecutionError{
			TaskID: task, ErrorType: kind, ErrorMessage: why, Recoverable: true, SuggestedAction: wire.SuggestRetry,
		}
	}
	return what
}
