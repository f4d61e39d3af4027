package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskAssignCommand() *cobra.Command {
	var auto, plan bool
	verb := &cobra.Command{
		Use:   "assign ID AGENT|--auto",
		Short: "Give a task to an agent",
		Long: `Gives a pending task to an agent, which is told and says itself when it starts.
With --require-plan it says first how it will go about it, and starts when the
plan is approved.

--auto gives a task that has requirements to the agent that fits them best. When
no agent fits it says why, agent by agent, and the exit code is 1.`,
		Example: `  orchestrator task assign 91c0 coder-0
  orchestrator task assign 91c0 coder-0 --require-plan
  orchestrator task assign --auto 91c0`,
		Args:              argCount(1, 2),
		ValidArgsFunction: a.completeAssignment,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case auto && len(args) > 1:
				return usageError("--auto finds the agent itself", "Leave out "+args[1]+", or --auto")
			case auto && plan:
				return usageError("--require-plan is for an agent that is named", "Name it: orchestrator task assign "+args[0]+" AGENT --require-plan")
			case auto:
				return a.speak(func(ctx context.Context, d *client) error { return a.autoAssign(ctx, d, args[0]) })
			case len(args) == 1:
				return usageError("the agent is missing", "Name the agent, or let the best one be found: --auto")
			}
			return a.moveTask(args[0], "assign-task", func(id string) any {
				return wire.AssignTask{TaskID: id, Agent: args[1], RequirePlan: plan}
			})
		},
	}
	verb.Flags().BoolVar(&auto, "auto", false, "to the agent that fits its requirements best")
	verb.Flags().BoolVar(&plan, "require-plan", false, "the agent says first how it will go about it")
	return verb
}

// completeAssignment offers tasks that have not ended, and then agents.
func (a *app) completeAssignment(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(already) {
	case 0:
		return a.completeTasks(false)(verb, already, begun)
	case 1:
		return a.completeAgents(verb, nil, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) autoAssign(ctx context.Context, d *client, word string) error {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return err
	}
	text, err := a.ask(ctx, d, "auto-assign", wire.TaskID{TaskID: id})
	if err != nil {
		return notMatched(a.explained(ctx, d, err), id)
	}
	reply, err := decode[wire.Assignment](text)
	if err != nil {
		return err
	}
	if reply.Status != wire.Assigned {
		return a.nobodyFits(ctx, d, id, text)
	}
	switch {
	case a.flags.json:
		return a.answer(text)
	case a.flags.quiet:
		return a.print("%s\n", wire.Visible(reply.ServerName))
	}
	return a.print("%s assigned to %s, score %d\n", a.paint(a.stdout).strong(plain.ID(id)), plain.OneLine(reply.ServerName), reply.MatchScore)
}

// notMatched adds to a refusal what can be done for a task that has no
// requirements.
func notMatched(err error, id string) error {
	f, ok := errors.AsType[*failure](err)
	if ok && f.details["reason"] == "no_requirements" {
		f.exit = exitConflict // the command line was right
		f.hint = fmt.Sprintf("Name the agent: orchestrator task assign %s AGENT     Who could have it: orchestrator task match %[1]s", plain.ID(id))
	}
	return err
}

// nobodyFits is the answer when no agent fits: an answer, for programs as for
// people, and a no.
func (a *app) nobodyFits(ctx context.Context, d *client, id string, text []byte) error {
	if a.flags.json {
		if err := a.answer(text); err != nil {
			return err
		}
		return exitWith(exitNo)
	}
	t, _, err := a.getTask(ctx, d, id)
	if err != nil {
		return err
	}
	fits, err := a.fits(ctx, d, &t)
	if err != nil {
		return err
	}
	f := &failure{
		exit: exitNo, code: codeFailed, message: "no agent fits " + taskLabel(id, t.Name),
		hint: fmt.Sprintf("It waits for one that does. Or give it to an agent all the same: orchestrator task assign %s AGENT", plain.ID(id)),
	}
	const few = 10
	for _, fit := range fits[:min(few, len(fits))] {
		f.because = append(f.because, plain.OneLine(fit.agent)+" "+fit.words())
	}
	if len(fits) > few {
		f.because = append(f.because, fmt.Sprintf("%d more do not: orchestrator task match %s", len(fits)-few, plain.ID(id)))
	}
	return f
}

// isAgent makes sure that there is an agent of a name.
func (a *app) isAgent(ctx context.Context, d *client, name string) error {
	text, err := a.ask(ctx, d, "query-agents", wire.QueryAgents{})
	if err != nil {
		return err
	}
	list, err := decode[wire.AgentList](text)
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
	return &failure{
		exit: exitNotFound, code: wire.CodeNotFound, message: fmt.Sprintf("no agent is called %q%s", name, didYouMean(name, names)),
		hint: noAgentHint, details: map[string]any{"agent": name},
	}
}

// butMade adds to why a new task could not be given to its agent that it is
// there all the same.
func butMade(err error, t *taskSeen) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	if f.details == nil {
		f.details = map[string]any{}
	}
	f.details["taskId"] = t.ID
	f.because = append(f.because, "The task is there: "+taskLabel(t.ID, t.Name)+".")
	if f.hint == "" {
		f.hint = "See what became of it: orchestrator task show " + plain.ID(t.ID)
	}
	return f
}
