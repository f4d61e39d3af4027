package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func taskMatchCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "match ID",
		Short: "Show which agents fit a task",
		Long: `Shows how well each agent fits a task, the best first. For a task with requirements it
shows the score and its parts, and what an agent lacks. The task is not changed. See
orchestrator help work for the scores.

A task without requirements is assigned by role and capabilities and has no scores.`,
		Example:           "  orchestrator task match 91c0\n  orchestrator task match 91c0 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return matchTask(ctx, a, d, args[0]) })
		},
	}
}

func matchTask(ctx context.Context, a *cli.App, d *client.Client, word string) error {
	id, err := NewFinder(a, d).ID(ctx, word)
	if err != nil {
		return err
	}
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	fits, err := Fits(ctx, a, d, &t)
	if err != nil {
		return err
	}
	switch {
	case a.Flags.JSON:
		return a.Document(matchDocument{FormatVersion: wire.FormatVersion, TaskID: id, Matches: matchesOf(fits)})
	case a.Flags.Quiet:
		good := slices.DeleteFunc(fits, func(f Fit) bool { return !f.Good() })
		return cli.PrintNames(a, good, func(f *Fit) string { return f.Agent })
	case len(fits) == 0:
		return a.Print("There are no agents. orchestrator help config\n")
	}
	if err := a.Print("%s", term.Table(fitRows(fits, Requires(&t.Task), a.Paint(a.Stdout)))); err != nil {
		return err
	}
	a.Note("%s", matchVerdict(&t, fits))
	return nil
}

// matchDocument is the JSON answer of task match. It is like that of match-agents, but
// takes the role and the capabilities into account.
type matchDocument struct {
	FormatVersion string `json:"format_version"`
	TaskID        string `json:"task_id"`
	wire.Matches
}

func matchesOf(fits []Fit) wire.Matches {
	m := wire.Matches{Servers: []wire.Match{}, Total: len(fits)}
	for i := range fits {
		m.Servers = append(m.Servers, fits[i].match())
	}
	return m
}

func (f *Fit) match() wire.Match {
	v := wire.Match{ServerID: wire.ServerID(f.Agent), ServerName: f.Agent, Status: wire.ServerOnline, Reasons: f.Lacks}
	if f.verdict != nil {
		v = *f.verdict
	} else if slices.Contains([]string{"offline", "crashed", "starting"}, f.Status) {
		v.Status = wire.ServerOffline
	}
	if !f.Good() && v.Score >= 0 { // the agent may lack the role
		v.Score, v.Reasons = -1, f.Lacks
	}
	return v
}

func fitRows(fits []Fit, scored bool, p term.Paint) [][]term.Cell {
	second := "FITS"
	if scored {
		second = "SCORE"
	}
	rows := [][]term.Cell{{term.Text("AGENT"), term.Figure(second), term.Text("WHY")}}
	for i := range fits {
		f := &fits[i]
		mark := term.Cell{Text: "-", Right: true, Ink: p.Dim}
		switch {
		case f.Good() && scored:
			mark = term.Cell{Text: fmt.Sprint(f.Score), Right: true, Ink: p.Good}
		case f.Good():
			mark = term.Cell{Text: "yes", Right: true, Ink: p.Good}
		}
		rows = append(rows, []term.Cell{term.Text(term.OneLine(f.Agent)), mark, term.Text(f.Words())})
	}
	return rows
}

// matchVerdict returns the conclusion from the fits, with the next command.
func matchVerdict(t *Seen, fits []Fit) string {
	label, id := term.TaskLabel(t.ID, t.Name), term.ID(t.ID)
	some := len(fits) > 0 && fits[0].Good()
	switch {
	case t.State != wire.TaskPending:
		return fmt.Sprintf("%s is %s.", label, HeldWords(&t.Task))
	case !some:
		return fmt.Sprintf("No agent fits %s.     What it requires: orchestrator task show %s", label, id)
	case IsMatched(&t.Task):
		return fmt.Sprintf("%s would go to %s: orchestrator task assign --auto %s", label, term.OneLine(fits[0].Agent), id)
	case AsksByName(&t.Task):
		return label + " goes by role and capabilities, without scores: to the first that fits and is idle."
	}
	return fmt.Sprintf("%s asks for nothing, so no agent is matched. Give it to one: orchestrator task assign %s AGENT", label, id)
}
