package why

import (
	"context"
	"fmt"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// partsOf adds the open tasks that the agent of a task has submitted while it worked on it, and their open questions.
func partsOf(ctx context.Context, a *cli.App, d *client.Client, c *taskCauses, all []task.Seen) error {
	if c.task.State.Final() {
		return nil
	}
	parts := make(map[string]bool)
	for i := range all {
		if t := &all[i]; t.Details != nil && t.ParentTaskID == c.Task.ID && !t.State.Final() {
			c.Parts = append(c.Parts, inStory(t))
			parts[t.ID] = true
		}
	}
	if len(parts) == 0 {
		return nil
	}
	var err error
	c.ofParts, err = questions(ctx, a, d, func(q *wire.Question) bool { return parts[q.Task] })
	for i := range c.ofParts {
		c.Questions = append(c.Questions, c.ofParts[i].ID)
	}
	return err
}

// nextOfParts returns the obstacles of the open parts of a task: an agent that does not run, or a
// question.
func (c *taskCauses) nextOfParts() []string {
	var lines []string
	for i := range c.Parts[:min(maxTold, len(c.Parts))] {
		part := &c.Parts[i]
		for k := range c.status.Agents {
			if v := &c.status.Agents[k]; v.Name == part.AssignedTo && v.State != control.StateRunning {
				name := term.OneLine(v.Name)
				lines = append(lines, fmt.Sprintf("Its part %s is with %s, which is %s. Why: orchestrator why %s", term.ID(part.ID), name, standing(v), name))
			}
		}
	}
	lines = append(lines, questionLines(c.ofParts, func(q *wire.Question) string { return "Its part " + term.ID(q.Task) })...)
	if len(lines) == 0 && len(c.Parts) > 0 {
		id := term.ID(c.Parts[0].ID)
		lines = []string{"Why its part " + id + " is not done: orchestrator why " + id}
	}
	return lines
}
