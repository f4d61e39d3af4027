package task

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
)

// A bill is the usage of turns of agents, in groups.
type bill struct {
	FormatVersion string  `json:"format_version"`
	By            string  `json:"by"`
	Costs         []spent `json:"costs"`
}

// spent is the usage of one group.
type spent struct {
	Name     string  `json:"name"` // of an agent or a model, the id of a task, or a day
	Turns    int     `json:"turns"`
	Input    int64   `json:"input"`
	Output   int64   `json:"output"`
	Cost     float64 `json:"cost"`
	Currency string  `json:"currency,omitzero"`
}

// CostCommand returns the cost command.
func CostCommand(a *cli.App) *cobra.Command {
	by := cli.Choice{Value: "agent", Of: []string{"agent", "task", "model", "day"}}
	verb := &cobra.Command{
		Use:   "cost",
		Short: "Show the tokens and the cost of agents",
		Long: `Shows the tokens and the cost that agents have reported, for each agent, task, model or day
(UTC). If a program reports no cost, the prices block of the file applies: orchestrator help
verified.`,
		Example:           "  orchestrator cost\n  orchestrator cost --by task\n  orchestrator cost --by day --json",
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return cost(ctx, a, d, by.Value) })
		},
	}
	verb.Flags().Var(&by, "by", "one row for each agent, task, model or day")
	_ = verb.RegisterFlagCompletionFunc("by", by.Complete)
	return verb
}

func cost(ctx context.Context, a *cli.App, d *client.Client, by string) error {
	body, err := d.Get(ctx, "events", url.Values{"type": {events.AgentUsage}})
	if err != nil {
		return err
	}
	b := bill{FormatVersion: wire.FormatVersion, By: by, Costs: []spent{}}
	rows := make(map[[2]string]int)
	for line, err := range d.Lines(ctx, body) {
		if err != nil {
			return err
		}
		e, err := client.Decode[wire.Event](line)
		if err != nil {
			return err
		}
		u, err := client.Decode[activity.Usage](e.Payload)
		if err != nil {
			return err
		}
		name := e.Agent
		switch by {
		case "task":
			name = e.Task
		case "model":
			name = u.Model
		case "day":
			name, _, _ = strings.Cut(e.At, "T")
		}
		key := [2]string{name, u.Currency}
		at, ok := rows[key]
		if !ok {
			at = len(b.Costs)
			rows[key] = at
			b.Costs = append(b.Costs, spent{Name: name, Currency: u.Currency})
		}
		s := &b.Costs[at]
		s.Turns++
		s.Input += u.Input
		s.Output += u.Output
		s.Cost += u.Cost
	}
	slices.SortStableFunc(b.Costs, func(x, y spent) int {
		if by == "day" {
			return cmp.Compare(x.Name, y.Name)
		}
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Input+y.Output, x.Input+x.Output))
	})
	switch {
	case a.JSON():
		return a.Document(b)
	case len(b.Costs) == 0:
		a.Note("No agent has reported its usage.")
		return nil
	}
	names, err := taskNames(ctx, a, d, by)
	if err != nil {
		return err
	}
	return a.Print("%s", term.Table(billRows(&b, names)))
}

// taskNames returns the names of the tasks, by their ids, if they are shown.
func taskNames(ctx context.Context, a *cli.App, d *client.Client, by string) (map[string]string, error) {
	if by != "task" {
		return nil, nil
	}
	list, err := NewFinder(a, d).List(ctx)
	names := make(map[string]string)
	for i := range list {
		names[list[i].ID] = list[i].Name
	}
	return names, err
}

func billRows(b *bill, names map[string]string) [][]term.Cell {
	head := strings.ToUpper(b.By)
	rows := [][]term.Cell{{term.Text(head), term.Figure("TURNS"), term.Figure("TOKENS IN"), term.Figure("OUT"), term.Figure("COST")}}
	sums := make(map[string]float64)
	var all spent
	add := func(s *spent, label, money string) {
		rows = append(rows, []term.Cell{term.Text(label), term.Figure(fmt.Sprint(s.Turns)), term.Figure(fmt.Sprint(s.Input)), term.Figure(fmt.Sprint(s.Output)), term.Figure(money)})
	}
	for i := range b.Costs {
		s := &b.Costs[i]
		label := term.OneLine(cmp.Or(s.Name, "-"))
		if name, ok := names[s.Name]; ok {
			label = term.ID(s.Name) + "  " + term.Clip(term.OneLine(name), 50)
		}
		add(s, label, money(s.Cost, s.Currency))
		all.Turns, all.Input, all.Output = all.Turns+s.Turns, all.Input+s.Input, all.Output+s.Output
		sums[s.Currency] += s.Cost
	}
	if len(b.Costs) > 1 {
		total := "-"
		if len(sums) == 1 {
			total = money(sums[b.Costs[0].Currency], b.Costs[0].Currency)
		}
		add(&all, "all", total)
	}
	return rows
}

// money returns a cost for people.
func money(cost float64, currency string) string {
	if cost == 0 {
		return "-"
	}
	return strings.TrimSpace(fmt.Sprintf("%.2f %s", cost, term.OneLine(currency)))
}
