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
	return cli.Group(a, &cobra.Command{
		Use:   "session",
		Short: "Inspect sessions of architects, developers and reviewers",
		Long: `In a session an architect assigns tasks, developers do them, and reviewers review them.
Each message between them is checked against the rules, stored and delivered. Sessions
are declared in the file or created here. See orchestrator help session.`,
		Example: `  orchestrator session ls
  orchestrator session show checkout
  orchestrator session send checkout message.json`,
	},
		sessionListCommand(a), sessionShowCommand(a), sessionNewCommand(a), sessionSendCommand(a),
	)
}

func sessionListCommand(a *cli.App) *cobra.Command {
	return cli.Query[wire.SessionList]{
		Operation: "list-sessions",
		Quiet: func(list *wire.SessionList) error {
			return cli.PrintNames(a, list.Sessions, func(s *wire.SessionBrief) string { return s.ID })
		},
		Text: func(list *wire.SessionList) error {
			if len(list.Sessions) == 0 {
				return a.Print("No sessions yet. Put a session block into the file (orchestrator help session), or make one:\n" +
					"orchestrator session new NAME --member AGENT=architect --member AGENT=developer\n")
			}
			return a.Print("%s", term.Table(sessionRows(list.Sessions, a.Paint(a.Stdout))))
		},
	}.Command(a, &cobra.Command{
		Use:   "ls",
		Short: "List the sessions",
		Long: `Lists the sessions: members, open tasks, open reviews, and the number of messages, with
rejected ones.`,
		Example: "  orchestrator session ls\n  orchestrator session ls -q         names alone\n  orchestrator session ls --json",
	})
}

func sessionRows(sessions []wire.SessionBrief, p term.Paint) [][]term.Cell {
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
	if state == wire.SessionOpen {
		return p.Good(text)
	}
	return p.Dim(text)
}

// memberWords returns the number of members of each type.
func memberWords(members []wire.SessionMember) string {
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

const noSessionHint = "See which there are: orchestrator session ls"

// noSession adds the session that was probably meant to an error about an unknown one.
func noSession(ctx context.Context, a *cli.App, d *client.Client, name string, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != wire.CodeNotFound {
		return err
	}
	known := sessionNames(ctx, a, d)
	if slices.Contains(known, name) {
		return err // something else was not found
	}
	if likely := cli.Nearest(name, known); likely != "" {
		f.Because = append(f.Because, fmt.Sprintf("Did you mean %q?", likely))
	}
	return cli.WithHint(err, wire.CodeNotFound, noSessionHint)
}

func sessionNames(ctx context.Context, a *cli.App, d *client.Client) []string {
	raw, err := d.Ask(ctx, "list-sessions", struct{}{})
	if err != nil {
		return nil // the caller reports the first error
	}
	list, _ := client.Decode[wire.SessionList](raw)
	var names []string
	for i := range list.Sessions {
		names = append(names, list.Sessions[i].ID)
	}
	return names
}

// completeSessions completes the names of sessions, with their members.
func completeSessions(a *cli.App, _ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, s := range cli.CompletionList[wire.SessionList](a, "list-sessions", struct{}{}).Sessions {
		offered = append(offered, cobra.CompletionWithDesc(s.ID, term.OneLine(s.State)+", "+memberWords(s.Members)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// completeOneSession is completeSessions for commands that take one session.
func completeOneSession(a *cli.App, verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeSessions(a, verb, already, begun)
}
