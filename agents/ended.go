package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// Ended is the error of a task that has ended, or waits for a person, without the result that
// the architect waits for.
type Ended struct {
	TaskID string
	State  wire.TaskState // "" if unknown
	Why    string
}

// Error returns the task, its state and the reason.
func (e *Ended) Error() string {
	if e.State == "" {
		return fmt.Sprintf("task %s: %s", e.TaskID, e.Why)
	}
	return fmt.Sprintf("task %s is %s: %s", e.TaskID, e.State, e.Why)
}

// heed returns an *Ended if a notice means that the task does not go on. Notices describe
// changes only in words, so heed asks for the state of the task. A task that the orchestrator
// does not show counts as ended.
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

// ended asks for the state of a task. It returns nil if the task goes on.
func (a *Architect) ended(ctx context.Context, task, why string) (*Ended, error) {
	var document struct {
		Tasks []wire.SessionTask `json:"tasks"`
	}
	err := a.conn.askPatiently(ctx, "get-session", wire.GetSession{SessionID: a.me.Session, TaskID: task, Limit: 1}, &document)
	if err != nil {
		return nil, err
	}
	for _, t := range document.Tasks {
		if t.TaskID != task {
			continue
		}
		if why == "" {
			why = fmt.Sprintf("changes are wanted after %d of %d reviews", t.Iteration, t.MaxIterations)
		}
		switch {
		case t.Phase == wire.PhaseHuman:
			return &Ended{TaskID: task, State: wire.TaskNeedsHuman, Why: why}, nil
		case t.Phase == wire.PhaseOver && t.Escalated == session.EscalateAbort: // it may have been done before
			return &Ended{TaskID: task, State: wire.TaskCancelled, Why: why}, nil
		case t.Phase == wire.PhaseOver, t.State == wire.TaskFailed, t.State == wire.TaskCancelled:
			return &Ended{TaskID: task, State: t.State, Why: why}, nil
		}
	}
	return nil, nil
}

// mayRevise returns an *Ended if the session has ended the task or passed it to a person,
// because its reviews are used up. A revision under another id would count as a new task.
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

// settled returns the final error of a reviewed task that cannot be revised. It is nil if the
// session has marked the task as done, as its on_max setting may require.
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

// Reasons why a reviewed task cannot be assigned or reviewed again.
const (
	reasonTaken  = "task_id_taken"
	reasonUsedUp = "iterations_used_up"
)
