package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// graphFlags choose what of the graph is shown, and how.
type graphFlags struct {
	format choice
	all    bool
	last   string
}

// graphCommand makes graph, which is task graph as well.
func (a *app) graphCommand(path string) *cobra.Command {
	f := graphFlags{format: choice{value: "text", of: []string{"text", "dot", "mermaid", "json"}}}
	verb := &cobra.Command{
		Use:   "graph [ID]",
		Short: "Show the dependency graph of tasks",
		Long: `Shows tasks as a tree: below each those that depend on it. One that depends on
several stands in full below the first of them, and is only named below the
others.

Without an id it is the tasks that have not ended, and their neighbours; --all is
every task. With an id it is that task, all that it depends on, and all that
depends on it.

As text no more than 200 tasks are shown, unless -n says how many.`,
		Example: fmt.Sprintf(`  %[1]s
  %[1]s 91c0
  %[1]s --all --format dot | dot -Tsvg > tasks.svg
  %[1]s --format mermaid`, path),
		Args:              argCount(0, 1),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(verb *cobra.Command, args []string) error {
			if a.flags.json && verb.Flags().Changed("format") && f.format.value != "json" {
				return usageError("--json and --format "+f.format.value+" exclude each other", "Leave one out")
			}
			if f.all && len(args) > 0 {
				return usageError("--all is every task, and an id is one of them", "Leave one out")
			}
			return a.speak(func(ctx context.Context, d *client) error { return a.graph(ctx, d, args, &f) })
		},
	}
	set := verb.Flags()
	set.Var(&f.format, "format", "text, dot (for Graphviz), mermaid (for Markdown) or json")
	set.BoolVarP(&f.all, "all", "a", false, "every task, also what has ended")
	set.StringVarP(&f.last, "lines", "n", "", "only `N` tasks, or all (200 as text)")
	_ = verb.RegisterFlagCompletionFunc("format", f.format.complete)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

// mostDrawn is how many tasks fit into a text that a person reads.
const mostDrawn = 200

// most is how many tasks are shown.
func (f *graphFlags) most(json bool) (int, error) {
	switch {
	case f.last != "":
		return mostOf(f.last)
	case f.format.value == "text" && !json:
		return mostDrawn, nil
	}
	return everyTask, nil
}

func (a *app) graph(ctx context.Context, d *client, args []string, f *graphFlags) error {
	most, err := f.most(a.flags.json)
	if err != nil {
		return err
	}
	find := a.finder(d)
	tasks, err := find.list(ctx)
	if err != nil {
		return err
	}
	g := newGraph(tasks)
	switch {
	case f.all:
		g.choose(func(int) bool { return true })
	case len(args) > 0:
		id, err := find.id(ctx, args[0])
		if err != nil {
			return err
		}
		if !g.chooseAround(id) {
			return a.noSuchTask(id)
		}
	default:
		g.chooseOpen()
	}
	return a.showGraph(g, f, most)
}

func (a *app) noSuchTask(id string) error {
	return &failure{
		exit: exitNotFound, code: wire.CodeNotFound, message: fmt.Sprintf("there is no task %q", id),
		hint: noTaskHint, details: map[string]any{"taskId": id},
	}
}

func (a *app) showGraph(g *graph, f *graphFlags, most int) error {
	tree := f.format.value == "text" && !a.flags.json
	if !tree {
		g.keep(most)
	}
	left, err := 0, error(nil)
	switch {
	case a.flags.json || f.format.value == "json":
		return a.document(g.document())
	case a.flags.quiet:
		return printNames(a, g.chosen(), func(n *int) string { return g.tasks[*n].ID })
	case tree:
		left, err = a.showTree(g, most)
	case f.format.value == "dot":
		left, err = g.left, a.print("%s", g.dot())
	default:
		left, err = g.left, a.print("%s", g.mermaid())
	}
	if err == nil && left > 0 {
		a.note("%s: all of them with -n all", isLeftOut(left))
	}
	return err
}

func isLeftOut(n int) string {
	if n == 1 {
		return "1 task is left out"
	}
	return plain.Count(n, "task") + " are left out"
}

func (a *app) showTree(g *graph, most int) (left int, err error) {
	switch {
	case len(g.tasks) == 0:
		return 0, a.print("No tasks yet. orchestrator task add \"Say hello\"\n")
	case len(g.chosen()) == 0:
		return 0, a.print("Every task has ended. All of them: orchestrator graph --all\n")
	}
	t := newTree(g, most, a.paint(a.stdout))
	t.grow()
	return t.left(), a.print("%s", table(t.rows))
}
