package why

import (
	"context"
	"fmt"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// questions returns the open questions that fit.
func questions(ctx context.Context, a *cli.App, d *client.Client, fits func(q *wire.Question) bool) ([]wire.Question, error) {
	text, err := a.Ask(ctx, d, "list-questions", struct{}{})
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[wire.QuestionList](text)
	var found []wire.Question
	for i := range list.Questions {
		if q := &list.Questions[i]; fits(q) {
			found = append(found, *q)
		}
	}
	return found, err
}

// questionLines returns questions, each with who asks and with the command that answers it.
func questionLines(asked []wire.Question, who func(q *wire.Question) string) []string {
	var lines []string
	for i := range asked {
		q := &asked[i]
		answer, others := "VALUE", ""
		for k, o := range q.Options {
			switch word := term.Word(o.Value); k {
			case 0:
				answer = word
			case 1:
				others = "     or: " + word
			default:
				others += ", " + word
			}
		}
		id := wire.Visible(q.ID)
		lines = append(lines, fmt.Sprintf("%s asks you (%s): %s", who(q), id, term.Clip(term.OneLine(q.Question), 200)),
			"Answer it: orchestrator inbox answer "+id+" "+answer+others)
	}
	return lines
}

// itself returns the pronoun for the subject of the answer.
func itself(*wire.Question) string { return "It" }

// limitLines returns until when an agent is limited, and why, with the command that lifts the limit.
func limitLines(v *control.AgentView, now time.Time) []string {
	if v.Activity == nil || v.Activity.LimitedUntil == "" {
		return nil
	}
	return []string{
		fmt.Sprintf("%s is limited and gets no tasks before %s%s.", term.OneLine(v.Name),
			term.Clock(v.Activity.LimitedUntil, now, time.TimeOnly), term.Clip(term.Colon(v.Activity.LimitedBy), 200)),
		"A restart lifts the limit: orchestrator agent restart " + wire.Visible(v.Name),
	}
}

// comesBack returns when the agent that gets a pending task again gets it, or nil without such an
// agent.
func (c *taskCauses) comesBack() []string {
	d := c.task.Task.Details
	if d == nil || d.Addressee == "" {
		return nil
	}
	name := term.OneLine(d.Addressee)
	for i := range c.status.Agents {
		v := &c.status.Agents[i]
		switch lines := limitLines(v, time.Now()); {
		case v.Name != d.Addressee:
		case lines != nil:
			return append([]string{"It goes to " + name + " again when its limit ends."}, lines...)
		default:
			return []string{"It goes to " + name + " again when that agent starts: orchestrator agent start " + name}
		}
	}
	return []string{"It goes to " + name + " again when that agent is in the team."}
}

// holdersOf adds the obstacles of the agent that has the task.
func holdersOf(ctx context.Context, a *cli.App, d *client.Client, c *taskCauses) error {
	t := &c.task.Task
	if t.AssignedTo == "" || t.State.Final() {
		return nil
	}
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; v.Name == t.AssignedTo && v.Activity != nil {
			c.LimitedUntil = v.Activity.LimitedUntil
		}
	}
	var err error
	c.asked, err = questions(ctx, a, d, func(q *wire.Question) bool {
		helps := t.Details != nil && t.Help != nil && q.ID == t.Help.QuestionID
		return helps || q.Blocking && q.Agent == t.AssignedTo && (q.Task == "" || q.Task == t.ID)
	})
	for i := range c.asked {
		c.Questions = append(c.Questions, c.asked[i].ID)
	}
	return err
}

// heldUp returns the reason for the wait of the agent that has the task, or nil.
func (c *taskCauses) heldUp() []string {
	var lines []string
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; v.Name == c.task.AssignedTo {
			lines = append(limitLines(v, time.Now()), questionLines(c.asked, itself)...)
		}
	}
	if len(lines) > 0 {
		lines = append([]string{term.OneLine(c.task.AssignedTo) + " has it but is held up."}, lines...)
	}
	return lines
}
