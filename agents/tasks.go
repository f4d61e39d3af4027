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
