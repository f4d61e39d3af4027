package task

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

func taskPlanCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "plan ID JSON|TEXT|@FILE|-",
		Short: "Submit the plan of a task",
		Long: `Submits a plan for a task that requires one, for agents that cannot do so themselves. A
person or a planner then approves or rejects the plan.

The plan is a JSON object or any text; @FILE reads it from a file, - from stdin.`,
		Example:           "  orchestrator task plan 91c0 @plan.md",
		Args:              cli.ArgCount(2, 2),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			plan, err := givenWords(a, "the plan", args[1])
			if err != nil {
				return err
			}
			return moveTask(a, args[0], "submit-plan", func(id string) any { return wire.SubmitPlan{TaskID: id, Plan: plan} })
		},
	}
}

// givenWords returns the value of an argument that is a JSON object or any text. It returns
// an error for an empty text.
func givenWords(a *cli.App, what, value string) (wire.Raw, error) {
	text, err := a.ReadArg(what, value)
	switch {
	case err != nil:
		return nil, err
	case strings.TrimSpace(text) == "":
		return nil, cli.UsageError(what+" is empty", "Write the text, @FILE, or - for stdin")
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		return wire.Raw(object.Quote(text)), nil
	}
	document := wire.Raw(strings.TrimSpace(text))
	if !document.IsValid() {
		return nil, cli.UsageError(what+" begins like a JSON object but is not valid JSON: "+term.Clip(term.OneLine(text), 60), "Begin a text without {")
	}
	return document, nil
}

func taskApprovePlanCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "approve-plan ID",
		Short:             "Approve the plan of a task",
		Long:              "Approves the plan of a task. The agent is notified, and the task runs.",
		Example:           "  orchestrator task show 91c0          the plan\n  orchestrator task approve-plan 91c0",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: a.Completion(completePlans),
		RunE: func(_ *cobra.Command, args []string) error {
			return moveTask(a, args[0], "approve-plan", func(id string) any { return wire.TaskID{TaskID: id} })
		},
	}
}

func taskRevisePlanCommand(a *cli.App) *cobra.Command {
	var why string
	verb := &cobra.Command{
		Use:               "revise-plan ID -m TEXT",
		Short:             "Reject the plan of a task",
		Long:              "Rejects the plan of a task for a reason. The agent must submit a new plan.",
		Example:           `  orchestrator task revise-plan 91c0 -m "keep the old endpoint for a release"`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: a.Completion(completePlans),
		RunE: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.UsageError("the reason for the revision is missing", "Add it: -m TEXT")
			}
			return moveTask(a, args[0], "revise-plan", func(id string) any { return wire.RevisePlan{TaskID: id, Feedback: why} })
		},
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "reason: `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

// completePlans completes the tasks with plans that wait for approval.
func completePlans(a *cli.App, _ *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	if len(already) == 0 {
		for _, t := range tasksForShell(a) {
			if t.State == wire.TaskPlanReview && strings.HasPrefix(t.ID, begun) {
				id := term.ID(t.ID)
				if len(begun) > len(id) {
					id = t.ID
				}
				offered = append(offered, cobra.CompletionWithDesc(id, term.Clip(term.OneLine(t.Name), 40)+", "+HeldWords(&t.Task)))
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func taskAskCommand(a *cli.App) *cobra.Command {
	var about string
	verb := &cobra.Command{
		Use:   "ask ID QUESTION|@FILE|-",
		Short: "Ask a person for help with a task",
		Long: `Adds a question about a running task to the inbox, on behalf of its agent. The task has
the state needs_human until a person answers or the task is started again.`,
		Example: `  orchestrator task ask 91c0 "Which of the two schemas?"
  orchestrator inbox answer q7 "the new one"`,
		Args:              cli.ArgCount(2, 2),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneFromStdin("question", args[1], "context", about); err != nil {
				return err
			}
			question, err := a.ReadArg("QUESTION", args[1])
			if err != nil {
				return err
			}
			if strings.TrimSpace(question) == "" {
				return cli.UsageError("the question is empty", "Write the question to a person")
			}
			document, err := a.GivenDocument("context", about)
			if err != nil {
				return err
			}
			request := wire.RequestHelp{Question: question, Context: document}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return askAbout(ctx, a, d, args[0], request) })
		},
	}
	verb.Flags().StringVar(&about, "context", "", "context of the question: a `JSON` object, @FILE or -")
	return verb
}

func askAbout(ctx context.Context, a *cli.App, d *client.Client, word string, request wire.RequestHelp) (err error) {
	if request.TaskID, err = NewFinder(a, d).ID(ctx, word); err != nil {
		return err
	}
	t, text, err := askTask(ctx, a, d, "request-help", request)
	switch {
	case err != nil:
		return err
	case a.Flags.JSON:
		return a.Answer(text)
	}
	if err := showMoved(a, &t); err != nil {
		return err
	}
	if t.Details != nil && t.Help != nil {
		a.Note("Answer it: orchestrator inbox answer %s VALUE", wire.Visible(t.Help.QuestionID))
	}
	return nil
}
