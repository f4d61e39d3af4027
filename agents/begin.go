package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
)

// How a task comes to the point at which it can be done:
//
//	assigned     start-task, which a task that waits for others refuses until it does not
//	planning     Plan, submit-plan
//	plan_review  a person approves the plan: running; or sends it back: planning
//	needs_human  a person answers: running
//	running      Do
//
// A task that went by role and capabilities is running as soon as its agent was
// told; of others the agent says itself when it starts.

var errNotYet = errors.New("it is not for the agent to go on")

// begun gets a task to where it can be done; false when there is nothing to do.
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

// patience takes what was refused because things are not so far for a reason to
// wait, or to look again.
func patience(ctx context.Context, news <-chan struct{}, err error) error {
	switch {
	case refusedFor(ReasonWrongState, err): // it has moved since
		return nil
	case errors.Is(err, errNotYet), refusedFor(ReasonBlocked, err):
		return await(ctx, news)
	}
	return err
}

// start says that the work begins. What was delivered to the task stands only in
// the answer to get-task.
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

// noPlan is the plan of those who have none.
const noPlan = "no plan: this agent works as it is told"

// plan says how the task will be done. That it cannot be planned is said in a
// note: the task has not begun, so it cannot fail, and people have to decide.
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

// planned is the plan that the worker makes, or that there is none.
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
