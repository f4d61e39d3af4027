package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskMatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "match ID",
		Short: "Show which agents fit a task",
		Long: `Shows how each agent fits a task, the best first: by its requirements, with the
score and what it is made of, and what those lack that do not fit. Nothing is
changed. What the points are: orchestrator help work.

A task without requirements goes by its role and its capabilities, and has no
scores.`,
		Example:           "  orchestrator task match 91c0\n  orchestrator task match 91c0 --json",
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneTask(false),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.speak(func(ctx context.Context, d *client) error { return a.matchTask(ctx, d, args[0]) })
		},
	}
}

func (a *app) matchTask(ctx context.Context, d *client, word string) error {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return err
	}
	t, _, err := a.getTask(ctx, d, id)
	if err != nil {
		return err
	}
	fits, err := a.fits(ctx, d, &t)
	if err != nil {
		return err
	}
	switch {
	case a.flags.json:
		return a.document(matchDocument{FormatVersion: wire.FormatVersion, TaskID: id, Matches: matchesOf(fits)})
	case a.flags.quiet:
		good := slices.DeleteFunc(fits, func(f fit) bool { return !f.good() })
		return printNames(a, good, func(f *fit) string { return f.agent })
	case len(fits) == 0:
		return a.print("There are no agents. orchestrator help config\n")
	}
	if err := a.print("%s", table(fitRows(fits, requires(&t.Task), a.paint(a.stdout)))); err != nil {
		return err
	}
	a.note("%s", matchVerdict(&t, fits))
	return nil
}

// matchDocument answers programs: with what match-agents would say, were the
// role and the capabilities a part of the requirements.
type matchDocument struct {
	FormatVersion string `json:"format_version"`
	TaskID        string `json:"task_id"`
	wire.Matches
}

func matchesOf(fits []fit) wire.Matches {
	m := wire.Matches{Servers: []wire.Match{}, Total: len(fits)}
	for i := range fits {
		m.Servers = append(m.Servers, fits[i].match())
	}
	return m
}

func (f *fit) match() wire.Match {
	v := wire.Match{ServerID: wire.ServerID(f.agent), ServerName: f.agent, Status: wire.ServerOnline, Reasons: f.lacks}
	if f.verdict != nil {
		v = *f.verdict
	} else if slices.Contains([]string{"offline", "crashed", "starting"}, f.status) {
		v.Status = wire.ServerOffline
	}
	if !f.good() && v.Score >= 0 { // what fits by its requirements may lack the role
		v.Score, v.Reasons = -1, f.lacks
	}
	return v
}

func fitRows(fits []fit, scored bool, p paint) [][]cell {
	second := "FITS"
	if scored {
		second = "SCORE"
	}
	rows := [][]cell{{text("AGENT"), figure(second), text("WHY")}}
	for i := range fits {
		f := &fits[i]
		mark := cell{text: "-", right: true, ink: p.dim}
		switch {
		case f.good() && scored:
			mark = cell{text: fmt.Sprint(f.score), right: true, ink: p.good}
		case f.good():
			mark = cell{text: "yes", right: true, ink: p.good}
		}
		rows = append(rows, []cell{text(plain.OneLine(f.agent)), mark, text(f.words())})
	}
	return rows
}

// matchVerdict returns what follows from how the agents fit, and what to do.
func matchVerdict(t *taskSeen, fits []fit) string {
	label, id := taskLabel(t.ID, t.Name), plain.ID(t.ID)
	some := len(fits) > 0 && fits[0].good()
	switch {
	case t.State != wire.TaskPending:
		return fmt.Sprintf("%s is %s.", label, heldWords(&t.Task))
	case !some:
		return fmt.Sprintf("No agent fits %s.     What it requires: orchestrator task show %s", label, id)
	case isMatched(&t.Task):
		return fmt.Sprintf("%s would go to %s: orchestrator task assign --auto %s", label, plain.OneLine(fits[0].agent), id)
	case asksByName(&t.Task):
		return label + " goes by role and capabilities, without scores: to the first that fits and is idle."
	}
	return fmt.Sprintf("%s asks for nothing, so no agent is matched. Give it to one: orchestrator task assign %s AGENT", label, id)
}
