package why

import (
	"fmt"
	"time"

	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// text returns the explanation for people.
func (c *taskCauses) text(p term.Paint, now time.Time) string {
	t := &c.Task
	head := fmt.Sprintf("%s is %s%s\n", p.Strong(term.TaskLabel(t.ID, t.Name)), p.Task(t.State, task.HeldWords(&c.task.Task)), since(t.Since, now))
	card := term.Card{}
	card.Rows("waits for", storyLines(c.WaitsFor))
	if behind := c.behind(); len(behind) > 0 {
		card.Rows("held up by", storyLines(behind))
	}
	card.Row("asks for", c.Asks)
	c.agentRows(&card)
	if c.Attempts > 1 {
		card.Row("attempts", fmt.Sprint(c.Attempts))
	}
	card.Rows("reviews", c.reviewLines(now))
	addTried(&card, "tried", c.Tried, now)
	card.Rows("next", c.Next)
	return head + term.Table(card.Lines)
}

// behind returns the tasks in HeldUpBy that are not direct dependencies.
func (c *taskCauses) behind() []whyTask {
	var behind []whyTask
	for _, t := range c.HeldUpBy {
		direct := false
		for _, w := range c.WaitsFor {
			direct = direct || w.ID == t.ID
		}
		if !direct {
			behind = append(behind, t)
		}
	}
	return behind
}

// maxTold is how many tasks or agents are listed.
const maxTold = 12

func storyLines(tasks []whyTask) []string {
	var lines []string
	for _, t := range tasks[:min(maxTold, len(tasks))] {
		lines = append(lines, term.TaskLabel(t.ID, t.Name)+" ("+t.far()+")")
	}
	if len(tasks) > maxTold {
		lines = append(lines, fmt.Sprintf("and %d more", len(tasks)-maxTold))
	}
	return lines
}

// far returns the state of a task and its progress.
func (t *whyTask) far() string {
	return task.FarWords(&wire.Task{State: t.State, AssignedTo: t.AssignedTo, Progress: t.Progress})
}

func (c *taskCauses) agentRows(card *term.Card) {
	if c.Asks == "" {
		return // any agent fits, so none is listed
	}
	for _, f := range c.Agents[:min(maxTold, len(c.Agents))] {
		card.Row(term.OneLine(f.Agent), f.Words)
	}
	if len(c.Agents) > maxTold {
		card.Row("…", fmt.Sprintf("and %s more: orchestrator task match %s", term.Count(len(c.Agents)-maxTold, "agent"), term.ID(c.Task.ID)))
	}
}
