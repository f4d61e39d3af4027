package task

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// depFlags are the flags of task deps.
type depFlags struct {
	add     []string
	remove  []string
	related bool
}

func taskDepsCommand(a *cli.App) *cobra.Command {
	var f depFlags
	verb := &cobra.Command{
		Use:   "deps ID",
		Short: "Show and change the dependencies of a task",
		Long: `Lists the dependencies of a task: tasks that must be done first (blocks), inputs from
other tasks with their contracts (input), and related tasks (related).

--add ID adds a task to wait for, --add ID:CONTRACT an input, and --add ID --related
only a relation. --rm removes a dependency, by its own id or by that of the other task.
The command then shows the new list. Dependency cycles are rejected (exit 6).`,
		Example: `  orchestrator task deps 0d11
  orchestrator task deps 0d11 --add 91c0
  orchestrator task deps 0d11 --add 7f3a:api_schema
  orchestrator task deps 0d11 --add 5be1 --related
  orchestrator task deps 0d11 --rm d12`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.related && len(f.add) == 0 {
				return cli.UsageError("--related requires --add", "Name the task: --add ID --related")
			}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return dependenciesOf(ctx, a, d, args[0], &f) })
		},
	}
	set := verb.Flags()
	set.StringSliceVar(&f.add, "add", nil, "add dependencies: comma-separated `ID[:CONTRACT]`; may be repeated")
	set.StringSliceVar(&f.remove, "rm", nil, "remove dependencies: comma-separated `IDS`; may be repeated")
	set.BoolVar(&f.related, "related", false, "add a relation, which does not block the task")
	_ = verb.RegisterFlagCompletionFunc("add", CompleteTasks(a, true))
	_ = verb.RegisterFlagCompletionFunc("rm", CompleteTasks(a, true))
	return verb
}

func dependenciesOf(ctx context.Context, a *cli.App, d *client.Client, word string, f *depFlags) error {
	find := NewFinder(a, d)
	id, err := find.ID(ctx, word)
	if err != nil {
		return err
	}
	added, err := f.added(ctx, find)
	if err != nil {
		return err
	}
	for _, which := range f.remove {
		if err := removeDependency(ctx, a, d, find, id, which); err != nil {
			return err
		}
	}
	for _, dependency := range added {
		if _, err := a.Ask(ctx, d, "add-dependency", wire.AddDependency{TaskID: id, Dependency: dependency}); err != nil {
			return explained(ctx, a, d, err)
		}
	}
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	return showDependencies(ctx, a, d, &t)
}

func (f *depFlags) added(ctx context.Context, find *Finder) ([]hub.Dependency, error) {
	var all []hub.Dependency
	for _, word := range f.add {
		kind := hub.DependsBlocks
		switch {
		case f.related:
			kind = hub.DependsRelated
		case strings.Contains(word, ":"):
			kind = hub.DependsInput
		}
		d, err := find.dependency(ctx, word, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// removeDependency removes a dependency, named by its id or by the id of the other task.
func removeDependency(ctx context.Context, a *cli.App, d *client.Client, find *Finder, id, which string) error {
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	links := linksOf(&t.Task)
	for i := range links {
		if links[i].ID == which {
			return removed(ctx, a, d, id, which)
		}
	}
	on, err := find.ID(ctx, which)
	if err != nil {
		return hintedDeps(err, id)
	}
	return removed(ctx, a, d, id, on)
}

func removed(ctx context.Context, a *cli.App, d *client.Client, id, which string) error {
	_, err := a.Ask(ctx, d, "remove-dependency", wire.RemoveDependency{TaskID: id, DependencyID: which})
	return hintedDeps(err, id)
}

func hintedDeps(err error, id string) error {
	return cli.WithHint(err, wire.CodeNotFound, "List them: orchestrator task deps "+term.ID(id))
}

// linksDocument is the JSON answer with the dependencies of a task.
type linksDocument struct {
	FormatVersion string      `json:"format_version"`
	TaskID        string      `json:"task_id"`
	Dependencies  []wire.Link `json:"dependencies"`
}

func showDependencies(ctx context.Context, a *cli.App, d *client.Client, t *Seen) error {
	links := linksOf(&t.Task)
	switch {
	case a.Flags.JSON:
		return a.Document(linksDocument{FormatVersion: wire.FormatVersion, TaskID: t.ID, Dependencies: links})
	case a.Flags.Quiet:
		return cli.PrintNames(a, links, func(l *wire.Link) string { return l.ID })
	case len(links) == 0:
		return a.Print("%s has no dependencies.\n", term.TaskLabel(t.ID, t.Name))
	}
	names, err := NewFinder(a, d).List(ctx)
	if err != nil {
		return err
	}
	return a.Print("%s", term.Table(linkRows(t, links, ByID(names), a.Paint(a.Stdout), time.Now())))
}

// linksOf returns the dependencies of a task.
func linksOf(t *wire.Task) []wire.Link {
	if len(t.Links) > 0 {
		return t.Links
	}
	var links []wire.Link
	for _, id := range t.Dependencies {
		links = append(links, wire.Link{On: id, Type: hub.DependsBlocks})
	}
	return links
}

// ByID returns a map from ids to tasks.
func ByID(tasks []Seen) map[string]*Seen {
	found := make(map[string]*Seen, len(tasks))
	for i := range tasks {
		found[tasks[i].ID] = &tasks[i]
	}
	return found
}

func linkRows(t *Seen, links []wire.Link, tasks map[string]*Seen, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("DEP"), term.Text("TASK"), term.Text("TITLE"), term.Text("STATE"), term.Text("KIND"), term.Text("RESOLVED")}}
	for i := range links {
		l := &links[i]
		name, state := term.Text("-"), term.Text("-")
		if on := tasks[l.On]; on != nil {
			name = term.Text(term.Clip(term.OneLine(on.Name), 40))
			state = term.Cell{Text: wire.Visible(string(on.State)), Ink: func(s string) string { return p.Task(on.State, s) }}
		}
		rows = append(rows, []term.Cell{
			term.Text(wire.Visible(l.ID)), term.Text(term.ID(l.On)), name, state, term.Text(kindWords(l)), term.Text(resolvedWords(t, l, now)),
		})
	}
	return rows
}

// kindWords returns the kind of a dependency.
func kindWords(l *wire.Link) string {
	switch {
	case l.Type == hub.DependsInput:
		return "input " + term.OneLine(l.Contract)
	case l.Soft:
		return "related, its end"
	}
	return term.OneLine(l.Type)
}

// resolvedWords returns the time of the resolution of a dependency, and the delivery.
func resolvedWords(t *Seen, l *wire.Link, now time.Time) string {
	switch {
	case !l.Resolved:
		return "-"
	case l.Type != hub.DependsInput:
		return term.Clock(l.ResolvedAt, now, time.TimeOnly)
	}
	return term.Clock(l.ResolvedAt, now, time.TimeOnly) + ", " + inputWords(t.ResolvedInputs, l.Contract)
}

// inputWords returns how much was delivered for a contract.
func inputWords(inputs wire.Inputs, contract string) string {
	for _, in := range inputs {
		if in.Key == contract && in.Data != nil && in.Data.Kind() != 'n' {
			return fmt.Sprintf("%s delivered", sizeWords(len(in.Data)))
		}
	}
	return "nothing delivered"
}

// sizeWords returns a number of bytes with its unit.
func sizeWords(n int) string {
	if n < 1000 {
		return term.Count(n, "byte")
	}
	return term.Bytes(int64(n))
}
