package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) sessionCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "session",
		Short: "Inspect sessions of architects, developers and reviewers",
		Long: `In a session an architect gives out tasks, developers do them, and reviewers judge
them. Each message between them is checked against the rules, kept, and delivered.
Sessions stand in the file, or are made here. More about all of it:
orchestrator help session.`,
		Example: `  orchestrator session ls
  orchestrator session show checkout
  orchestrator session send checkout message.json`,
	},
		a.sessionListCommand(), a.sessionShowCommand(), a.sessionNewCommand(), a.sessionSendCommand(),
	)
}

func (a *app) sessionListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the sessions",
		Long: `Lists the sessions: who is in each, how many of its tasks are not over yet, how
many reviews wait for their result, and how many messages there were, of which some
may have been refused.`,
		Example:           "  orchestrator session ls\n  orchestrator session ls -q         names alone\n  orchestrator session ls --json",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.sessions() },
	}
}

func (a *app) sessions() error {
	return a.speak(func(ctx context.Context, d *client) error {
		raw, err := a.ask(ctx, d, "list-sessions", struct{}{})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.answer(raw)
		}
		list, err := decode[wire.SessionList](raw)
		switch {
		case err != nil:
			return err
		case a.flags.quiet:
			return printNames(a, list.Sessions, func(s *wire.SessionBrief) string { return s.ID })
		case len(list.Sessions) == 0:
			return a.print("No sessions yet. Put a session block into the file (orchestrator help session), or make one:\n" +
				"orchestrator session new NAME --member AGENT=architect --member AGENT=developer\n")
		}
		return a.print("%s", table(sessionRows(list.Sessions, a.paint(a.stdout))))
	})
}

func sessionRows(sessions []wire.SessionBrief, p paint) [][]cell {
	rows := [][]cell{{text("NAME"), text("STATE"), text("MEMBERS"), figure("TASKS"), figure("REVIEWS"), figure("MESSAGES"), figure("REFUSED")}}
	for i := range sessions {
		s := &sessions[i]
		refused := figure(strconv.FormatInt(s.Refused, 10))
		if s.Refused > 0 {
			refused.ink = p.warn
		}
		rows = append(rows, []cell{
			text(plain.OneLine(s.ID)), {text: plain.OneLine(s.State), ink: func(t string) string { return p.session(s.State, t) }},
			text(memberWords(s.Members)), figure(fmt.Sprintf("%d/%d", s.Open, s.Tasks)), figure(strconv.Itoa(s.Reviews)),
			figure(strconv.FormatInt(s.Messages, 10)), refused,
		})
	}
	return rows
}

// session is the colour of a session's state.
func (p paint) session(state, text string) string {
	if state == wire.SessionOpen {
		return p.good(text)
	}
	return p.dim(text)
}

// memberWords say how many members there are of each type, in the order in which
// work goes.
func memberWords(members []wire.SessionMember) string {
	var said []string
	for _, kind := range wire.AgentTypes {
		n := 0
		for _, m := range members {
			if m.AgentType == kind {
				n++
			}
		}
		if n > 0 {
			said = append(said, plain.Count(n, kind))
		}
	}
	return cmp.Or(strings.Join(said, ", "), "no member")
}

const noSessionHint = "See which there are: orchestrator session ls"

// noSession adds to a refusal of a session that is not known, which was probably
// meant.
func (a *app) noSession(ctx context.Context, d *client, name string, err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || f.code != wire.CodeNotFound {
		return err
	}
	known := a.sessionNames(ctx, d)
	if slices.Contains(known, name) {
		return err // it is something else that is not there
	}
	if likely := nearest(name, known); likely != "" {
		f.because = append(f.because, fmt.Sprintf("Did you mean %q?", likely))
	}
	return hinted(err, wire.CodeNotFound, noSessionHint)
}

func (a *app) sessionNames(ctx context.Context, d *client) []string {
	raw, err := d.ask(ctx, "list-sessions", struct{}{})
	if err != nil {
		return nil // what is wrong is known already
	}
	list, _ := decode[wire.SessionList](raw)
	var names []string
	for i := range list.Sessions {
		names = append(names, list.Sessions[i].ID)
	}
	return names
}

// completeSessions offers the names of sessions, with who is in them.
func (a *app) completeSessions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, s := range forShell[wire.SessionList](a, "list-sessions", struct{}{}).Sessions {
		offered = append(offered, cobra.CompletionWithDesc(s.ID, plain.OneLine(s.State)+", "+memberWords(s.Members)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// completeOneSession is completeSessions for verbs that take one.
func (a *app) completeOneSession(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeSessions(verb, already, begun)
}
