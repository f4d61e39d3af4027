package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/bus"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// TokenCommand returns the token command.
func TokenCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use: "token", Short: "Manage the tokens of people and actors",
		Example: "  ORC_TOKEN=$(orchestrator token issue --sub ann)\n  ORC_TOKEN=$(orchestrator token issue --actor HO:attic)",
	},
		tokenIssueCommand(a), tokenListCommand(a), tokenRevokeCommand(a),
	)
}

// tokenFlags are the flags of token issue: the holder, a person or an actor, and its
// rights.
type tokenFlags struct {
	subject string
	role    cli.Choice
	actor   string
	overlap cli.Duration
	ttl     cli.Duration
}

func tokenIssueCommand(a *cli.App) *cobra.Command {
	f := tokenFlags{role: cli.Choice{Value: wire.PersonOperator, Of: wire.PersonRoles}}
	verb := &cobra.Command{
		Use:   "issue --sub NAME | --actor ID",
		Short: "Create a token for a person or an actor",
		Long: `Creates a token that lets a program or a person use this orchestrator over the
network. Only the token is printed to stdout, and only once. On this machine, no token
is needed.

With --sub the token is for a person and is valid for 8 hours. A viewer has read access
only.

With --actor the token is for an external actor, which may only send and read messages.
The token of an actor HO:NAME also lets the machine NAME join as a host: see
orchestrator join. A token of an actor is valid until it is revoked. The actor's older
tokens expire at once, or after --overlap, which leaves time to distribute the new token.`,
		Example: `  orchestrator token issue --sub ann
  ORC_TOKEN=$(orchestrator token issue --sub ann --role viewer --ttl 1h)
  orchestrator token issue --actor PO:shop --overlap 10m
  orchestrator token issue --actor HO:gpu-1 -q >gpu-1.token    for a host`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			request, err := f.request(a, verb)
			if err != nil {
				return err
			}
			return issueToken(a, request)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.subject, "sub", "", "`NAME` of the person, as it is recorded")
	set.Var(&f.role, "role", "role of the person: admin, operator or viewer")
	set.StringVar(&f.actor, "actor", "", "the actor: `ID`, such as HO:host or PO:project")
	set.Var(&f.overlap, "overlap", "keep old tokens of the actor valid for `DUR`")
	set.Var(&f.ttl, "ttl", "lifetime: `DUR`")
	_ = verb.RegisterFlagCompletionFunc("role", f.role.Complete)
	_ = verb.RegisterFlagCompletionFunc("actor", bus.CompleteActors(a))
	for _, name := range []string{"sub", "overlap", "ttl"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return verb
}

// request returns the request for the flags: the token of a person or of an actor.
func (f *tokenFlags) request(a *cli.App, verb *cobra.Command) (*wire.IssueToken, error) {
	given := verb.Flags().Changed
	if err := holds(verb, f.ttl.Duration); err != nil {
		return nil, err
	}
	switch {
	case given("sub") && given("actor"):
		return nil, cli.UsageError("--sub and --actor cannot be combined", "A token is for a person or for an actor: leave one out")
	case given("actor") && strings.TrimSpace(f.actor) == "", !given("actor") && strings.TrimSpace(f.subject) == "":
		return nil, cli.UsageError("the holder of the token is missing", "Add it: --sub NAME, or --actor ID")
	case given("actor") && given("role"):
		return nil, cli.UsageError("--role is only for tokens of people", "Leave it out")
	case given("sub") && given("overlap"):
		return nil, cli.UsageError("--overlap is only for tokens of actors: earlier tokens of a person stay valid", "Leave it out")
	}
	if host, ok := strings.CutPrefix(f.actor, "HO:"); ok && !mail.IsName(host) {
		return nil, cli.UsageError(fmt.Sprintf("%q is not a host name: use letters, digits and . _ -, and begin with a letter or a digit", host), "Choose another name, for example: --actor HO:gpu-1")
	}
	if f.actor == "" {
		return &wire.IssueToken{Subject: f.subject, Role: f.role.Value, TTL: f.ttl.Milliseconds()}, nil
	}
	return &wire.IssueToken{Actor: f.actor, Overlap: f.overlap.Milliseconds(), TTL: f.ttl.Milliseconds()},
		bus.ActorGiven(a, "actor", f.actor, mail.CheckActor)
}

// holds returns an error for a --ttl of less than a second.
func holds(verb *cobra.Command, ttl time.Duration) error {
	if verb.Flags().Changed("ttl") && ttl < time.Second {
		return cli.UsageError("--ttl must be 1s or more", "Leave it out for the default")
	}
	return nil
}

func issueToken(a *cli.App, request *wire.IssueToken) error {
	return cli.Query[wire.IssuedToken]{
		Operation: "issue-token", Request: request,
		Explain: func(err error) error {
			return cli.WithHint(err, wire.CodeConflict, "Agents on other machines use keys: orchestrator key issue AGENT")
		},
		Text: func(issued *wire.IssuedToken) error {
			if err := a.Print("%s\n", issued.Token); err != nil {
				return err
			}
			for _, sentence := range tokenWords(issued, request.Overlap, time.Now()) {
				a.Note("%s", sentence)
			}
			return nil
		},
	}.Run(a)
}

// tokenWords returns the sentences printed with a new token: its use, and when older ones
// end.
func tokenWords(issued *wire.IssuedToken, overlap int64, now time.Time) []string {
	const safe = " It is shown once: keep it in a safe place."
	until := ""
	if issued.ExpiresAt != "" {
		until = ", until " + term.Clock(issued.ExpiresAt, now, time.TimeOnly)
	}
	if issued.Actor == "" {
		words := []string{fmt.Sprintf("This is token %s of %s, %s%s.", term.OneLine(issued.ID), term.OneLine(issued.Subject), term.OneLine(issued.Role), until) + safe}
		if issued.Role != wire.PersonViewer {
			words = append(words, "Its messages on the bus are from IO:"+term.OneLine(issued.Subject)+".")
		}
		return words
	}
	older := "Older tokens of " + term.OneLine(issued.Actor) + " are no longer valid."
	if overlap > 0 {
		end := object.Timestamp(now.Add(time.Duration(overlap) * time.Millisecond))
		older = "Older tokens of " + term.OneLine(issued.Actor) + " are valid until " + term.Clock(end, now, time.TimeOnly) + "."
	}
	return []string{fmt.Sprintf("This is token %s of %s%s.", term.OneLine(issued.ID), term.OneLine(issued.Actor), until) + safe, older}
}

func tokenListCommand(a *cli.App) *cobra.Command {
	return listing(a, "list-tokens", "No tokens. Issue one: orchestrator token issue --sub NAME, or --actor ID").Command(a, &cobra.Command{
		Use:     "ls",
		Short:   "List the tokens of people and of actors",
		Long:    "Lists the valid tokens, with their holders, roles and expiry times. The secrets are\nnot shown: only fingerprints of them are stored.",
		Example: "  orchestrator token ls\n  orchestrator token ls --json",
	})
}

func tokenRevokeCommand(a *cli.App) *cobra.Command {
	var yes, all bool
	verb := &cobra.Command{
		Use:   "revoke ID | --all",
		Short: "Revoke the token of a person or of an actor",
		Long: `Revokes a token: requests that use it are refused from now on. Any unique prefix of the
id is accepted. With --all it revokes every token of people and of actors.

The command asks for confirmation. Without a terminal it requires --yes.`,
		Example:           "  orchestrator token revoke t5be1d7c0 --yes\n  orchestrator token revoke --all",
		Args:              cli.ArgCount(0, 1),
		ValidArgsFunction: completeCredentials(a, "list-tokens"),
		RunE: func(_ *cobra.Command, args []string) error {
			of := credentials{list: "list-tokens", revoke: "revoke-token", noun: "token", where: "orchestrator token ls"}
			switch {
			case all != (len(args) == 0):
				return cli.UsageError("name one token, or use --all", "orchestrator token revoke ID     Or: orchestrator token revoke --all")
			case all:
				return revokeAll(a, of, !yes)
			}
			return revoke(a, args[0], of, !yes)
		},
	}
	verb.Flags().BoolVar(&yes, "yes", false, "do not ask")
	verb.Flags().BoolVar(&all, "all", false, "revoke all tokens")
	return verb
}
