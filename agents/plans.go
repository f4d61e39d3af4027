package agents

import (
	"context"

	"orchestrator/wire"
)

// RequestHelp reports that the agent needs a person to go on with a task, and returns without
// waiting. TaskUpdated announces the answer; Job.Help waits for it. The context about may be
// any value, or nil.
func (c *Conn) RequestHelp(ctx context.Context, id, question string, about any) (wire.Task, error) {
	text, err := value(about)
	if err != nil {
		return wire.Task{}, err
	}
	return c.askTask(ctx, "request-help", wire.RequestHelp{TaskID: id, Question: question, Context: text})
}

// SubmitPlan submits the agent's plan for a task: an object or a text.
func (c *Conn) SubmitPlan(ctx context.Context, id string, plan any) (wire.Task, error) {
	text, err := value(plan)
	if err != nil {
		return wire.Task{}, err
	}
	return c.askTask(ctx, "submit-plan", wire.SubmitPlan{TaskID: id, Plan: text})
}

// ApprovePlan approves the plan of another agent.
func (c *Conn) ApprovePlan(ctx context.Context, id string) (wire.Task, error) {
	return c.askTask(ctx, "approve-plan", wire.TaskID{TaskID: id})
}

// RevisePlan sends the plan of another agent back, with feedback.
func (c *Conn) RevisePlan(ctx context.Context, id, feedback string) (wire.Task, error) {
	return c.askTask(ctx, "revise-plan", wire.RevisePlan{TaskID: id, Feedback: feedback})
}
