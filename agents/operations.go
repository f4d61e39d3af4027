package agents

import (
	"context"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// QueryAgents lists the agents of the team that match the query.
func (c *Conn) QueryAgents(ctx context.Context, query wire.QueryAgents) ([]wire.Agent, error) {
	var answer wire.AgentList
	err := c.Ask(ctx, "query-agents", query, &answer)
	return answer.Agents, err
}

// QueryTasks lists matching tasks, oldest first, among those that the agent submitted or is
// assigned to.
func (c *Conn) QueryTasks(ctx context.Context, query wire.QueryTasks) ([]wire.Task, error) {
	return c.askTasks(ctx, "query-tasks", query)
}

// SubmitTask submits a task and returns it as stored.
func (c *Conn) SubmitTask(ctx context.Context, task wire.SubmitTask) (wire.Task, error) {
	return c.askTask(ctx, "submit-task", task)
}

// GetTask returns everything about one of the agent's own tasks.
func (c *Conn) GetTask(ctx context.Context, id string) (wire.Task, error) {
	return c.askTask(ctx, "get-task", wire.TaskID{TaskID: id})
}

// AskUser asks a person and waits for the answer, which may take as long as the
// question allows.
func (c *Conn) AskUser(ctx context.Context, question wire.AskUser) (wire.UserAnswer, error) {
	var answer wire.UserAnswer
	err := c.Ask(ctx, "ask-user", question, &answer)
	return answer, err
}

// StartTask starts a task that is assigned to the agent. It also takes an unassigned task that
// the agent submitted.
func (c *Conn) StartTask(ctx context.Context, id string) (wire.Task, error) {
	return c.askTask(ctx, "start-task", wire.TaskID{TaskID: id})
}

// CompleteTask reports that a task is done. The result is an object or a text, or nil for
// success without a result.
func (c *Conn) CompleteTask(ctx context.Context, id string, result any) (wire.Task, error) {
	text, err := value(result)
	if err != nil {
		return wire.Task{}, err
	}
	return c.askTask(ctx, "complete-task", wire.CompleteTask{TaskID: id, Result: hub.ResultOf(text)})
}

// FailTask says that a task cannot be done, and why.
func (c *Conn) FailTask(ctx context.Context, id, why string) (wire.Task, error) {
	return c.askTask(ctx, "fail-task", wire.FailTask{TaskID: id, Error: why})
}

// CancelTask cancels a task that the agent submitted.
func (c *Conn) CancelTask(ctx context.Context, id, reason string) (wire.Task, error) {
	return c.askTask(ctx, "cancel-task", wire.CancelTask{TaskID: id, Reason: reason})
}

// askTask asks for an operation that answers with a task.
func (c *Conn) askTask(ctx context.Context, operation string, payload any) (wire.Task, error) {
	var answer wire.TaskReply
	err := c.Ask(ctx, operation, payload, &answer)
	return *tidy(&answer.Task), err
}

// askTasks asks for an operation that answers with a list of tasks.
func (c *Conn) askTasks(ctx context.Context, operation string, payload any) ([]wire.Task, error) {
	var answer wire.TaskList
	err := c.Ask(ctx, operation, payload, &answer)
	for i := range answer.Tasks {
		tidy(&answer.Tasks[i])
	}
	return answer.Tasks, err
}

// tidy sets results and inputs that are the JSON value null to nil.
func tidy(task *wire.Task) *wire.Task {
	task.Result = some(task.Result)
	for i := range task.ResolvedInputs {
		task.ResolvedInputs[i].Data = some(task.ResolvedInputs[i].Data)
	}
	return task
}

// some returns text, or nil if text is null.
func some(text wire.Raw) wire.Raw {
	if string(text) == "null" {
		return nil
	}
	return text
}
