package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// listFlags choose tasks.
type listFlags struct {
	state choice
	agent string
	role  choice
	last  string

	conversation string
}

func (a *app) taskListCommand() *cobra.Command {
	f := listFlags{role: choice{of: wire.Roles, open: true}}
	for _, state := range wire.TaskStates {
		f.state.of = append(f.state.of, string(state))
	}
	verb := &cobra.Command{
		Use:   "ls",
		Short: "List the tasks",
		Long: `Lists the tasks, oldest first: the state of each, who has it, how far it is, how
long ago it was made, and which tasks it still waits for. Of many only the
latest 100 are listed.`,
		Example: `  orchestrator task ls
  orchestrator task ls --state running --agent coder
  orchestrator task ls -q --state failed      whole ids alone
  orchestrator task ls -n all --json          everything, for a program`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.tasks(&f) },
	}
	set := verb.Flags()
	set.Var(&f.state, "state", "only tasks in this state, such as running")
	set.StringVar(&f.agent, "agent", "", "only tasks that `AGENT` has or had")
	set.Var(&f.role, "role", "only tasks for agents of this role")
	set.StringVar(&f.conversation, "conversation", "", "only tasks of the conversation with this `ID`")
	set.StringVarP(&f.last, "lines", "n", "100", "only the latest `N`, or all")
	_ = verb.RegisterFlagCompletionFunc("state", f.state.complete)
	_ = verb.RegisterFlagCompletionFunc("agent", a.completeAgents)
	_ = verb.RegisterFlagCompletionFunc("role", f.role.complete)
	_ = verb.RegisterFlagCompletionFunc("conversation", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

func (a *app) tasks(f *listFlags) error {
	most, err := mostOf(f.last)
	if err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		tasks, err := a.listTasks(ctx, d, wire.QueryTasks{
			Status: f.state.value, RequiredRole: f.role.value, ConversationID: f.conversation, Limit: everyTask,
		})
		if err != nil {
			return err
		}
		chosen := f.chosen(tasks)
		older := max(0, len(chosen)-most)
		if err := a.showTasks(chosen[older:], f.chooses()); err != nil {
			return err
		}
		if older > 0 {
			a.note("%s not shown here: orchestrator task ls -n all", isMore(older))
		}
		return nil
	})
}

func isMore(n int) string {
	if n == 1 {
		return "1 older task is"
	}
	return plain.Count(n, "older task") + " are"
}

// mostOf reads how many are to be listed.
func mostOf(text string) (int, error) {
	if text == "all" {
		return everyTask, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usageError(fmt.Sprintf("-n cannot be %q", text), "It is a number of tasks, or all")
	}
	return n, nil
}

func (f *listFlags) chooses() bool {
	return f.state.value != "" || f.agent != "" || f.role.value != "" || f.conversation != ""
}

// chosen are the tasks that are meant. A name for several states is the name of
// one of them as well, and that is the one.
func (f *listFlags) chosen(tasks []taskSeen) []taskSeen {
	var chosen []taskSeen
	for _, t := range tasks {
		if f.state.value != "" && string(t.State) != f.state.value || f.agent != "" && !isOf(t.AssignedTo, f.agent) {
			continue
		}
		chosen = append(chosen, t)
	}
	return chosen
}

// isOf reports whether an agent is called so, or is a replica of the block that is.
func isOf(agent, name string) bool {
	number, replica := strings.CutPrefix(agent, name+"-")
	return agent == name || replica && number != "" && strings.Trim(number, "0123456789") == ""
}

func (a *app) showTasks(tasks []taskSeen, some bool) error {
	switch {
	case a.flags.json:
		return a.document(documentOf(tasks))
	case a.flags.quiet:
		return printNames(a, tasks, func(t *taskSeen) string { return t.ID })
	case len(tasks) == 0 && some:
		return a.print("No task is like that. All of them: orchestrator task ls\n")
	case len(tasks) == 0:
		return a.print("No tasks yet. orchestrator task add \"Say hello\"\n")
	}
	p, now := a.paint(a.stdout), time.Now()
	rows := [][]cell{{text("ID"), text("NAME"), text("STATE"), text("AGENT"), figure("PROGRESS"), figure("AGE"), text("NEEDS")}}
	for i := range tasks {
		rows = append(rows, taskRow(&tasks[i].Task, p, now))
	}
	return a.print("%s", table(rows))
}

func taskRow(t *wire.Task, p paint, now time.Time) []cell {
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	age := "-"
	if passed, ok := between(t.CreatedAt, wire.Timestamp(now)); ok {
		age = plain.Duration(max(0, passed))
	}
	progress := plain.Percent(t.Progress)
	if t.State.Final() { // how far it was said to be last is of no use then
		progress = ""
	}
	return []cell{
		text(plain.ID(t.ID)), text(plain.Clip(plain.OneLine(t.Name), 40)),
		{text: wire.Visible(string(t.State)), ink: func(s string) string { return p.task(t.State, s) }},
		text(dash(plain.OneLine(t.AssignedTo))), figure(dash(progress)), figure(age), text(needsCell(t.WaitsFor)),
	}
}

// needsCell are the tasks that one waits for, a few of them.
func needsCell(ids []string) string {
	const few = 3
	var shown []string
	for _, id := range ids[:min(few, len(ids))] {
		shown = append(shown, plain.ID(id))
	}
	if len(ids) > few {
		shown = append(shown, fmt.Sprintf("+%d", len(ids)-few))
	}
	return strings.Join(shown, " ")
}
