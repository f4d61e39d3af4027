package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
)

// Ended is that a task has come to its end, or is in the hands of people, without
// what the architect waits for, as an error.
type Ended struct {
	TaskID string
	State  wire.TaskState // "" when it cannot be known
	Why    string
}

// Error makes it an error.
func (e *Ended) Error() string {
	if e.State == "" {
		return fmt.Sprintf("task %s: %s", e.TaskID, e.Why)
	}
	return fmt.Sprintf("task %s is %s: %s", e.TaskID, e.State, e.Why)
}

// heed returns what a notice means for a task: an *Ended when it goes on no more. What
// is new about it is told only in words, so the task is looked at; one that
// cannot be looked at has ended, for nothing else is told of such a task.
func (t *SessionTask) heed(ctx context.Context, n update) error {
	if n.cancelled {
		return &Ended{TaskID: n.notice.TaskID, State: wire.TaskCancelled, Why: n.notice.Reason}
	}
	ended, err := t.architect.ended(ctx, n.notice.TaskID, n.notice.Message)
	var refused *Refusal
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &refused):
		return &Ended{TaskID: n.notice.TaskID, Why: n.notice.Message}
	}
	return err
}

// ended looks at a task, and is nil when it goes on.
func (a *Architect) ended(ctx context.Context, task, why string) (*Ended, error) {
	var session struct {
		Tasks []wire.SessionTask `json:"tasks"`
	}
	err := a.conn.askPatiently(ctx, "get-session", wire.GetSession{SessionID: a.me.Session, TaskID: task, Limit: 1}, &session)
	if err != nil {
		return nil, err
	}
	for _, t := range session.Tasks {
		if t.TaskID != task {
			continue
		}
		if why == "" {
			why = fmt.Sprintf("changes are wanted after %d of %d reviews", t.Iteration, t.MaxIterations)
		}
		switch {
		case t.Phase == wire.PhaseHuman:
			return &Ended{TaskID: task, State: wire.TaskNeedsHuman, Why: why}, nil
		case t.Phase == wire.PhaseOver && t.Escalated == wire.EscalateAbort: // it may have been done before
			return &Ended{TaskID: task, State: wire.TaskCancelled, Why: why}, nil
		case t.Phase == wire.PhaseOver, t.State == wire.TaskFailed, t.State == wire.TaskCancelled:
			return &Ended{TaskID: task, State: t.State, Why: why}, nil
		}
	}
	return nil, nil
}

// mayRevise is an *Ended when the session has taken a task out of the architect's
// hands, because it was reviewed as often as it may be. A revision under another id
// would be a new task to it.
func (t *SessionTask) mayRevise(ctx context.Context) error {
	ended, err := t.architect.ended(ctx, t.ID(), "")
	var refused *Refusal
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &refused): // then the session says it when the task is assigned
		return nil
	}
	return err
}

// settled is what became of a task that was reviewed, when it cannot be revised any
// more: it is for the session to say what happens to one that was reviewed too
// often.
func (a *Architect) settled(ctx context.Context, task string, err error) error {
	var refused *Undelivered
	var ended *Ended
	if errors.As(err, &refused) && (refused.Reason() == reasonTaken || refused.Reason() == reasonUsedUp) {
		ended, _ = a.ended(ctx, task, refused.Message) // if it cannot be looked at, the refusal is all there is
	} else {
		errors.As(err, &ended)
	}
	switch {
	case ended == nil:
		return err
	case ended.State == wire.TaskDone:
		return nil
	}
	return ended
}

// Why a task that was reviewed cannot be assigned again, or reviewed.
const (
	reasonTaken  = "task_id_taken"
	reasonUsedUp = "iterations_used_up"
)
