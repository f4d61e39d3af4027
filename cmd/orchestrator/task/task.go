// Package task holds the commands on tasks: task add, ls, show, wait and the others, and
// graph.
package task

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Command makes the command task.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "task",
		Short: "Submit, inspect and wait for tasks",
		Long: `Tasks are the work of the agents. Each has an id, of which any unique prefix will
do, and a state. How tasks move: orchestrator help tasks. How they find their
agents, plans, and what they get of each other: orchestrator help work. How they are
handed on from agent to agent: orchestrator help delegation.`,
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

// CompleteTasks offers the ids of tasks that are not on the line yet, with
// their names: all, or those that have not ended.
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

// tasksForShell asks for the tasks, as long as a shell waits at a Tab.
func tasksForShell(a *cli.App) []Seen {
	a.Flags.Quiet = true
	door, err := a.Connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.CompletionPatience)
	defer cancel()
	tasks, _ := listTasks(ctx, a, door, wire.QueryTasks{Limit: everyTask})
	return tasks
}

// completeOneTask is completeTasks for verbs that take one.
func completeOneTask(a *cli.App, ended bool) cobra.CompletionFunc {
	offer := CompleteTasks(a, ended)
	return func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(verb, already, begun)
	}
}
