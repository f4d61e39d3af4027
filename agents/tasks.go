package agents

import (
	"context"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// UpdateTask changes the text, documents or priority of a task and returns the updated task.
// Nil fields stay unchanged.
func (c *Conn) UpdateTask(ctx context.Context, change wire.UpdateTask) (wire.Task, error) {
	return c.askTask(ctx, "update-task", change)
}

// AssignTask assigns an unassigned task to an agent.
func (c *Conn) AssignTask(ctx context.Context, assignment wire.AssignTask) (wire.Task, error) {
	return c.askTask(ctx, "assign-task", assignment)
}

// AutoAssign assigns a task to the agent that matches its requirements best. If there is none,
// the error is nil and the status says so.
func (c *Conn) AutoAssign(ctx context.Context, id string) (wire.Assignment, error) {
	var answer wire.Assignment
	err := c.Ask(ctx, "auto-assign", wire.TaskID{TaskID: id}, &answer)
	return answer, err
}

// MatchAgents reports how well each agent matches a task, the best first.
func (c *Conn) MatchAgents(ctx context.Context, id string) ([]wire.Match, error) {
	var answer wire.Matches
	err := c.Ask(ctx, "match-agents", wire.TaskID{TaskID: id}, &answer)
	return answer.Servers, err
}

// PollTasks lists the tasks that the agent was assigned and has not begun.
func (c *Conn) PollTasks(ctx context.Context) ([]wire.Task, error) {
	return c.askTasks(ctx, "poll-tasks", nil)
}

// CheckTasks is PollTasks for another session: an agent's name, its server id or the id of its
// run. "" means the agent itself.
func (c *Conn) CheckTasks(ctx context.Context, sessionID string) ([]wire.Task, error) {
	return c.askTasks(ctx, "check-tasks", wire.CheckTasks{SessionID: sessionID})
}

// AddDependency makes a task depend on another one. The type defaults to wire.DependsBlocks.
func (c *Conn) AddDependency(ctx context.Context, id string, on hub.Dependency) (wire.Link, error) {
	return c.askLink(ctx, "add-dependency", wire.AddDependency{TaskID: id, Dependency: on})
}

// RemoveDependency removes and returns a dependency, given its id or that of the task depended
// on.
func (c *Conn) RemoveDependency(ctx context.Context, id, dependency string) (wire.Link, error) {
	return c.askLink(ctx, "remove-dependency", wire.RemoveDependency{TaskID: id, DependencyID: dependency})
}

// AddNote adds a note to a task.
func (c *Conn) AddNote(ctx context.Context, note wire.AddNote) (wire.Note, error) {
	var answer wire.NoteReply
	err := c.Ask(ctx, "add-note", note, &answer)
	return answer.Note, err
}

// ListNotes returns the notes of a task, oldest first.
func (c *Conn) ListNotes(ctx context.Context, id string) ([]wire.Note, error) {
	var answer wire.NoteList
	err := c.Ask(ctx, "list-notes", wire.TaskID{TaskID: id}, &answer)
	return answer.Notes, err
}

// askLink asks for an operation that answers with a dependency.
func (c *Conn) askLink(ctx context.Context, operation string, payload any) (wire.Link, error) {
	var answer wire.LinkReply
	err := c.Ask(ctx, operation, payload, &answer)
	return answer.Dependency, err
}

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

// SendMessage sends mail from the agent's actor and returns the stored message. Mail with a key
// is stored once, however often it is sent.
func (c *Conn) SendMessage(ctx context.Context, mail wire.SendMessage) (wire.Sent, error) {
	var answer wire.Sent
	err := c.Ask(ctx, "send-message", mail, &answer)
	return answer, err
}

// PollMessages lists the agent's mail, oldest first: the unacknowledged messages, or all after
// a given number. It changes nothing; only AckMessages does.
func (c *Conn) PollMessages(ctx context.Context, query wire.PollMessages) (wire.MailList, error) {
	var answer wire.MailList
	err := c.Ask(ctx, "poll-messages", query, &answer)
	return answer, err
}

// AckMessages acknowledges all mail up to a number.
func (c *Conn) AckMessages(ctx context.Context, seq int64) (wire.Acked, error) {
	var answer wire.Acked
	err := c.Ask(ctx, "ack-messages", wire.AckMessages{Seq: seq}, &answer)
	return answer, err
}

// Heartbeat reports that the agent's actor is present.
func (c *Conn) Heartbeat(ctx context.Context) (wire.Beat, error) {
	var answer wire.Beat
	err := c.Ask(ctx, "heartbeat", nil, &answer)
	return answer, err
}

// UpdateCapabilities replaces the agent's capabilities. A Capacity of 0 in them means that the
// agent is assigned nothing.
func (c *Conn) UpdateCapabilities(ctx context.Context, now wire.UpdateCapabilities) (wire.Server, error) {
	var answer wire.Server
	err := c.Ask(ctx, "update-capabilities", now, &answer)
	return *tidyServer(&answer), err
}

// Servers lists all agents with what they can do, and whether they are online.
func (c *Conn) Servers(ctx context.Context) ([]wire.Server, error) {
	var answer wire.ServerList
	err := c.Ask(ctx, "query-servers", nil, &answer)
	for i := range answer.Servers {
		tidyServer(&answer.Servers[i])
	}
	return answer.Servers, err
}

// tidyServer sets capabilities that are the JSON value null to nil.
func tidyServer(server *wire.Server) *wire.Server {
	server.Capabilities = some(server.Capabilities)
	return server
}
