package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskPlanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan ID JSON|TEXT|@FILE|-",
		Short: "Submit the plan of a task",
		Long: `Submits a plan for a task that wants one, for agents that do not do so
themselves. A person or a planner then approves of it, or sends it back.

The plan is a JSON object or any text; @FILE reads it from a file, - from stdin.`,
		Example:           "  orchestrator task plan 91c0 @plan.md",
		Args:              argCount(2, 2),
		ValidArgsFunction: a.completeOneTask(false),
		RunE: func(_ *cobra.Command, args []string) error {
			plan, err := a.givenWords("the plan", args[1])
			if err != nil {
				return err
			}
			return a.moveTask(args[0], "submit-plan", func(id string) any { return wire.SubmitPlan{TaskID: id, Plan: plan} })
		},
	}
}

// givenWords is given for an argument that is a JSON object or any text, and
// must say something.
func (a *app) givenWords(what, value string) (wire.Raw, error) {
	text, err := a.readArg(what, value)
	switch {
	case err != nil:
		return nil, err
	case strings.TrimSpace(text) == "":
		return nil, usageError(what+" is empty", "Write the text itself, @FILE, or - for stdin")
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		return wire.Raw(wire.Quote(text)), nil
	}
	document := wire.Raw(strings.TrimSpace(text))
	if !document.IsValid() {
		return nil, usageError(what+" begins as a JSON object does, and is none: "+plain.Clip(plain.OneLine(text), 60), "Begin a text with a word")
	}
	return document, nil
}

func (a *app) taskApprovePlanCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "approve-plan ID",
		Short:             "Approve the plan of a task",
		Long:              "Approves the plan of a task: its agent is told, and the task runs.",
		Example:           "  orchestrator task show 91c0          the plan\n  orchestrator task approve-plan 91c0",
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.moveTask(args[0], "approve-plan", func(id string) any { return wire.TaskID{TaskID: id} })
		},
	}
}

func (a *app) taskRevisePlanCommand() *cobra.Command {
	var why string
	verb := &cobra.Command{
		Use:               "revise-plan ID -m TEXT",
		Short:             "Reject the plan of a task",
		Long:              "Sends the plan of a task back to its agent, with what is wrong with it. The agent\nplans again.",
		Example:           `  orchestrator task revise-plan 91c0 -m "keep the old endpoint for a release"`,
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return usageError("a plan is sent back for a reason", "Say which: -m TEXT")
			}
			return a.moveTask(args[0], "revise-plan", func(id string) any { return wire.RevisePlan{TaskID: id, Feedback: why} })
		},
	}
	verb.Flags().StringVarP(&why, "message", "m", "", "what is wrong with it, in a `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

// completePlans offers the tasks whose plans wait for a person.
func (a *app) completePlans(_ *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	if len(already) == 0 {
		for _, t := range a.tasksForShell() {
			if t.State == wire.TaskPlanReview && strings.HasPrefix(t.ID, begun) {
				id := plain.ID(t.ID)
				if len(begun) > len(id) {
					id = t.ID
				}
				offered = append(offered, cobra.CompletionWithDesc(id, plain.Clip(plain.OneLine(t.Name), 40)+", "+heldWords(&t.Task)))
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) taskAskCommand() *cobra.Command {
	var about string
	verb := &cobra.Command{
		Use:   "ask ID QUESTION|@FILE|-",
		Short: "Ask a person for help with a task",
		Long: `Puts a question about a running task into the inbox, for its agent. The task is
needs_human until a person answers, or it is started again.`,
		Example: `  orchestrator task ask 91c0 "Which of the two schemas?"
  orchestrator inbox answer q7 "the new one"`,
		Args:              argCount(2, 2),
		ValidArgsFunction: a.completeOneTask(false),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneFromStdin("question", args[1], "context", about); err != nil {
				return err
			}
			question, err := a.readArg("QUESTION", args[1])
			if err != nil {
				return err
			}
			if strings.TrimSpace(question) == "" {
				return usageError("the question is empty", "Write what a person is to say")
			}
			document, err := a.givenDocument("context", about)
			if err != nil {
				return err
			}
			request := wire.RequestHelp{Question: question, Context: document}
			return a.speak(func(ctx context.Context, d *client) error { return a.askAbout(ctx, d, args[0], request) })
		},
	}
	verb.Flags().StringVar(&about, "context", "", "what there is to know: a `JSON` object, @FILE or -")
	return verb
}

func (a *app) askAbout(ctx context.Context, d *client, word string, request wire.RequestHelp) (err error) {
	if request.TaskID, err = a.finder(d).id(ctx, word); err != nil {
		return err
	}
	t, text, err := a.askTask(ctx, d, "request-help", request)
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.answer(text)
	}
	if err := a.showMoved(&t); err != nil {
		return err
	}
	if t.Details != nil && t.Help != nil {
		a.note("Answer it: orchestrator inbox answer %s VALUE", wire.Visible(t.Help.QuestionID))
	}
	return nil
}
