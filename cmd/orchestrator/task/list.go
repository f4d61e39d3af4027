package task

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// listFlags are the flags of task ls.
type listFlags struct {
	state cli.Choice
	agent string
	role  cli.Choice
	last  string

	conversation string
}

func taskListCommand(a *cli.App) *cobra.Command {
	f := listFlags{role: cli.Choice{Of: wire.Roles, Open: true}}
	for _, state := range wire.TaskStates {
		f.state.Of = append(f.state.Of, string(state))
	}
	verb := &cobra.Command{
		Use:   "ls",
		Short: "List the tasks",
		Long: `Lists the tasks, oldest first: state, agent, progress, age and what each still waits for:
other tasks, or a time. Only the latest 100 tasks are listed; -n changes the limit.`,
		Example: `  orchestrator task ls
  orchestrator task ls --state running --agent coder
  orchestrator task ls -q --state failed      whole only the ids
  orchestrator task ls -n all --json          everything, for a program`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return tasks(a, &f) },
	}
	set := verb.Flags()
	set.Var(&f.state, "state", "only tasks in this state, such as running")
	set.StringVar(&f.agent, "agent", "", "only tasks of `AGENT`, now or earlier")
	set.Var(&f.role, "role", "only tasks for agents of this role")
	set.StringVar(&f.conversation, "conversation", "", "only tasks of the conversation with this `ID`")
	set.StringVarP(&f.last, "lines", "n", "100", "only the latest `N`, or all")
	_ = verb.RegisterFlagCompletionFunc("state", f.state.Complete)
	_ = verb.RegisterFlagCompletionFunc("agent", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("role", f.role.Complete)
	_ = verb.RegisterFlagCompletionFunc("conversation", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

func tasks(a *cli.App, f *listFlags) error {
	most, err := cli.ParseCount(f.last, "tasks", 1, everyTask)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		tasks, err := listTasks(ctx, a, d, wire.QueryTasks{
			Status: f.state.Value, RequiredRole: f.role.Value, ConversationID: f.conversation, Limit: everyTask,
		})
		if err != nil {
			return err
		}
		chosen := f.chosen(tasks)
		older := max(0, len(chosen)-most)
		if err := showTasks(a, chosen[older:], f.chooses()); err != nil {
			return err
		}
		if older > 0 {
			a.Note("%s not shown here: orchestrator task ls -n all", isMore(older))
		}
		return nil
	})
}

func isMore(n int) string {
	if n == 1 {
		return "1 older task is"
	}
	return term.Count(n, "older task") + " are"
}

func (f *listFlags) chooses() bool {
	return f.state.Value != "" || f.agent != "" || f.role.Value != "" || f.conversation != ""
}

// chosen returns the tasks that match the flags. A word for several states is also the name
// of one state, and only that one matches.
func (f *listFlags) chosen(tasks []Seen) []Seen {
	var chosen []Seen
	for _, t := range tasks {
		if f.state.Value != "" && string(t.State) != f.state.Value || f.agent != "" && !isOf(t.AssignedTo, f.agent) {
			continue
		}
		chosen = append(chosen, t)
	}
	return chosen
}

// isOf reports whether an agent has the name, or is a replica of the block of that name.
func isOf(agent, name string) bool {
	number, replica := strings.CutPrefix(agent, name+"-")
	return agent == name || replica && number != "" && strings.Trim(number, "0123456789") == ""
}

func showTasks(a *cli.App, tasks []Seen, some bool) error {
	switch {
	case a.Flags.JSON:
		return a.Document(documentOf(tasks))
	case a.Flags.Quiet:
		return cli.PrintNames(a, requests(tasks), func(t *Seen) string { return t.ID })
	case len(tasks) == 0 && some:
		return a.Print("No task matches. All tasks: orchestrator task ls\n")
	case len(tasks) == 0:
		return a.Print("No tasks yet. orchestrator task add \"Say hello\"\n")
	}
	p, now := a.Paint(a.Stdout), time.Now()
	rows := [][]term.Cell{{term.Text("ID"), term.Text("TITLE"), term.Text("STATE"), term.Text("AGENT"), term.Figure("PROGRESS"), term.Figure("AGE"), term.Text("NEEDS")}}
	parts := partsByRequest(tasks)
	for _, t := range requests(tasks) {
		rows = append(rows, taskRow(&t.Task, p, now))
		for _, part := range parts[t.ID] {
			row := taskRow(&part.Task, p, now)
			row[1].Text = "└ its part"
			rows = append(rows, row)
		}
	}
	return a.Print("%s", term.Table(rows))
}

// partsByRequest returns the parts of the listed requests, by the ids of these.
func partsByRequest(tasks []Seen) map[string][]*Seen {
	listed := ByID(tasks)
	parts := make(map[string][]*Seen)
	for i := range tasks {
		if t := &tasks[i]; t.Details.IsPart() && listed[t.ParentTaskID] != nil {
			parts[t.ParentTaskID] = append(parts[t.ParentTaskID], t)
		}
	}
	return parts
}

// requests returns the tasks that are not parts of other tasks in the list.
func requests(tasks []Seen) []Seen {
	listed := ByID(tasks)
	return slices.DeleteFunc(slices.Clone(tasks), func(t Seen) bool { return t.Details.IsPart() && listed[t.ParentTaskID] != nil })
}

func taskRow(t *wire.Task, p term.Paint, now time.Time) []term.Cell {
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	age := "-"
	if passed, ok := term.Between(t.CreatedAt, object.Timestamp(now)); ok {
		age = term.Duration(max(0, passed))
	}
	needs := term.NeedsCell(t.WaitsFor)
	if after := term.NotBefore(t, now, "15:04"); after != "" {
		needs = strings.TrimSpace(needs + " after " + after)
	}
	progress := term.Percent(t.Progress)
	if t.State.Final() { // the last progress is meaningless then
		progress = ""
	}
	return []term.Cell{
		term.Text(term.ID(t.ID)), term.Text(term.Clip(term.OneLine(t.Name), 40)),
		{Text: wire.Visible(string(t.State)), Ink: func(s string) string { return p.Task(t.State, s) }},
		term.Text(dash(term.OneLine(t.AssignedTo))), term.Figure(dash(progress)), term.Figure(age), term.Text(needs),
	}
}
