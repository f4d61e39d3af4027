package agents

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

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

// report sends progress at regular intervals, so that a long task can be told from one that
// hangs. A report that fails is not repeated; the next one follows in time.
func (a *Assigned) report(ctx context.Context, after, every time.Duration) {
	for first := time.Now().Add(after); ; {
		next := a.due(first, every)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return
		}
		if next != a.due(first, every) {
			continue // the developer has reported meanwhile
		}
		a.mu.Lock()
		now := a.now
		a.last = time.Now()
		a.mu.Unlock()
		now.Step = cmp.Or(now.Step, waiting)
		_, _ = a.session.Report(ctx, a.Said, now) // a broken stream shows in the completion
	}
}
