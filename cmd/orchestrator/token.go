package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

func (a *app) tokenCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "token", Short: "Tokens with which people come from elsewhere",
		Example: "  ORC_TOKEN=$(orchestrator token issue --sub ann)",
	},
		a.tokenIssueCommand(), a.tokenListCommand(), a.tokenRevokeCommand(),
	)
}

func (a *app) tokenIssueCommand() *cobra.Command {
	var subject string
	var ttl duration
	role := choice{value: wire.PersonOperator, of: wire.PersonRoles}
	verb := &cobra.Command{
		Use:   "issue --sub NAME",
		Short: "Make a token for a person",
		Long: `Makes a token with which a person may speak to this orchestrator over the network.
The token alone is printed to stdout, this once. On this machine nobody needs one.

A viewer may look and nothing else.`,
		Example: `  orchestrator token issue --sub ann
  ORC_TOKEN=$(orchestrator token issue --sub ann --role viewer --ttl 1h)`,
		Args:              words(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := holds(verb, ttl.Duration); err != nil {
				return err
			}
			if strings.TrimSpace(subject) == "" {
				return misused("whom the token is for is missing", "Say it: --sub NAME")
			}
			return a.issueToken(wire.IssueToken{Subject: subject, Role: role.value, TTL: ttl.Milliseconds()})
		},
	}
	set := verb.Flags()
	set.StringVar(&subject, "sub", "", "`NAME` of the person; it stands in the record")
	set.Var(&role, "role", "what the person may do: admin, operator or viewer")
	set.Var(&ttl, "ttl", "how long it holds: `DUR`, 8h without it")
	_ = verb.RegisterFlagCompletionFunc("role", role.complete)
	for _, name := range []string{"sub", "ttl"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return verb
}

// holds refuses a --ttl that is over before it begins.
func holds(verb *cobra.Command, ttl time.Duration) error {
	if verb.Flags().Changed("ttl") && ttl < time.Second {
		return misused("--ttl must be a second or more", "Leave it out for what it is without one")
	}
	return nil
}

func (a *app) issueToken(request wire.IssueToken) error {
	return a.speak(func(ctx context.Context, d *door) error {
		text, err := a.ask(ctx, d, "issue-token", request)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.answer(text)
		}
		issued, err := decode[wire.IssuedToken](text)
		if err != nil {
			return err
		}
		if err := a.print("%s\n", issued.Token); err != nil {
			return err
		}
		a.talk("This is token %s of %s, %s, until %s. It is shown once: keep it in a safe place.",
			oneLine(issued.ID), oneLine(issued.Subject), oneLine(issued.Role), clock(issued.ExpiresAt, time.Now(), time.TimeOnly))
		return nil
	})
}

func (a *app) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "ls",
		Short:             "List the tokens of people",
		Long:              "Lists the tokens that hold: whose, what they allow, and until when. What is secret\nabout them is kept nowhere.",
		Example:           "  orchestrator token ls\n  orchestrator token ls --json",
		Args:              words(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.showCredentials("list-tokens", "No tokens. orchestrator token issue --sub NAME")
		},
	}
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	var yes bool
	verb := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a person's token away",
		Long: `Takes a token away: who has it is refused from now on. Any unique prefix of the id
will do.

It asks first; where nobody can be asked it wants --yes.`,
		Example:           "  orchestrator token revoke t5be1d7c0 --yes",
		Args:              words(1, 1),
		ValidArgsFunction: a.completeCredentials("list-tokens"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.revoke(args[0], credentials{list: "list-tokens", revoke: "revoke-token", noun: "token", where: "orchestrator token ls"}, !yes)
		},
	}
	verb.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return verb
}
