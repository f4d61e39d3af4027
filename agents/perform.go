package agents

import (
	"context"
	"errors"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// perform does a task from its assignment to its report.
func (w *work) perform(ctx context.Context, j *Job) error {
	begun, err := w.begun(ctx, j)
	switch {
	case errors.Is(context.Cause(ctx), ErrCancelled):
		return nil // it came to its end before it began
	case gaveUp(ctx, err):
		return errUnfinished
	case err != nil || !begun:
		return err
	}
	result, err := w.call(ctx, j, w.worker.Do)
	switch {
	case errors.Is(context.Cause(ctx), ErrCancelled):
		return nil
	case err == nil:
		return w.complete(ctx, j.id, result)
	case gaveUp(ctx, err):
		return errUnfinished
	}
	return w.fail(ctx, j.id, err.Error())
}

// gaveUp reports whether err only means that the agent has to shut down. A call may fail at the
// end of the stream before the shutdown notice is processed.
func gaveUp(ctx context.Context, err error) bool {
	if errors.Is(err, errUnasked) || errors.Is(err, errUnanswered) {
		return true
	}
	return err != nil && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// call calls a function of the worker. A panic fails the task, not the agent. Its stack is
// reported separately, in an error event.
func (w *work) call(ctx context.Context, j *Job, do func(context.Context, *Job) (any, error)) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = w.panicked(j.id, reason)
		}
	}()
	return do(ctx, j)
}

// panicked reports where a function of the worker panicked, with the task if there is one. It
// returns the error to report.
func (w *work) panicked(task string, reason any) error {
	return w.conn.panicked("the handler", task, reason)
}

// complete reports a result. If the orchestrator refuses it, the task fails; otherwise it would
// run for ever.
func (w *work) complete(ctx context.Context, id string, result any) error {
	text, err := value(result)
	if err != nil {
		return w.fail(ctx, id, "its result cannot be told: "+err.Error())
	}
	err = w.conn.settle(ctx, "complete-task", wire.CompleteTask{TaskID: id, Result: hub.ResultOf(text)})
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == InvalidRequest && refused.Reason() == "":
		return w.fail(ctx, id, "its result was refused: "+refused.Message)
	case errors.Is(err, errUnsaid):
		return w.fail(ctx, id, "its result cannot be told: "+err.Error())
	}
	return err
}

// fail reports that a task failed. The reason is never empty.
func (w *work) fail(ctx context.Context, id, why string) error {
	if strings.TrimSpace(why) == "" {
		why = "it failed without a word"
	}
	return w.conn.settle(ctx, "fail-task", wire.FailTask{TaskID: id, Error: why})
}
