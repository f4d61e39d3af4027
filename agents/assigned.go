package agents

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Assigned is an assignment, for the developer who has it.
type Assigned struct {
	Assignment
	Said *Said // the message that it came with

	session *Session

	mu   sync.Mutex
	now  Progress
	last time.Time // of the latest report
}

// Progress tells the architect how far the task is, from 0 to 100, what is done
// just now, and which files have been modified so far. It ends nothing.
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

// at tells what the developer is at, as long as it does not say so itself.
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

// due is when progress is to be told: some time after the task was assigned, and
// then again and again.
func (a *Assigned) due(first time.Time, every time.Duration) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next := a.last.Add(every); next.After(first) {
		return next
	}
	return first
}

// report tells again and again how far the task is, because others cannot tell a long
// task from one that will never end. What cannot be told now is told next time.
func (a *Assigned) report(ctx context.Context, after, every time.Duration) {
	for first := time.Now().Add(after); ; {
		next := a.due(first, every)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return
		}
		if next != a.due(first, every) {
			continue // it has been told meanwhile
		}
		a.mu.Lock()
		now := a.now
		a.last = time.Now()
		a.mu.Unlock()
		now.Step = cmp.Or(now.Step, waiting)
		_, _ = a.session.Report(ctx, a.Said, now) // a broken stream shows in the completion
	}
}
