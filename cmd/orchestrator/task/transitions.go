package task

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

func taskAssignCommand(a *cli.App) *cobra.Command {
	var auto, plan bool
	verb := &cobra.Command{
		Use:   "assign ID AGENT|--auto",
		Short: "Give a task to an agent",
		Long: `Assigns a pending task to an agent. The agent is notified and must start the task
itself. With --require-plan it first submits a plan and starts when that is approved.

--auto assigns a task with requirements to the agent that fits best. If no agent fits,
the reasons are listed for each agent, and the exit code is 1.`,
		Example: `  orchestrator task assign 91c0 coder-0
  orchestrator task assign 91c0 coder-0 --require-plan
  orchestrator task assign --auto 91c0`,
		Args:              cli.ArgCount(1, 2),
		ValidArgsFunction: a.Completion(completeAssignment),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case auto && len(args) > 1:
				return cli.UsageError("--auto cannot be combined with an agent", "Leave out "+args[1]+", or --auto")
			case auto && plan:
				return cli.UsageError("--require-plan requires an agent", "Name it: orchestrator task assign "+args[0]+" AGENT --require-plan")
			case auto:
				return onTask(a, args[0], autoAssign)
			case len(args) == 1:
				return cli.UsageError("the agent is missing", "Name the agent, or find the best one: --auto")
			}
			return moveTask(a, args[0], "assign-task", func(id string) any {
				return wire.AssignTask{TaskID: id, Agent: args[1], RequirePlan: plan}
			})
		},
	}
	verb.Flags().BoolVar(&auto, "auto", false, "assign it to the agent that fits its requirements best")
	verb.Flags().BoolVar(&plan, "require-plan", false, "the agent must submit a plan for approval first")
	return verb
}

// completeAssignment completes a task that has not ended, and then an agent.
func completeAssignment(a *cli.App, verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(already) {
	case 0:
		return CompleteTasks(a, false)(verb, already, begun)
	case 1:
		return a.CompleteAgents(verb, nil, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func autoAssign(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	text, err := a.Ask(ctx, d, "auto-assign", wire.TaskID{TaskID: id})
	if err != nil {
		return notMatched(explained(ctx, a, d, err), id)
	}
	reply, err := client.Decode[wire.Assignment](text)
	if err != nil {
		return err
	}
	if reply.Status != hub.Assigned {
		return nobodyFits(ctx, a, d, id, text)
	}
	switch {
	case a.Flags.JSON:
		return a.Answer(text)
	case a.Flags.Quiet:
		return a.Print("%s\n", wire.Visible(reply.ServerName))
	}
	return a.Print("%s assigned to %s, score %d\n", a.Paint(a.Stdout).Strong(term.ID(id)), term.OneLine(reply.ServerName), reply.MatchScore)
}

// notMatched adds the next step for a task without requirements to an error.
func notMatched(err error, id string) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if ok && f.Details["reason"] == "no_requirements" {
		f.Exit = cli.ExitConflict // the command line was right
		f.Hint = fmt.Sprintf("Name the agent: orchestrator task assign %s AGENT     Compare agents: orchestrator task match %[1]s", term.ID(id))
	}
	return err
}

// nobodyFits reports that no agent fits a task, with the reasons. The exit code is ExitNo.
func nobodyFits(ctx context.Context, a *cli.App, d *client.Client, id string, text []byte) error {
	if a.Flags.JSON {
		if err := a.Answer(text); err != nil {
			return err
		}
		return cli.ExitWith(cli.ExitNo)
	}
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	fits, err := Fits(ctx, a, d, &t)
	if err != nil {
		return err
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no agent fits " + term.TaskLabel(id, t.Name),
		Hint: fmt.Sprintf("It waits for an agent that fits. To assign it anyway: orchestrator task assign %s AGENT", term.ID(id)),
	}
	const few = 10
	for _, fit := range fits[:min(few, len(fits))] {
		f.Because = append(f.Because, term.OneLine(fit.Agent)+" "+fit.Words())
	}
	if len(fits) > few {
		f.Because = append(f.Because, fmt.Sprintf("%d more do not fit: orchestrator task match %s", len(fits)-few, term.ID(id)))
	}
	return f
}

// isAgent returns an error if no agent has the name.
func isAgent(ctx context.Context, a *cli.App, d *client.Client, name string) error {
	text, err := a.Ask(ctx, d, "query-agents", wire.QueryAgents{})
	if err != nil {
		return err
	}
	list, err := client.Decode[wire.AgentList](text)
	if err != nil {
		return err
	}
	var names []string
	for _, agent := range list.Agents {
		names = append(names, agent.ID)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("agent %q does not exist%s", name, cli.DidYouMean(name, names)),
		Hint: cli.NoAgentHint, Details: map[string]any{"agent": name},
	}
}

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
			document, err := a.GivenResult("result", result)
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
				return cli.UsageError("the reason for the failure is missing", `Add it: -m TEXT`)
			}
			return moveTask(a, args[0], "fail-task", func(id string) any { return wire.FailTask{TaskID: id, Error: why} })
		},
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "reason: `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

// moveTask calls an operation on a task and prints its new state.
func moveTask(a *cli.App, word, operation string, request func(id string) any) error {
	return onTask(a, word, func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
		t, text, err := askTask(ctx, a, d, operation, request(id))
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
		Example: `  orchestrator task cancel 91c0 -m "no longer needed"
  orchestrator task cancel 91c0 5be1 --yes`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: CompleteTasks(a, false),
		RunE:              func(_ *cobra.Command, args []string) error { return cancelTasks(a, args, why, yes) },
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "reason: `TEXT`")
	verb.Flags().BoolVar(&yes, "yes", false, "do not ask")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

func cancelTasks(a *cli.App, words []string, why string, yes bool) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		ids, err := taskIDs(ctx, a, d, words)
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
	f.Because = append(f.Because, term.Count(len(ids), "task")+" before it had been cancelled. The tasks after it were not changed.")
	return f
}
