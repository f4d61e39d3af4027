package task

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// graphFlags are the flags of graph.
type graphFlags struct {
	format cli.Choice
	all    bool
	last   string
}

// GraphCommand returns the graph command, which is also task graph.
func GraphCommand(a *cli.App, path string) *cobra.Command {
	f := graphFlags{format: cli.Choice{Value: "text", Of: []string{"text", "dot", "mermaid", "json"}}}
	verb := &cobra.Command{
		Use:   "graph [ID]",
		Short: "Show the dependency graph of tasks",
		Long: `Shows tasks as a tree: below each task those that depend on it. A task with several
dependencies is shown in full below the first, and by name below the others.

Without an id the tree has the tasks that have not ended and their neighbors, or with
--all every task. With an id it has that task, its direct and indirect dependencies,
and the tasks that depend on it.

Text output is limited to 200 tasks; -n changes the limit.`,
		Example: fmt.Sprintf(`  %[1]s
  %[1]s 91c0
  %[1]s --all --format dot | dot -Tsvg > tasks.svg
  %[1]s --format mermaid`, path),
		Args:              cli.ArgCount(0, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(verb *cobra.Command, args []string) error {
			if a.Flags.JSON && verb.Flags().Changed("format") && f.format.Value != "json" {
				return cli.UsageError("--json and --format "+f.format.Value+" cannot be combined", "Leave one out")
			}
			if f.all && len(args) > 0 {
				return cli.UsageError("--all cannot be combined with an id", "Leave one out")
			}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return runGraph(ctx, a, d, args, &f) })
		},
	}
	set := verb.Flags()
	set.Var(&f.format, "format", "text, dot (for Graphviz), mermaid (for Markdown) or json")
	set.BoolVarP(&f.all, "all", "a", false, "include ended tasks")
	set.StringVarP(&f.last, "lines", "n", "", "show at most `N` tasks, or all (default 200 for text)")
	_ = verb.RegisterFlagCompletionFunc("format", f.format.Complete)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

// maxDrawn is the default number of tasks in text output.
const maxDrawn = 200

// most returns the maximum number of tasks to show.
func (f *graphFlags) most(json bool) (int, error) {
	switch {
	case f.last != "":
		return cli.ParseCount(f.last, "tasks", 1, everyTask)
	case f.format.Value == "text" && !json:
		return maxDrawn, nil
	}
	return everyTask, nil
}

func runGraph(ctx context.Context, a *cli.App, d *client.Client, args []string, f *graphFlags) error {
	most, err := f.most(a.Flags.JSON)
	if err != nil {
		return err
	}
	find := NewFinder(a, d)
	tasks, err := find.List(ctx)
	if err != nil {
		return err
	}
	g := NewGraph(tasks)
	switch {
	case f.all:
		g.Choose(func(int) bool { return true })
	case len(args) > 0:
		id, err := find.ID(ctx, args[0])
		if err != nil {
			return err
		}
		if !g.ChooseAround(id) {
			return noSuchTask(id)
		}
	default:
		g.ChooseOpen()
	}
	return showGraph(a, g, f, most)
}

func noSuchTask(id string) error {
	return &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("task %q does not exist", id),
		Hint: cli.NoTaskHint, Details: map[string]any{"taskId": id},
	}
}

func showGraph(a *cli.App, g *graph, f *graphFlags, most int) error {
	tree := f.format.Value == "text" && !a.Flags.JSON
	if !tree {
		g.keep(most)
	}
	left, err := 0, error(nil)
	switch {
	case a.Flags.JSON || f.format.Value == "json":
		return a.Document(g.document())
	case a.Flags.Quiet:
		return cli.PrintNames(a, g.Chosen(), func(n *int) string { return g.Tasks[*n].ID })
	case tree:
		left, err = showTree(a, g, most)
	case f.format.Value == "dot":
		left, err = g.left, a.Print("%s", g.dot())
	default:
		left, err = g.left, a.Print("%s", g.mermaid())
	}
	if err == nil && left > 0 {
		a.Note("%s. All tasks: -n all", isLeftOut(left))
	}
	return err
}

func isLeftOut(n int) string {
	if n == 1 {
		return "1 task is not shown"
	}
	return term.Count(n, "task") + " are not shown"
}

func showTree(a *cli.App, g *graph, most int) (left int, err error) {
	switch {
	case len(g.Tasks) == 0:
		return 0, a.Print("No tasks yet. orchestrator task add \"Say hello\"\n")
	case len(g.Chosen()) == 0:
		return 0, a.Print("Every task has ended. All tasks: orchestrator graph --all\n")
	}
	t := NewTree(g, most, a.Paint(a.Stdout))
	t.Grow()
	return t.Left(), a.Print("%s", term.Table(t.Rows))
}

// A graph is a list of tasks, their dependencies, and which of them are shown. A task is
// identified by its index in the list.
type graph struct {
	Tasks []Seen   // oldest first
	needs [][]edge // dependencies of each task
	feeds [][]edge // dependents of each task
	shown []bool
	left  int // number of chosen tasks that are not shown
}

// An edge leads to another task.
type edge struct {
	to   int
	link *wire.Link
}

// gates reports whether a dependency blocks a task.
func (e *edge) gates() bool { return e.link.Type != hub.DependsRelated }

// NewGraph returns the graph of tasks.
func NewGraph(tasks []Seen) *graph {
	g := &graph{Tasks: tasks, needs: make([][]edge, len(tasks)), feeds: make([][]edge, len(tasks)), shown: make([]bool, len(tasks))}
	at := make(map[string]int, len(tasks))
	for i := range tasks {
		at[tasks[i].ID] = i
	}
	for i := range tasks {
		links := linksOf(&tasks[i].Task)
		for n := range links {
			if on, known := at[links[n].On]; known {
				g.needs[i] = append(g.needs[i], edge{to: on, link: &links[n]})
				g.feeds[on] = append(g.feeds[on], edge{to: i, link: &links[n]})
			}
		}
	}
	return g
}

// Choose marks the wanted tasks as shown.
func (g *graph) Choose(wanted func(n int) bool) {
	for n := range g.Tasks {
		g.shown[n] = g.shown[n] || wanted(n)
	}
}

// ChooseOpen marks tasks that have not ended, and their neighbors, as shown.
func (g *graph) ChooseOpen() {
	open := func(n int) bool { return !g.Tasks[n].State.Final() }
	g.Choose(func(n int) bool {
		if open(n) {
			return true
		}
		for _, e := range append(g.needs[n][:len(g.needs[n]):len(g.needs[n])], g.feeds[n]...) {
			if open(e.to) {
				return true
			}
		}
		return false
	})
}

// ChooseAround marks a task, its dependencies and its dependents as shown. It returns false
// for an unknown id.
func (g *graph) ChooseAround(id string) bool {
	for n := range g.Tasks {
		if g.Tasks[n].ID == id {
			g.reach(n, g.needs)
			g.reach(n, g.feeds)
			return true
		}
	}
	return false
}

// reach marks the tasks that can be reached in one direction. It shows related tasks, but
// does not continue from them.
func (g *graph) reach(from int, along [][]edge) {
	g.shown[from] = true
	been := make([]bool, len(g.Tasks))
	been[from] = true
	for open := []int{from}; len(open) > 0; {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, e := range along[n] {
			g.shown[e.to] = true
			if e.gates() && !been[e.to] {
				been[e.to] = true
				open = append(open, e.to)
			}
		}
	}
}

// Chosen returns the tasks that are shown, oldest first.
func (g *graph) Chosen() []int {
	var all []int
	for n, shown := range g.shown {
		if shown {
			all = append(all, n)
		}
	}
	return all
}

// keep limits the shown tasks to the first most, and counts the rest.
func (g *graph) keep(most int) {
	for i, n := range g.Chosen() {
		if i >= most {
			g.shown[n] = false
			g.left++
		}
	}
}

// graphDocument is the JSON answer of graph.
type graphDocument struct {
	FormatVersion string      `json:"format_version"`
	Tasks         []graphTask `json:"tasks"`
	Dependencies  []graphEdge `json:"dependencies"`
	LeftOut       int         `json:"left_out"` // number of tasks
}

type graphTask struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	State      wire.TaskState `json:"state"`
	AssignedTo string         `json:"assigned_to,omitzero"`
	Progress   float64        `json:"progress"`
}

type graphEdge struct {
	TaskID   string `json:"task_id"`
	On       string `json:"depends_on_task_id"`
	Type     string `json:"dependency_type"`
	Contract string `json:"contract_key,omitzero"`
	Resolved bool   `json:"resolved"`
}

func (g *graph) document() graphDocument {
	document := graphDocument{FormatVersion: wire.FormatVersion, LeftOut: g.left}
	for _, n := range g.Chosen() {
		t := &g.Tasks[n]
		document.Tasks = append(document.Tasks, graphTask{ID: t.ID, Name: t.Name, State: t.State, AssignedTo: t.AssignedTo, Progress: t.Progress})
		for _, e := range g.needs[n] {
			if g.shown[e.to] {
				document.Dependencies = append(document.Dependencies, graphEdge{
					TaskID: t.ID, On: e.link.On, Type: e.link.Type, Contract: e.link.Contract, Resolved: e.link.Resolved,
				})
			}
		}
	}
	return document
}
