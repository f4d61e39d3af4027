package task

import (
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
)

func taskRetryCommand(a *cli.App) *cobra.Command {
	var agent string
	var keep, alone bool
	verb := &cobra.Command{
		Use:   "retry ID",
		Short: "Try a failed or cancelled task again",
		Long: `Makes a failed or cancelled task pending again, and with it the tasks that were cancelled
because of it. Its history stays, and the count of attempts continues.

A task with a workspace begins on a fresh branch. If the last attempt has work, its branch
and its folder are kept, with "-try1", "-try2" and so on at the end of their names. With
--keep the task continues in its workspace.

Without --agent, a task that was assigned by name goes to the same agent. Another task goes
to any agent that fits, even the one that failed it.`,
		Example: `  orchestrator task retry 91c0
  orchestrator task retry 91c0 --agent coder-1
  orchestrator task retry 91c0 --keep`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeFailed(a),
		RunE: func(_ *cobra.Command, args []string) error {
			return moveTask(a, args[0], "retry-task", func(id string) any {
				r := wire.RetryTask{TaskID: id, Agent: agent, Keep: keep}
				if alone {
					r.Dependents = new(bool)
				}
				return r
			})
		},
	}
	verb.Flags().StringVar(&agent, "agent", "", "assign it to the agent `NAME`")
	verb.Flags().BoolVar(&keep, "keep", false, "continue in its workspace as it is")
	verb.Flags().BoolVar(&alone, "alone", false, "don't retry the tasks that were cancelled with it")
	_ = verb.RegisterFlagCompletionFunc("agent", a.CompleteAgents)
	return verb
}

// completeFailed completes the id of a task that can be tried again.
func completeFailed(a *cli.App) cobra.CompletionFunc {
	return cli.OneArg(completeTasks(a, func(t *Seen) bool { return t.State == wire.TaskFailed || t.State == wire.TaskCancelled }))
}
