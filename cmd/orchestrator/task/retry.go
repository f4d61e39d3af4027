package task

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
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
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				r := wire.RetryTask{TaskID: id, Agent: agent, Keep: keep}
				if alone {
					r.Dependents = new(bool)
				}
				return retry(ctx, a, d, &r)
			})
		},
	}
	verb.Flags().StringVar(&agent, "agent", "", "assign it to the agent `NAME`")
	verb.Flags().BoolVar(&keep, "keep", false, "continue in its workspace as it is")
	verb.Flags().BoolVar(&alone, "alone", false, "don't retry the tasks that were cancelled with it")
	_ = verb.RegisterFlagCompletionFunc("agent", a.CompleteAgents)
	return verb
}

// retry tries a task again, and prints it with the tasks that are pending again because of it.
func retry(ctx context.Context, a *cli.App, d *client.Client, r *wire.RetryTask) error {
	var lost []Seen
	if r.Dependents == nil && !a.Flags.JSON && !a.Flags.Quiet {
		var err error
		if lost, err = cancelledByOthers(ctx, a, d); err != nil {
			return err
		}
	}
	t, text, err := askTask(ctx, a, d, "retry-task", r)
	switch {
	case err != nil:
		return err
	case a.Flags.JSON:
		return a.Answer(text)
	}
	if err := showMoved(a, &t); err != nil || len(lost) == 0 {
		return err
	}
	still, err := cancelledByOthers(ctx, a, d)
	if err != nil {
		return err
	}
	var reopened []string
	for _, k := range lost {
		if k.ID != t.ID && !slices.ContainsFunc(still, func(s Seen) bool { return s.ID == k.ID }) {
			reopened = append(reopened, term.ID(k.ID))
		}
	}
	if len(reopened) == 0 {
		return nil
	}
	return a.Print("Pending again with it: %s\n", strings.Join(reopened, ", "))
}

// cancelledByOthers returns the tasks that were cancelled because of another task.
func cancelledByOthers(ctx context.Context, a *cli.App, d *client.Client) ([]Seen, error) {
	tasks, err := listTasks(ctx, a, d, wire.QueryTasks{Status: string(wire.TaskCancelled), Limit: everyTask})
	return slices.DeleteFunc(tasks, func(k Seen) bool { return k.Reason != wire.DependencyFailed }), err
}

// completeFailed completes the id of a task that can be tried again.
func completeFailed(a *cli.App) cobra.CompletionFunc {
	return cli.OneArg(completeTasks(a, func(t *Seen) bool { return t.State == wire.TaskFailed || t.State == wire.TaskCancelled }))
}
