package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

func taskStartCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "start ID",
		Short: "Start a task",
		Long: `Sets an assigned task to running, for agents that do not report the start
themselves.`,
		Example:           "  orchestrator task start 91c0",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			return moveTask(a, args[0], "start-task", func(id string) any { return wire.TaskID{TaskID: id} })
		},
	}
}

func taskDoneCommand(a *cli.App) *cobra.Command {
	var result string
	verb := &cobra.Command{
		Use:   "done ID",
		Short: "Complete a task",
		Long: `Completes a task, on behalf of its agent. The tasks that wait for it can then start.

The result is a JSON object or any text; @FILE reads it from a file, - from
stdin. Without one it is {"success":true}.`,
		Example: `  orchestrator task done 91c0
  orchestrator task done 91c0 --result "4 files changed"
  orchestrator task done 91c0 --result '{"files": 4}'`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			document, err := cli.GivenResult(a, "result", result)
			if err != nil {
				return err
			}
			return moveTask(a, args[0], "complete-task", func(id string) any { return wire.CompleteTask{TaskID: id, Result: hub.ResultOf(document)} })
		},
	}
	verb.Flags().StringVar(&result, "result", "", "result: `JSON|TEXT`, @FILE or -")
	return verb
}

func taskFailCommand(a *cli.App) *cobra.Command {
	var why string
	verb := &cobra.Command{
		Use:   "fail ID -m TEXT",
		Short: "Fail a task",
		Long: `Fails a task, on behalf of its agent. For the effect on tasks that wait for it see
orchestrator help tasks.`,
		Example:           `  orchestrator task fail 91c0 -m "the API is gone"`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			if why == "" {
				return cli.UsageError("a task fails for a reason", `Say which: -m TEXT`)
			}
			return moveTask(a, args[0], "fail-task", func(id string) any { return wire.FailTask{TaskID: id, Error: why} })
		},
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "why, in a `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

// moveTask calls an operation on a task and prints its new state.
func moveTask(a *cli.App, word, operation string, request func(id string) any) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		ids, err := TaskIDs(ctx, a, d, []string{word})
		if err != nil {
			return err
		}
		t, text, err := askTask(ctx, a, d, operation, request(ids[0]))
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			return a.Answer(text)
		}
		return showMoved(a, &t)
	})
}

func showMoved(a *cli.App, t *Seen) error {
	if a.Flags.Quiet {
		return a.Print("%s\n", wire.Visible(t.ID))
	}
	p := a.Paint(a.Stdout)
	return a.Print("%s %s\n", p.Strong(term.ID(t.ID)), p.Task(t.State, HeldWords(&t.Task)))
}

func taskCancelCommand(a *cli.App) *cobra.Command {
	var why string
	var yes bool
	verb := &cobra.Command{
		Use:   "cancel ID…",
		Short: "Cancel tasks",
		Long: `Cancels tasks that have not ended. Their agents are notified. For the effect on tasks
that wait for them see orchestrator help tasks.

For more than one task the command asks for confirmation. Without a terminal it
requires --yes.`,
		Example: `  orchestrator task cancel 91c0 -m "not needed any more"
  orchestrator task cancel 91c0 5be1 --yes`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: CompleteTasks(a, false),
		RunE:              func(_ *cobra.Command, args []string) error { return cancelTasks(a, args, why, yes) },
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "why, in a `TEXT`")
	verb.Flags().BoolVar(&yes, "yes", false, "do not ask")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

func cancelTasks(a *cli.App, words []string, why string, yes bool) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		ids, err := TaskIDs(ctx, a, d, words)
		if err != nil {
			return err
		}
		if len(ids) > 1 && !yes {
			if err := a.Confirm(fmt.Sprintf("Cancel %d tasks?", len(ids))); err != nil {
				return err
			}
		}
		var tasks []Seen
		for _, id := range ids {
			t, _, err := askTask(ctx, a, d, "cancel-task", wire.CancelTask{TaskID: id, Reason: why})
			if len(tasks) > 0 && wasCancelled(err) { // together with an earlier one that it waited for
				t, _, err = GetTask(ctx, a, d, id)
			}
			if err == nil {
				tasks = append(tasks, t)
				if !a.Flags.JSON {
					err = showMoved(a, &t)
				}
			}
			if err != nil {
				return stoppedAt(err, tasks)
			}
		}
		if a.Flags.JSON {
			return a.Document(documentOf(tasks))
		}
		return nil
	})
}

// wasCancelled reports whether an operation failed because the task is cancelled already.
func wasCancelled(err error) bool {
	f, ok := errors.AsType[*cli.Failure](err)
	return ok && f.Code == wire.CodeConflict && f.Details["state"] == string(wire.TaskCancelled)
}

// stoppedAt adds the tasks that were cancelled before it to an error.
func stoppedAt(err error, cancelled []Seen) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || len(cancelled) == 0 {
		return err
	}
	ids := make([]string, len(cancelled))
	for i := range cancelled {
		ids[i] = cancelled[i].ID
	}
	if f.Details == nil {
		f.Details = map[string]any{}
	}
	f.Details["cancelled"] = ids
	f.Because = append(f.Because, term.Count(len(ids), "task")+" before it had been cancelled. Those after it were left as they are.")
	return f
}
