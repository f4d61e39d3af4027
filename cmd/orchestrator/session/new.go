package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// newSessionFlags are the flags of session new.
type newSessionFlags struct {
	members       []string
	strict        bool
	maxIterations int32
	onMax         cli.Choice
	requireReview bool
}

func sessionNewCommand(a *cli.App) *cobra.Command {
	f := newSessionFlags{onMax: cli.Choice{Value: session.EscalateHumanReview, Of: session.Escalations}}
	verb := &cobra.Command{
		Use:   "new NAME --member AGENT=TYPE…",
		Short: "Create a session",
		Long: `Creates a session of agents. Each agent is an architect, a developer or a reviewer, and
need not run yet. The session survives restarts. Declare permanent sessions in the
file.`,
		Example: `  orchestrator session new checkout --member ada=architect --member dev=developer --member rex=reviewer
  orchestrator session new checkout --member ada=architect --member dev=developer --require-review --max-iterations 5 --on-max abort`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return newSession(a, args[0], &f) },
	}
	set := verb.Flags()
	set.StringArrayVar(&f.members, "member", nil, "member and its role in the session: `AGENT=TYPE`, may be repeated")
	set.BoolVar(&f.strict, "strict", false, "reject messages that deviate from the protocol in any way")
	set.Int32Var(&f.maxIterations, "max-iterations", session.DefaultIterations, "review a task at most `N` times, unless the task sets a limit")
	set.Var(&f.onMax, "on-max", "what happens to a task that is not approved then: abort, force_approve or human_review")
	set.BoolVar(&f.requireReview, "require-review", false, "a task is done only when it is approved")
	_ = verb.RegisterFlagCompletionFunc("member", cli.Completion(a, completeMembers))
	_ = verb.RegisterFlagCompletionFunc("max-iterations", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("on-max", f.onMax.Complete)
	return verb
}

func newSession(a *cli.App, name string, f *newSessionFlags) error {
	spec, err := f.spec(name)
	if err != nil {
		return err
	}
	return cli.Query[struct{}]{
		Operation: "create-session", Request: spec, Explain: cli.Problems,
		Quiet: func(*struct{}) error { return a.Print("%s\n", wire.Visible(name)) },
		Text: func(*struct{}) error {
			if err := a.Print("Session %s is open: %s\n", a.Paint(a.Stdout).Strong(term.OneLine(name)), memberWords(spec.Members)); err != nil {
				return err
			}
			a.Note("What they say to each other: orchestrator session show %s", term.OneLine(name))
			return nil
		},
	}.Run(a)
}

// spec returns the session for the flags.
func (f *newSessionFlags) spec(name string) (*wire.SessionSpec, error) {
	spec := &wire.SessionSpec{
		ID: name, Validation: wire.ValidationStandard, MaxIterations: int64(f.maxIterations), OnMax: f.onMax.Value, RequireReview: f.requireReview,
	}
	if f.strict {
		spec.Validation = wire.ValidationStrict
	}
	switch {
	case name == "":
		return nil, cli.UsageError("the name of the session is empty", "Write it as: orchestrator session new checkout --member AGENT=TYPE")
	case len(f.members) == 0:
		return nil, cli.UsageError("the session has no members", "Say who: --member AGENT=architect --member AGENT=developer     Which agents there are: orchestrator agent ls")
	case f.maxIterations < 1:
		return nil, cli.UsageError(fmt.Sprintf("--max-iterations cannot be %d", f.maxIterations), "It is a number of reviews, such as 3")
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

// memberOf parses AGENT=TYPE.
func memberOf(word string) (wire.SessionMember, error) {
	agent, kind, ok := strings.Cut(word, "=")
	if !ok || agent == "" {
		return wire.SessionMember{}, cli.UsageError(fmt.Sprintf("--member cannot be %q", word), "Write it as: --member AGENT=architect")
	}
	if !slices.Contains(session.AgentTypes, kind) {
		return wire.SessionMember{}, cli.UsageError(
			fmt.Sprintf("--member %s cannot be %q%s", term.OneLine(agent), kind, cli.DidYouMean(kind, session.AgentTypes)),
			"It is one of "+strings.Join(session.AgentTypes, ", "),
		)
	}
	return wire.SessionMember{AgentID: agent, AgentType: kind}, nil
}

// completeMembers completes agents, and after the = their types.
func completeMembers(a *cli.App, verb *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	if agent, _, ok := strings.Cut(begun, "="); ok {
		for _, kind := range session.AgentTypes {
			offered = append(offered, agent+"="+kind)
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.CompleteAgents(verb, nil, begun)
	for _, name := range names {
		name, about, _ := strings.Cut(name, "\t")
		offered = append(offered, cobra.CompletionWithDesc(name+"=", about))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
