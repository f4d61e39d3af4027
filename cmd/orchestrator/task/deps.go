package task

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// depFlags are changes of what a task depends on.
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
		Long: `Lists what a task depends on: what must be done first (blocks), what it gets of
others (input, with the contract under which they deliver it), and what is worth
knowing (related).

--add ID lets it wait for another task, --add ID:CONTRACT wants what that one
delivers, and --related only notes it. --rm takes a dependency away: by its own
id, or by that of the other task. Then the list as it is now is shown. Tasks that
would wait for each other are refused (exit 6).`,
		Example: `  orchestrator task deps 0d11
  orchestrator task deps 0d11 --add 91c0
  orchestrator task deps 0d11 --add 7f3a:api_schema
  orchestrator task deps 0d11 --add 5be1 --related
  orchestrator task deps 0d11 --rm d12`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.related && len(f.add) == 0 {
				return cli.UsageError("--related says how another task is added", "Say which: --add ID --related")
			}
			return a.WithClient(func(ctx context.Context, d *cli.Client) error { return dependenciesOf(ctx, a, d, args[0], &f) })
		},
	}
	set := verb.Flags()
	set.StringSliceVar(&f.add, "add", nil, "let it depend on another task: `ID[:CONTRACT]`, with commas between them; may be repeated")
	set.StringSliceVar(&f.remove, "rm", nil, "take a dependency away: `IDS`, with commas between them; may be repeated")
	set.BoolVar(&f.related, "related", false, "what is added is only worth knowing")
	_ = verb.RegisterFlagCompletionFunc("add", CompleteTasks(a, true))
	_ = verb.RegisterFlagCompletionFunc("rm", CompleteTasks(a, true))
	return verb
}

func dependenciesOf(ctx context.Context, a *cli.App, d *cli.Client, word string, f *depFlags) error {
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

func (f *depFlags) added(ctx context.Context, find *Finder) ([]wire.Dependency, error) {
	var all []wire.Dependency
	for _, word := range f.add {
		kind := wire.DependsBlocks
		switch {
		case f.related:
			kind = wire.DependsRelated
		case strings.Contains(word, ":"):
			kind = wire.DependsInput
		}
		d, err := find.dependency(ctx, word, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// removeDependency takes one away, by its own id or by the other task's.
func removeDependency(ctx context.Context, a *cli.App, d *cli.Client, find *Finder, id, which string) error {
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

func removed(ctx context.Context, a *cli.App, d *cli.Client, id, which string) error {
	_, err := a.Ask(ctx, d, "remove-dependency", wire.RemoveDependency{TaskID: id, DependencyID: which})
	return hintedDeps(err, id)
}

func hintedDeps(err error, id string) error {
	return cli.WithHint(err, wire.CodeNotFound, "See which there are: orchestrator task deps "+term.ID(id))
}

// linksDocument answers programs with what a task depends on.
type linksDocument struct {
	FormatVersion string      `json:"format_version"`
	TaskID        string      `json:"task_id"`
	Dependencies  []wire.Link `json:"dependencies"`
}

func showDependencies(ctx context.Context, a *cli.App, d *cli.Client, t *Seen) error {
	links := linksOf(&t.Task)
	switch {
	case a.Flags.JSON:
		return a.Document(linksDocument{FormatVersion: wire.FormatVersion, TaskID: t.ID, Dependencies: links})
	case a.Flags.Quiet:
		return cli.PrintNames(a, links, func(l *wire.Link) string { return l.ID })
	case len(links) == 0:
		return a.Print("%s depends on nothing.\n", term.TaskLabel(t.ID, t.Name))
	}
	names, err := NewFinder(a, d).List(ctx)
	if err != nil {
		return err
	}
	return a.Print("%s", term.Table(linkRows(t, links, ByID(names), a.Paint(a.Stdout), time.Now())))
}
