// Package session holds the commands on sessions and their reviews.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// Command returns the session command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "session",
		Short: "Inspect sessions of architects, developers and reviewers",
		Long: `In a session an architect assigns tasks, developers do them, and reviewers review them.
Each message between them is checked against the rules, stored and delivered. Sessions
are declared in the file or created here. See orchestrator help session.`,
		Example: `  orchestrator session ls
  orchestrator session show checkout
  orchestrator session send checkout message.json`,
	},
		cli.OnRecord(sessionListCommand(a)), cli.OnRecord(sessionShowCommand(a)), sessionNewCommand(a), sessionSendCommand(a),
	)
}

func sessionListCommand(a *cli.App) *cobra.Command {
	return cli.Query[session.List]{
		Operation: "list-sessions",
		Quiet: func(list *session.List) error {
			return cli.PrintNames(a, list.Sessions, func(s *session.Brief) string { return s.ID })
		},
		Text: func(list *session.List) error {
			if len(list.Sessions) == 0 {
				return a.Print("No sessions yet. Add a session block to the file (orchestrator help session), or create one:\n" +
					"orchestrator session new NAME --member AGENT=architect --member AGENT=developer\n")
			}
			return a.Print("%s", term.Table(sessionRows(list.Sessions, a.Paint(a.Stdout))))
		},
	}.Command(a, &cobra.Command{
		Use:   "ls",
		Short: "List the sessions",
		Long: `Lists the sessions: members, open tasks, open reviews, and the number of messages, with
rejected ones.`,
		Example: "  orchestrator session ls\n  orchestrator session ls -q         only the names\n  orchestrator session ls --json",
	})
}

func sessionRows(sessions []session.Brief, p term.Paint) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("NAME"), term.Text("STATE"), term.Text("MEMBERS"), term.Figure("TASKS"), term.Figure("REVIEWS"), term.Figure("MESSAGES"), term.Figure("REFUSED")}}
	for i := range sessions {
		s := &sessions[i]
		refused := term.Figure(strconv.FormatInt(s.Refused, 10))
		if s.Refused > 0 {
			refused.Ink = p.Warn
		}
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(s.ID)), {Text: term.OneLine(s.State), Ink: func(t string) string { return stateText(p, s.State, t) }},
			term.Text(memberWords(s.Members)), term.Figure(fmt.Sprintf("%d/%d", s.Open, s.Tasks)), term.Figure(strconv.Itoa(s.Reviews)),
			term.Figure(strconv.FormatInt(s.Messages, 10)), refused,
		})
	}
	return rows
}

// stateText paints a text in the color of a session's state.
func stateText(p term.Paint, state, text string) string {
	if state == session.Open {
		return p.Good(text)
	}
	return p.Dim(text)
}

// memberWords returns the number of members of each type.
func memberWords(members []session.Member) string {
	var said []string
	for _, kind := range session.AgentTypes {
		n := 0
		for _, m := range members {
			if m.AgentType == kind {
				n++
			}
		}
		if n > 0 {
			said = append(said, term.Count(n, kind))
		}
	}
	return cmp.Or(strings.Join(said, ", "), "no member")
}

const noSessionHint = "List them: orchestrator session ls"

// noSession adds the session that was probably meant to an error about an unknown one.
func noSession(ctx context.Context, d *client.Client, name string, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != wire.CodeNotFound {
		return err
	}
	known := sessionNames(ctx, d)
	if slices.Contains(known, name) {
		return err // another object was not found
	}
	if likely := cli.Nearest(name, known); likely != "" {
		f.Because = append(f.Because, fmt.Sprintf("Did you mean %q?", likely))
	}
	return cli.WithHint(err, wire.CodeNotFound, noSessionHint)
}

func sessionNames(ctx context.Context, d *client.Client) []string {
	raw, err := d.Ask(ctx, "list-sessions", struct{}{})
	if err != nil {
		return nil // the caller reports the first error
	}
	list, _ := client.Decode[session.List](raw)
	var names []string
	for i := range list.Sessions {
		names = append(names, list.Sessions[i].ID)
	}
	return names
}

// completeSessions completes the names of sessions, with their members.
func completeSessions(a *cli.App, _ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, s := range cli.CompletionList[session.List](a, "list-sessions", struct{}{}).Sessions {
		offered = append(offered, cobra.CompletionWithDesc(s.ID, term.OneLine(s.State)+", "+memberWords(s.Members)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

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
		Example: `  orchestrator session new shop --member ada=architect --member dev=developer
  orchestrator session new shop --member ada=architect --member dev=developer \
    --member rex=reviewer --require-review --max-iterations 5 --on-max abort`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return newSession(a, args[0], &f) },
	}
	set := verb.Flags()
	set.StringArrayVar(&f.members, "member", nil, "member and its role in the session: `AGENT=TYPE`, may be repeated")
	set.BoolVar(&f.strict, "strict", false, "reject every deviation from the protocol")
	set.Int32Var(&f.maxIterations, "max-iterations", session.DefaultIterations, "review a task at most `N` times, unless the task sets a limit")
	set.Var(&f.onMax, "on-max", "at that limit: abort, force_approve or human_review")
	set.BoolVar(&f.requireReview, "require-review", false, "require approval before a task is done")
	_ = verb.RegisterFlagCompletionFunc("member", a.Completion(completeMembers))
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
			a.Note("Its messages: orchestrator session show %s", term.OneLine(name))
			return nil
		},
	}.Run(a)
}

// spec returns the session for the flags.
func (f *newSessionFlags) spec(name string) (*session.Spec, error) {
	spec := &session.Spec{
		ID: name, Validation: session.ValidationStandard, MaxIterations: int64(f.maxIterations), OnMax: f.onMax.Value, RequireReview: f.requireReview,
	}
	if f.strict {
		spec.Validation = session.ValidationStrict
	}
	switch {
	case name == "":
		return nil, cli.UsageError("the name of the session is empty", "Usage: orchestrator session new checkout --member AGENT=TYPE")
	case len(f.members) == 0:
		return nil, cli.UsageError("the session has no members", "Name them: --member AGENT=architect --member AGENT=developer     List the agents: orchestrator agent ls")
	case f.maxIterations < 1:
		return nil, cli.UsageError(fmt.Sprintf("--max-iterations cannot be %d", f.maxIterations), "Use a number of reviews, for example 3")
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
func memberOf(word string) (session.Member, error) {
	agent, kind, ok := strings.Cut(word, "=")
	if !ok || agent == "" {
		return session.Member{}, cli.UsageError(fmt.Sprintf("--member cannot be %q", word), "Write it as: --member AGENT=architect")
	}
	if !slices.Contains(session.AgentTypes, kind) {
		return session.Member{}, cli.UsageError(
			fmt.Sprintf("--member %s cannot be %q%s", term.OneLine(agent), kind, cli.DidYouMean(kind, session.AgentTypes)),
			"Use one of "+strings.Join(session.AgentTypes, ", "),
		)
	}
	return session.Member{AgentID: agent, AgentType: kind}, nil
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

func sessionSendCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "send NAME FILE|-",
		Short: "Send a message in a session",
		Long: `Sends a message in a session: one JSON object, in a file or on stdin. At the socket you
may send for every member; inside an agent only for that agent. A repeated message with
the same message_id and content is sent once.`,
		Example: `  orchestrator session send checkout assignment.json
  id=$(orchestrator session send checkout - -q <assignment.json)`,
		Args: cli.ArgCount(2, 2),
		ValidArgsFunction: func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return cli.OneArg(a.Completion(completeSessions))(verb, already, begun)
		},
		RunE: func(_ *cobra.Command, args []string) error { return say(a, args[0], args[1]) },
	}
}

func say(a *cli.App, sessionID, file string) error {
	source := "@" + file
	if file == "-" {
		source = file
	}
	text, err := a.ReadArg("FILE", source)
	if err != nil {
		return err
	}
	message := wire.Raw(text)
	if !message.IsValid() || message.Kind() != '{' {
		return cli.UsageError(fmt.Sprintf("%s is not a JSON object: %s", file, term.Clip(term.OneLine(text), 60)), "The format of messages: orchestrator help session")
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		return cli.Query[session.Said]{
			Operation: "send-session-message", Request: wire.SaySession{SessionID: sessionID, Session: wire.Session{Document: message}},
			Explain: func(err error) error { return cli.Problems(noSession(ctx, d, sessionID, err)) },
			Quiet:   func(said *session.Said) error { return a.Print("%s\n", term.OneLine(said.MessageID)) },
			Text:    func(said *session.Said) error { return showSaid(a, said) },
		}.Send(ctx, a, d)
	})
}

func showSaid(a *cli.App, said *session.Said) error {
	id := term.OneLine(said.MessageID)
	verb := "Sent "
	if said.Duplicate {
		verb = "Already sent "
	}
	more := ""
	if said.SequenceNumber > 0 {
		more += fmt.Sprintf("  sequence %d", said.SequenceNumber)
	}
	if said.CorrelationID != "" {
		more += "  chain " + term.OneLine(said.CorrelationID)
	}
	if err := a.Print("%s%s in %s%s\n", verb, a.Paint(a.Stdout).Strong(id), term.OneLine(said.SessionID), more); err != nil {
		return err
	}
	if said.Held {
		a.Note("It waits. It is delivered when the tasks that it depends on are done")
	}
	for _, note := range said.Notes {
		a.Note("%s %s", a.Paint(a.Stderr).Warn("Note:"), term.OneLine(note))
	}
	return nil
}
