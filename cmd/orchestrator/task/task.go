// Package task holds the task commands, such as add, ls, show and wait, and the graph
// command.
package task

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Command returns the task command.
func Command(a *cli.App) *cobra.Command {
	return cli.Group(a, &cobra.Command{
		Use:   "task",
		Short: "Submit, inspect and wait for tasks",
		Long: `Tasks are the work of the agents. Each has a state and an id, of which any unique
prefix is accepted. The manual explains states (orchestrator help tasks), assignment,
plans and inputs (help work), and delegation between agents (help delegation).`,
		Example: `  orchestrator task add "Say hello" --wait
  orchestrator task ls
  orchestrator task show 91c0`,
	},
		taskAddCommand(a), taskSubmitCommand(a), taskListCommand(a), taskShowCommand(a), GraphCommand(a, "orchestrator task graph"),
		taskAssignCommand(a), taskMatchCommand(a), taskUpdateCommand(a), taskDepsCommand(a),
		taskPlanCommand(a), taskApprovePlanCommand(a), taskRevisePlanCommand(a),
		taskStartCommand(a), taskAskCommand(a), taskDoneCommand(a), taskFailCommand(a), taskCancelCommand(a),
		taskNoteCommand(a), taskNotesCommand(a), taskWaitCommand(a),
		taskInputCommand(a), taskResponseCommand(a),
	)
}

// CompleteTasks completes the ids of tasks that are not among the arguments yet. If ended
// is not set, it omits ended tasks.
func CompleteTasks(a *cli.App, ended bool) cobra.CompletionFunc {
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
			if !strings.HasPrefix(t.ID, begun) || t.State.Final() && !ended || startsOne(t.ID, already) {
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
	offer := CompleteTasks(a, ended)
	return func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(verb, already, begun)
	}
}
