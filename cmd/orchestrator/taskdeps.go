package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// depFlags are changes of what a task depends on.
type depFlags struct {
	add     []string
	remove  []string
	related bool
}

func (a *app) taskDepsCommand() *cobra.Command {
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
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.related && len(f.add) == 0 {
				return usageError("--related says how another task is added", "Say which: --add ID --related")
			}
			return a.speak(func(ctx context.Context, d *client) error { return a.dependenciesOf(ctx, d, args[0], &f) })
		},
	}
	set := verb.Flags()
	set.StringSliceVar(&f.add, "add", nil, "let it depend on another task: `ID[:CONTRACT]`, with commas between them; may be repeated")
	set.StringSliceVar(&f.remove, "rm", nil, "take a dependency away: `IDS`, with commas between them; may be repeated")
	set.BoolVar(&f.related, "related", false, "what is added is only worth knowing")
	_ = verb.RegisterFlagCompletionFunc("add", a.completeTasks(true))
	_ = verb.RegisterFlagCompletionFunc("rm", a.completeTasks(true))
	return verb
}

func (a *app) dependenciesOf(ctx context.Context, d *client, word string, f *depFlags) error {
	find := a.finder(d)
	id, err := find.id(ctx, word)
	if err != nil {
		return err
	}
	added, err := f.added(ctx, find)
	if err != nil {
		return err
	}
	for _, which := range f.remove {
		if err := a.removeDependency(ctx, d, find, id, which); err != nil {
			return err
		}
	}
	for _, dependency := range added {
		if _, err := a.ask(ctx, d, "add-dependency", wire.AddDependency{TaskID: id, Dependency: dependency}); err != nil {
			return a.explained(ctx, d, err)
		}
	}
	t, _, err := a.getTask(ctx, d, id)
	if err != nil {
		return err
	}
	return a.showDependencies(ctx, d, &t)
}

func (f *depFlags) added(ctx context.Context, find *finder) ([]wire.Dependency, error) {
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
func (a *app) removeDependency(ctx context.Context, d *client, find *finder, id, which string) error {
	t, _, err := a.getTask(ctx, d, id)
	if err != nil {
		return err
	}
	links := linksOf(&t.Task)
	for i := range links {
		if links[i].ID == which {
			return a.removed(ctx, d, id, which)
		}
	}
	on, err := find.id(ctx, which)
	if err != nil {
		return hintedDeps(err, id)
	}
	return a.removed(ctx, d, id, on)
}

func (a *app) removed(ctx context.Context, d *client, id, which string) error {
	_, err := a.ask(ctx, d, "remove-dependency", wire.RemoveDependency{TaskID: id, DependencyID: which})
	return hintedDeps(err, id)
}

func hintedDeps(err error, id string) error {
	return hinted(err, wire.CodeNotFound, "See which there are: orchestrator task deps "+plain.ID(id))
}

// linksDocument answers programs with what a task depends on.
type linksDocument struct {
	FormatVersion string      `json:"format_version"`
	TaskID        string      `json:"task_id"`
	Dependencies  []wire.Link `json:"dependencies"`
}

func (a *app) showDependencies(ctx context.Context, d *client, t *taskSeen) error {
	links := linksOf(&t.Task)
	switch {
	case a.flags.json:
		return a.document(linksDocument{FormatVersion: wire.FormatVersion, TaskID: t.ID, Dependencies: links})
	case a.flags.quiet:
		return printNames(a, links, func(l *wire.Link) string { return l.ID })
	case len(links) == 0:
		return a.print("%s depends on nothing.\n", taskLabel(t.ID, t.Name))
	}
	names, err := a.finder(d).list(ctx)
	if err != nil {
		return err
	}
	return a.print("%s", table(linkRows(t, links, byID(names), a.paint(a.stdout), time.Now())))
}
