// Package task holds the task commands, such as add, ls, show and wait, and the graph
// command.
package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Command returns the task command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "task",
		Short: "Submit, inspect and wait for tasks",
		Long: `Tasks are the work of the agents. Each has a state and an id, of which any unique
prefix is accepted. The manual explains states (orchestrator help tasks), assignment,
plans and inputs (orchestrator help work), and delegation between agents
(orchestrator help delegation).`,
		Example: `  orchestrator task add "Say hello" --wait
  orchestrator task ls
  orchestrator task show 91c0`,
	},
		taskAddCommand(a), taskSubmitCommand(a),
		cli.OnRecord(taskListCommand(a)), cli.OnRecord(taskShowCommand(a)), cli.OnRecord(GraphCommand(a, "orchestrator task graph")),
		taskAssignCommand(a), taskMatchCommand(a), taskUpdateCommand(a), cli.OnRecord(taskDepsCommand(a)),
		taskPlanCommand(a), taskApprovePlanCommand(a), taskRevisePlanCommand(a),
		taskStartCommand(a), taskAskCommand(a), taskDoneCommand(a), taskFailCommand(a), taskRetryCommand(a), taskCancelCommand(a),
		taskNoteCommand(a), cli.OnRecord(taskNotesCommand(a)), taskWaitCommand(a),
		cli.OnRecord(taskDiffCommand(a)), taskMergeCommand(a),
		taskInputCommand(a), cli.OnRecord(taskResponseCommand(a)),
	)
}

// CompleteTasks completes the ids of tasks that are not among the arguments yet. If ended
// is not set, it omits ended tasks.
func CompleteTasks(a *cli.App, ended bool) cobra.CompletionFunc {
	return completeTasks(a, func(t *Seen) bool { return ended || !t.State.Final() })
}

// completeTasks completes the ids of some tasks that are not among the arguments yet.
func completeTasks(a *cli.App, takes func(t *Seen) bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var offered []cobra.Completion
		tasks := tasksForShell(a)
		number := map[string]int{}
		for i := range tasks {
			number[term.ID(tasks[i].ID)]++
		}
		for i := range tasks {
			t := &tasks[i]
			id := term.ID(t.ID)
			if number[id] > 1 || len(begun) > len(id) {
				id = t.ID
			}
			if !strings.HasPrefix(t.ID, begun) || !takes(t) || startsOne(t.ID, already) {
				continue
			}
			offered = append(offered, cobra.CompletionWithDesc(id, term.Clip(term.OneLine(t.Name), 40)+", "+HeldWords(&t.Task)))
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// startsOne reports whether one of the words is a prefix of the id.
func startsOne(id string, words []string) bool {
	for _, word := range words {
		if word != "" && strings.HasPrefix(id, word) {
			return true
		}
	}
	return false
}

// tasksForShell returns the tasks for completion.
func tasksForShell(a *cli.App) []Seen {
	return cli.ForCompletion(a, func(ctx context.Context, d *client.Client) ([]Seen, error) {
		return listTasks(ctx, a, d, wire.QueryTasks{Limit: everyTask})
	})
}

// completeOneTask is CompleteTasks for commands that take one task.
func completeOneTask(a *cli.App, ended bool) cobra.CompletionFunc {
	return cli.OneArg(CompleteTasks(a, ended))
}

// A Finder resolves prefixes of task ids. It lists the tasks once, and only if a word is
// not a full id.
type Finder struct {
	app    *cli.App
	door   *client.Client
	tasks  []Seen
	listed bool
}

// NewFinder returns a Finder.
func NewFinder(a *cli.App, d *client.Client) *Finder { return &Finder{app: a, door: d} }

// onTask calls do with the ID of the task that a word of the user names.
func onTask(a *cli.App, word string, do func(ctx context.Context, a *cli.App, d *client.Client, id string) error) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		id, err := NewFinder(a, d).ID(ctx, word)
		if err != nil {
			return err
		}
		return do(ctx, a, d, id)
	})
}

// List returns all tasks.
func (f *Finder) List(ctx context.Context) ([]Seen, error) {
	if f.listed {
		return f.tasks, nil
	}
	var err error
	f.tasks, err = listTasks(ctx, f.app, f.door, wire.QueryTasks{Limit: everyTask})
	f.listed = err == nil
	return f.tasks, err
}

// ID returns the id of the task that a word names.
func (f *Finder) ID(ctx context.Context, word string) (string, error) {
	switch {
	case word == "":
		return "", cli.UsageError("the id of the task is empty", "List them: orchestrator task ls")
	case term.WholeID(word):
		return word, nil
	}
	tasks, err := f.List(ctx)
	if err != nil {
		return "", err
	}
	return taskOf(tasks, word)
}

// taskIDs returns the ids of the tasks that words name, each once.
func taskIDs(ctx context.Context, a *cli.App, d *client.Client, words []string) ([]string, error) {
	var ids []string
	find := NewFinder(a, d)
	for _, word := range words {
		id, err := find.ID(ctx, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// taskOf returns the only id that begins with prefix.
func taskOf(tasks []Seen, prefix string) (string, error) {
	var fits []Seen
	for _, t := range tasks {
		if t.ID == prefix {
			return t.ID, nil
		}
		if strings.HasPrefix(t.ID, prefix) {
			fits = append(fits, t)
		}
	}
	switch len(fits) {
	case 0:
		return "", &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
			Message: fmt.Sprintf("no task id begins with %q", prefix),
			Hint:    cli.NoTaskHint, Details: map[string]any{"task": prefix},
		}
	case 1:
		return fits[0].ID, nil
	}
	return "", ambiguous(prefix, fits)
}

// ambiguous returns the failure for a prefix of several tasks, with a few of their names.
func ambiguous(prefix string, fits []Seen) *cli.Failure {
	const few = 5
	var ids, shown []string
	for i := range fits {
		ids = append(ids, fits[i].ID)
		id := term.ID(fits[i].ID)
		if len(prefix) >= len(id) { // the short ids may be equal
			id = wire.Visible(fits[i].ID)
		}
		shown = append(shown, id+" "+term.Clip(term.OneLine(fits[i].Name), 40))
	}
	if len(shown) > few {
		shown = append(shown[:few], fmt.Sprintf("and %d more", len(fits)-few))
	}
	return &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("%q matches %d tasks: %s", prefix, len(fits), strings.Join(shown, ", ")),
		Hint:    "Write more characters of the id", Details: map[string]any{"task": prefix, "fits": ids},
	}
}
