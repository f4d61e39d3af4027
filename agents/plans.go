package agents

import (
	"context"

	"orchestrator/wire"
)

// RequestHelp says that the agent cannot go on with a task without a person, and
// does not wait for one: TaskUpdated tells of the answer, and Job.Help waits for
// it. What goes with the question may be anything, or nil.
func (c *Conn) RequestHelp(ctx context.Context, id, question string, about any) (wire.Task, error) {
	text, err := value(about)
	if err != nil {
		return wire.Task{}, err
	}
	return c.askTask(ctx, "request-help", wire.RequestHelp{TaskID: id, Question: question, Context: text})
}

// SubmitPlan says how the agent will go about a task. The plan is an object or a
// text.
func (c *Conn) SubmitPlan(ctx context.Context, id string, plan any) (wire.Task, error) {
	text, err := value(plan)
	if err != nil {
		return wire.Task{}, err
	}
	return c.askTask(ctx, "submit-plan", wire.SubmitPlan{TaskID: id, Plan: text})
}

// ApprovePlan lets another agent go about its task as it planned.
func (c *Conn) ApprovePlan(ctx context.Context, id string) (wire.Task, error) {
	return c.askTask(ctx, "approve-plan", wire.TaskID{TaskID: id})
}

// RevisePlan sends a plan of another agent back, with what is wrong with it.
func (c *Conn) RevisePlan(ctx context.Context, id, feedback string) (wire.Task, error) {
	return c.askTask(ctx, "revise-plan", wire.RevisePlan{TaskID: id, Feedback: feedback})
}
