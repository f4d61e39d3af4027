package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/wire/session"
)

// Developer configures DevelopAs. Agents that need only Do can call Session.Develop instead.
type Developer struct {
	// Do does a task and returns its completion. Its context ends when the task or the session is
	// aborted, or when the agent has to shut down; Do should then return soon. If Do panics or
	// returns an error, the task has failed, and the Completion is sent with the failure. The
	// orchestrator may assign the task again; its PreviousAttempts then have the failure.
	Do func(ctx context.Context, task *Assigned) (Completion, error)
	// Rescope returns a new completion after one was refused because a file outside the scope
	// was changed: with the file restored, or left out. The refusal has the Scope. The task
	// fails if Rescope is nil or fails, or if its completions are refused too often.
	Rescope func(ctx context.Context, task *Assigned, refused *Undelivered) (Completion, error)
	// Capacity is the number of tasks done at a time; 0 means 1. Further tasks are acknowledged
	// and wait.
	Capacity int
	// Hear is called with every message, in order, before it is processed. It must not block.
	Hear func(*Said)
	// ProgressAfter is how long a task runs before its progress is reported automatically,
	// ProgressEvery the interval after that. 0 means two minutes and 30 seconds.
	ProgressAfter, ProgressEvery time.Duration
	// Work does the agent's tasks outside the session, as WorkAs does. If it is nil, they are
	// not done.
	Work *Worker
}

// Develop does assigned tasks, one at a time, until the agent has to shut down, or the stream or
// ctx ends. Then it waits for running tasks and returns. It acknowledges each task, reports
// progress while the task takes long, and always reports the outcome.
//
// A repeated assignment is done once. A new assignment of the same task replaces the old one,
// which is no longer reported; neither is an aborted task.
//
// Tasks given up because of a shutdown are not reported: the orchestrator decides about them.
// Develop then returns an error, as Work does.
func (s *Session) Develop(ctx context.Context, do func(ctx context.Context, task *Assigned) (Completion, error)) error {
	return s.DevelopAs(ctx, Developer{Do: do})
}

// DevelopAs is like Develop, with the settings of a Developer.
func (s *Session) DevelopAs(ctx context.Context, developer Developer) error {
	if err := s.opened(session.AgentDeveloper); err != nil {
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

// assigned returns the errand for an assignment, or nil for any other message.
func (d *developing) assigned(said *Said) *errand {
	a := &Assigned{Said: said, session: d.Session}
	if said.MessageType != session.TypeTaskAssignment || said.Read(&a.Assignment) != nil {
		return nil
	}
	return &errand{
		key: a.Task.TaskID, task: a.Task.TaskID, status: a.status,
		do:      func(ctx context.Context, e *errand) error { return d.do(ctx, e, a) },
		correct: func(ctx context.Context, e *errand, why *Undelivered) error { return d.correct(ctx, e, a, why) },
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

// done waits for the task's turn and does it. A panic fails only this task.
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

// complete reports the outcome of a task, unless the task was cancelled or replaced.
func (d *developing) complete(ctx context.Context, e *errand, a *Assigned, what Completion, failed error) error {
	switch {
	case off(ctx):
		return nil
	case gaveUp(ctx, failed):
		return errUnfinished
	case failed != nil:
		what = failing(what, e.task, failed)
	}
	ctx = context.WithoutCancel(ctx) // the work is done, but its outcome is not reported yet
	sent, err := d.Complete(ctx, a.Said, what)
	if errors.Is(err, errUnsaid) {
		sent, err = d.Complete(ctx, a.Said, failing(Completion{}, e.task, fmt.Errorf("what came of it cannot be told: %w", err)))
	}
	if err == nil {
		d.expects(ctx, e, sent)
	}
	return err
}

// correct sends another completion after one was refused. It returns the refusal if no other
// completion can help, for example because the task has ended.
func (d *developing) correct(ctx context.Context, e *errand, a *Assigned, why *Undelivered) error {
	scope, outside := why.Scope()
	switch {
	case outside && d.Rescope != nil && e.corrected < corrections:
		completion, err := d.rescoped(ctx, e, a, why)
		return d.complete(ctx, e, a, completion, err)
	case outside:
		what := failing(Completion{}, e.task, fmt.Errorf("%w; what may be changed: %s", why, strings.Join(scope, ", ")))
		what.Error.ErrorType = session.ExecutionScopeViolation
		return d.complete(ctx, e, a, what, nil)
	case why.ErrorType == session.DeliveryMalformed:
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

// failing returns the completion of a failed task.
func failing(what Completion, task string, err error) Completion {
	why := err.Error()
	if strings.TrimSpace(why) == "" {
		why = "it failed without a word"
	}
	kind := session.ExecutionException
	if errors.Is(err, context.DeadlineExceeded) {
		kind = session.ExecutionTimeout
	}
	what.Status = session.OutcomeFailed
	what.Summary = cmp.Or(what.Summary, why)
	what.Blockers = append(what.Blockers[:len(what.Blockers):len(what.Blockers)], why)
	if what.Error == nil {
		what.Error = &session.ExecutionError{
			TaskID: task, ErrorType: kind, ErrorMessage: why, Recoverable: true, SuggestedAction: session.SuggestRetry,
		}
	}
	return what
}

// Assigned is an assignment as its developer holds it.
type Assigned struct {
	Assignment
	Said *Said // the message that it came with

	session *Session

	mu   sync.Mutex
	now  Progress
	last time.Time // of the latest report
}

// Progress reports to the architect how far the task is, from 0 to 100, its current step, and
// the files modified so far. The task goes on.
func (a *Assigned) Progress(percent float64, step string, files ...string) error {
	now := Progress{Percent: percent, Step: step, Files: slices.Clone(files)}
	if _, err := a.session.Report(context.Background(), a.Said, now); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.last = now, time.Now()
	return nil
}

// at sets the current step, unless the developer has reported one.
func (a *Assigned) at(step string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Step = cmp.Or(a.now.Step, step)
}

func (a *Assigned) status() TaskStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return TaskStatus{TaskID: a.Task.TaskID, Percent: a.now.Percent, Step: cmp.Or(a.now.Step, waiting)}
}

const waiting = "waiting for its turn"

// due returns when the next progress report is due: first at the given time, then every
// interval after the latest report.
func (a *Assigned) due(first time.Time, every time.Duration) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next := a.last.Add(every); next.After(first) {
		return next
	}
	return first
}

// report sends progress at regular intervals, to distinguish a long task from a hanging one. A
// report that fails is not repeated; the next one follows in time.
func (a *Assigned) report(ctx context.Context, after, every time.Duration) {
	for first := time.Now().Add(after); ; {
		next := a.due(first, every)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return
		}
		if next != a.due(first, every) {
			continue // the developer has reported by itself
		}
		a.mu.Lock()
		now := a.now
		a.last = time.Now()
		a.mu.Unlock()
		now.Step = cmp.Or(now.Step, waiting)
		_, _ = a.session.Report(ctx, a.Said, now) // a broken stream shows in the completion
	}
}
