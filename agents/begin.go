package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
)

// States of a task before it can be done, and what moves it on:
//
//	assigned     start-task; refused as long as the task waits for others
//	planning     Plan, submit-plan
//	plan_review  a person approves the plan: running; or sends it back: planning
//	needs_human  a person answers: running
//	running      Do
//
// A task that was matched by role and capabilities is running once its agent is notified. The
// agent itself starts any other task.

var errNotYet = errors.New("it is not for the agent to go on")

// begun brings a task to the state running. It returns false if there is nothing to do.
func (w *work) begun(ctx context.Context, j *Job) (bool, error) {
	for {
		news := j.news()
		task, err := j.look(ctx)
		if err != nil {
			return false, err
		}
		j.Task = task
		switch task.State {
		case wire.TaskPending, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled:
			return false, nil
		case wire.TaskAssigned:
			if err = j.start(ctx); err == nil {
				return true, nil
			}
		case wire.TaskPlanning:
			err = w.plan(ctx, j)
		case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
			err = errNotYet
		default:
			return true, nil
		}
		if err := patience(ctx, news, err); err != nil {
			return false, err
		}
	}
}

// patience handles a request that was refused because of the task's state: it waits for news,
// or returns nil so that the caller looks at the task again.
func patience(ctx context.Context, news <-chan struct{}, err error) error {
	switch {
	case refusedFor(ReasonWrongState, err): // it has moved since
		return nil
	case errors.Is(err, errNotYet), refusedFor(ReasonBlocked, err):
		return await(ctx, news)
	}
	return err
}

// start reports the start of the work. It keeps ResolvedInputs, because only the answer to
// get-task contains them.
func (j *Job) start(ctx context.Context) error {
	var answer wire.TaskReply
	err := j.conn.askPatiently(ctx, "start-task", wire.TaskID{TaskID: j.id}, &answer)
	if err == nil {
		inputs := j.Task.ResolvedInputs
		j.Task = *tidy(&answer.Task)
		j.Task.ResolvedInputs = inputs
	}
	return err
}

// noPlan is the plan of a worker without a Plan function.
const noPlan = "no plan: this agent works as it is told"

// plan submits a plan for the task. If planning fails, it adds a note for people: a task that
// has not begun cannot fail.
func (w *work) plan(ctx context.Context, j *Job) error {
	text, err := w.planned(ctx, j)
	if err == nil {
		err = w.conn.askPatiently(ctx, "submit-plan", wire.SubmitPlan{TaskID: j.id, Plan: text}, nil)
	}
	if err == nil || gaveUp(ctx, err) || ctx.Err() != nil || refusedFor(ReasonWrongState, err) {
		return err
	}
	err = fmt.Errorf("it cannot be planned: %w", err)
	return errors.Join(err, w.conn.askPatiently(ctx, "add-note", wire.AddNote{TaskID: j.id, Content: err.Error()}, nil))
}

// planned returns the plan that the worker makes, or noPlan.
func (w *work) planned(ctx context.Context, j *Job) (wire.Raw, error) {
	if w.worker.Plan == nil {
		return value(noPlan)
	}
	plan, err := w.call(ctx, j, w.worker.Plan)
	if err != nil {
		return nil, err
	}
	text, err := value(plan)
	if text == nil && err == nil {
		return value(noPlan)
	}
	return text, err
}
