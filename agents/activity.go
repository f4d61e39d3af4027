package agents

import (
	"context"

	"orchestrator/wire"
	"orchestrator/wire/activity"
)

// A reporter is a sender with the questions and reports of coding agents.
type reporter struct{ sender }

// CurrentTask returns the task that the agent works on: of several, the first started one, or else
// the first assigned one. Without a task, the error is a *Refusal with the code NotFound.
func (r *reporter) CurrentTask(ctx context.Context) (wire.Task, error) {
	return r.askTask(ctx, "current-task", nil)
}

// ReportProgress reports the current activity of the agent for a task, with or without the done
// fraction, and returns the task. Progress reports a fraction without waiting for an answer.
func (r *reporter) ReportProgress(ctx context.Context, progress wire.ReportProgress) (wire.Task, error) {
	return r.askTask(ctx, "report-progress", progress)
}

// ReturnTask gives a task back, so that it waits for an agent again. No attempt is counted. With
// After, an ISO 8601 time, no agent is given it before then.
func (r *reporter) ReturnTask(ctx context.Context, task wire.ReturnTask) (wire.Task, error) {
	return r.askTask(ctx, "return-task", task)
}

// AskPermission asks a person whether a tool may be used, and waits for the answer. Its Choice is
// the id of one of the choices, and its Message is the remark of the person.
//
// With a Wait, and without an answer by then, the answer has only the QuestionID, and the choice
// comes as mail.
//
// A choice of the kind activity.AllowSession or activity.AllowAlways is remembered: the same tool
// with the same input is then answered at once. If ctx ends first, the question is withdrawn,
// unless the agent has to shut down: then the next run that asks the same takes it up. The
// orchestrator withdraws it when its task ends.
func (r *reporter) AskPermission(ctx context.Context, permission wire.AskPermission) (wire.UserAnswer, error) {
	return askFor[wire.UserAnswer](ctx, &r.sender, "ask-permission", permission)
}

// WithdrawQuestion withdraws a question of the agent that no longer needs an answer. The request
// that asked it is refused.
func (r *reporter) WithdrawQuestion(ctx context.Context, question wire.WithdrawQuestion) (activity.Withdrawn, error) {
	return askFor[activity.Withdrawn](ctx, &r.sender, "withdraw-question", question)
}

// ReportUsage reports the usage of a turn, or of one request to a model.
func (r *reporter) ReportUsage(used activity.Usage) error { return r.Tell("usage", used) }

// ReportConversation reports the conversation of the agent's program. The next run of the agent
// has its ID in $ORC_CONVERSATION, to resume it.
func (r *reporter) ReportConversation(now activity.Conversation) error { return r.Tell("session", now) }

// ReportTurn shows people the current activity of the agent. The silence of an agent that waits for
// a person does not count.
func (r *reporter) ReportTurn(now activity.Turn) error { return r.Tell("turn", now) }

// ReportLimit reports that the agent's vendor limits the use. The agent gets no task until then;
// ReturnTask gives back its present task.
func (r *reporter) ReportLimit(limit activity.Limited) error { return r.Tell("limited", limit) }

// ReportReceipt reports the state of a message of the bus after it was written to the agent.
func (r *reporter) ReportReceipt(now activity.Receipt) error { return r.Tell("receipt", now) }
