package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// newSessionFlags are what a session is to be.
type newSessionFlags struct {
	members       []string
	strict        bool
	maxIterations int32
	onMax         choice
	requireReview bool
}

func (a *app) sessionNewCommand() *cobra.Command {
	f := newSessionFlags{onMax: choice{value: wire.EscalateHumanReview, of: wire.Escalations}}
	verb := &cobra.Command{
		Use:   "new NAME --member AGENT=TYPE…",
		Short: "Create a session",
		Long: `Makes a session of agents, each of which is an architect, a developer or a
reviewer. They need not run yet. It stays over a restart; one that every start should
have belongs in the file.`,
		Example: `  orchestrator session new checkout --member ada=architect --member dev=developer --member rex=reviewer
  orchestrator session new checkout --member ada=architect --member dev=developer --require-review --max-iterations 5 --on-max abort`,
		Args:              argCount(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.newSession(args[0], &f) },
	}
	set := verb.Flags()
	set.StringArrayVar(&f.members, "member", nil, "an agent that is in it, and as what: `AGENT=TYPE`, may be repeated")
	set.BoolVar(&f.strict, "strict", false, "forgive nothing: messages are exactly as the protocol has them")
	set.Int32Var(&f.maxIterations, "max-iterations", wire.SessionIterations, "a task is reviewed `N` times at most, if it says nothing else")
	set.Var(&f.onMax, "on-max", "what becomes of one that is not right then: abort, force_approve or human_review")
	set.BoolVar(&f.requireReview, "require-review", false, "a task is done when it is approved, not before")
	_ = verb.RegisterFlagCompletionFunc("member", a.completeMembers)
	_ = verb.RegisterFlagCompletionFunc("max-iterations", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("on-max", f.onMax.complete)
	return verb
}

func (a *app) newSession(name string, f *newSessionFlags) error {
	spec, err := f.spec(name)
	if err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "create-session", spec)
		switch {
		case err != nil:
			return problems(err)
		case a.flags.json:
			return a.answer(text)
		case a.flags.quiet:
			return a.print("%s\n", wire.Visible(name))
		}
		if err := a.print("Session %s is open: %s\n", a.paint(a.stdout).strong(plain.OneLine(name)), memberWords(spec.Members)); err != nil {
			return err
		}
		a.note("What they say to each other: orchestrator session show %s", plain.OneLine(name))
		return nil
	})
}

// spec is what the flags say.
func (f *newSessionFlags) spec(name string) (*wire.SessionSpec, error) {
	spec := &wire.SessionSpec{
		ID: name, Validation: wire.ValidationStandard, MaxIterations: int64(f.maxIterations), OnMax: f.onMax.value, RequireReview: f.requireReview,
	}
	if f.strict {
		spec.Validation = wire.ValidationStrict
	}
	switch {
	case name == "":
		return nil, usageError("the name of the session is empty", "Write it as: orchestrator session new checkout --member AGENT=TYPE")
	case len(f.members) == 0:
		return nil, usageError("the session has no members", "Say who: --member AGENT=architect --member AGENT=developer     Which agents there are: orchestrator agent ls")
	case f.maxIterations < 1:
		return nil, usageError(fmt.Sprintf("--max-iterations cannot be %d", f.maxIterations), "It is a number of reviews, such as 3")
	}
	for _, word := range f.members {
		m, err := memberOf(word)
		if err != nil {
			return nil, err
		}
		spec.Members = append(spec.Members, m)
	}
	return spec, nil
}

// memberOf reads AGENT=TYPE.
func memberOf(word string) (wire.SessionMember, error) {
	agent, kind, ok := strings.Cut(word, "=")
	if !ok || agent == "" {
		return wire.SessionMember{}, usageError(fmt.Sprintf("--member cannot be %q", word), "Write it as: --member AGENT=architect")
	}
	if !slices.Contains(wire.AgentTypes, kind) {
		return wire.SessionMember{}, usageError(
			fmt.Sprintf("--member %s cannot be %q%s", plain.OneLine(agent), kind, didYouMean(kind, wire.AgentTypes)),
			"It is one of "+strings.Join(wire.AgentTypes, ", "),
		)
	}
	return wire.SessionMember{AgentID: agent, AgentType: kind}, nil
}

// completeMembers offers agents, and behind the sign what they may be.
func (a *app) completeMembers(verb *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	if agent, _, ok := strings.Cut(begun, "="); ok {
		for _, kind := range wire.AgentTypes {
			offered = append(offered, agent+"="+kind)
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.completeAgents(verb, nil, begun)
	for _, name := range names {
		name, about, _ := strings.Cut(name, "\t")
		offered = append(offered, cobra.CompletionWithDesc(name+"=", about))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
