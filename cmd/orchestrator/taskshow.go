package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a task in full",
		Long: `Shows everything about a task: who made it and when, who has it, what it
requires of its agent, what it needs and gets of other tasks, what is to be done,
its plan, its question, and what came of it; of one that was handed on also who
asked which, the trace that it is in, and the artifacts.`,
		Example:           "  orchestrator task show 91c0\n  orchestrator task show 91c0 --json",
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.speak(func(ctx context.Context, d *client) error { return a.showTask(ctx, d, args[0]) })
		},
	}
}

func (a *app) showTask(ctx context.Context, d *client, word string) error {
	ids, err := a.taskIDs(ctx, d, []string{word})
	if err != nil {
		return err
	}
	t, text, err := a.getTask(ctx, d, ids[0])
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.answer(text)
	case a.flags.quiet:
		return a.print("%s\n", wire.Visible(t.ID))
	}
	return a.print("%s", taskCard(&t.Task, a.surroundings(ctx, d, &t.Task), a.paint(a.stdout), time.Now()))
}

// taskCard is a task in full.
func taskCard(t *wire.Task, s *taskContext, p paint, now time.Time) string {
	at := func(stamp string) string { return plain.Clock(stamp, now, time.TimeOnly) }
	c := card{}
	c.row("type", t.Type)
	c.row("created", at(t.CreatedAt)+" by "+strings.TrimPrefix(t.SubmittedBy, "agent:"))
	c.details(t, s)
	c.row("requires", requirements(t))
	c.row("priority", strings.Trim(string(t.Priority), `"`))
	if t.AssignedTo != "" {
		assigned := strings.TrimSpace(at(t.AssignedAt) + " to " + t.AssignedTo)
		if t.Attempts > 1 {
			assigned += fmt.Sprintf(", attempt %d", t.Attempts)
		}
		c.row("assigned", assigned)
	}
	c.row("started", at(t.StartedAt))
	if t.EndedAt != "" {
		c.row(string(t.State), at(t.EndedAt)+tookWords(" after ", t))
	}
	if !t.State.Final() {
		c.row("progress", strings.TrimSpace(plain.Percent(t.Progress)+"  "+t.Message))
	}
	c.rows("needs", s.needs)
	c.inputs(t)
	c.text("spec", t.Description)
	c.text("payload", string(t.Payload))
	c.rounds(t, s)
	c.text("result", resultText(t.Result))
	c.text("error", t.Error)
	c.text("reason", t.Reason)
	if s.response != nil {
		c.artifacts(s.response)
	}
	head := fmt.Sprintf("%s  %s  %s\n", p.strong(wire.Visible(t.ID)), plain.OneLine(t.Name), p.task(t.State, wire.Visible(string(t.State))))
	return head + table(c.lines)
}

func requirements(t *wire.Task) string {
	var words []string
	if t.RequiredRole != "" {
		words = append(words, "role "+t.RequiredRole)
	}
	if len(t.RequiredCapabilities) > 0 {
		words = append(words, "capabilities "+strings.Join(t.RequiredCapabilities, ", "))
	}
	if t.Details != nil {
		if wants := wantWords(t.Details.Requirements); wants != "" {
			words = append(words, wants)
		}
	}
	switch {
	case handedOn(t): // what its type says, or nothing, of the one that it names
		return ""
	case len(words) > 0:
		return strings.Join(words, ", ")
	case t.State == wire.TaskPending:
		return "nothing: an agent has to take it"
	}
	return "nothing"
}

// card is what is known of one thing: a label and what it is, in lines.
type card struct{ lines [][]cell }

// longest is how much of one text a card shows.
const longest = 4000

func (c *card) row(label, value string) {
	if value != "" {
		c.rows(label, []string{value})
	}
}

// rows has the label before the first line alone.
func (c *card) rows(label string, values []string) {
	for i, value := range values {
		if i > 0 {
			label = ""
		}
		c.lines = append(c.lines, []cell{text("  " + label), text(wire.Visible(value))})
	}
}

// text shows text of any length in its own lines.
func (c *card) text(label, value string) {
	value = strings.TrimRight(value, "\n")
	if value == "" {
		return
	}
	over := len(value) - longest
	if over > 0 {
		value = strings.ToValidUTF8(value[:longest], "")
	}
	c.rows(label, strings.Split(value, "\n"))
	if over > 0 {
		c.rows("", []string{fmt.Sprintf("… %s more, all of it: --json", plain.Bytes(int64(over)))})
	}
}
