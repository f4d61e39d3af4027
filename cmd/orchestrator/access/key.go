// Package access holds the commands on credentials: keys of agents and tokens of people
// and actors.
package access

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// KeyCommand returns the key command.
func KeyCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use: "key", Short: "Manage the keys of agents and hubs",
		Example: "  KEY=$(orchestrator key issue ci)",
	},
		keyIssueCommand(a), keyListCommand(a), keyRotateCommand(a), keyRevokeCommand(a), keyRegisterCommand(a), keyCACommand(a),
	)
}

func keyIssueCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "issue AGENT",
		Short: "Create a key for an agent",
		Long: `Creates a key that lets a program act as an agent of the file. Only the key is printed to
stdout, and only once: the orchestrator stores just its fingerprint.`,
		Example: `  KEY=$(orchestrator key issue ci)
  orchestrator key issue ci --json`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.CompleteAgents),
		RunE: func(_ *cobra.Command, args []string) error {
			return newKey(a, "issue-key", wire.IssueKey{Agent: args[0]}, "")
		},
	}
}

// newKey creates a key and prints it. The note more follows unless it is empty.
func newKey(a *cli.App, operation string, request wire.IssueKey, more string) error {
	return cli.Query[wire.IssuedKey]{
		Operation: operation, Request: request,
		Explain: func(err error) error { return cli.WithHint(err, wire.CodeNotFound, cli.NoAgentHint) },
		Text: func(issued *wire.IssuedKey) error {
			if err := a.Print("%s\n", issued.Key); err != nil {
				return err
			}
			a.Note("This is key %s of %s. It is shown once: keep it in a safe place.", term.OneLine(issued.ID), term.OneLine(issued.Agent))
			if more != "" {
				a.Note("%s", more)
			}
			return nil
		},
	}.Run(a)
}

func keyListCommand(a *cli.App) *cobra.Command {
	return listing(a, "list-keys", "No keys. Issue one: orchestrator key issue AGENT").Command(a, &cobra.Command{
		Use:   "ls",
		Short: "List the keys of agents and registration tokens",
		Long: `Lists the valid keys, with their agents and expiry times, and the unused registration
tokens. The secrets are not shown: only fingerprints of them are stored.`,
		Example: "  orchestrator key ls\n  orchestrator key ls --json",
	})
}

func keyRotateCommand(a *cli.App) *cobra.Command {
	var overlap cli.Duration
	verb := &cobra.Command{
		Use:   "rotate AGENT",
		Short: "Replace the keys of an agent with a new one",
		Long: `Creates a new key for an agent. Its old keys expire at once, or after --overlap, which
leaves time to distribute the new key. Only the key is printed to stdout, and only
once.`,
		Example:           "  KEY=$(orchestrator key rotate ci --overlap 1h)",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.CompleteAgents),
		RunE: func(_ *cobra.Command, args []string) error {
			old := "Older keys are no longer valid."
			if overlap.Duration > 0 {
				old = "Older keys are valid until " + term.Clock(object.Timestamp(time.Now().Add(overlap.Duration)), time.Now(), time.TimeOnly) + "."
			}
			return newKey(a, "rotate-key", wire.IssueKey{Agent: args[0], Overlap: overlap.Milliseconds()}, old)
		},
	}
	verb.Flags().Var(&overlap, "overlap", "keep the old keys valid for `DUR`")
	_ = verb.RegisterFlagCompletionFunc("overlap", cobra.NoFileCompletions)
	return verb
}

func keyRevokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key or a registration token",
		Long: `Revokes a key or a registration token: requests that use it are refused from now on.
Any unique prefix of the id is accepted.`,
		Example:           "  orchestrator key revoke k1a2b3c4",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeCredentials(a, "list-keys"),
		RunE: func(_ *cobra.Command, args []string) error {
			return revoke(a, args[0], credentials{list: "list-keys", revoke: "revoke-key", noun: "key", where: "orchestrator key ls"}, false)
		},
	}
}

func keyRegisterCommand(a *cli.App) *cobra.Command {
	var name string
	var ttl cli.Duration
	verb := &cobra.Command{
		Use:   "register",
		Short: "Create a token that registers one server",
		Long: `Creates a token that lets an external server register as an agent, once. The server
then receives its own key. Only the token is printed to stdout, and only once.
With --name no other server can use it.`,
		Example:           "  orchestrator key register --name build-1 --ttl 1h",
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := holds(verb, ttl.Duration); err != nil {
				return err
			}
			return issueRegistration(a, wire.IssueRegistration{Name: name, TTL: ttl.Milliseconds()})
		},
	}
	set := verb.Flags()
	set.StringVar(&name, "name", "", "only for the server named `SERVER`")
	set.Var(&ttl, "ttl", "lifetime: `DUR` (24h by default)")
	for _, flag := range []string{"name", "ttl"} {
		_ = verb.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return verb
}

func issueRegistration(a *cli.App, request wire.IssueRegistration) error {
	return cli.Query[wire.IssuedRegistration]{
		Operation: "issue-registration", Request: request,
		Text: func(issued *wire.IssuedRegistration) error {
			if err := a.Print("%s\n", issued.Token); err != nil {
				return err
			}
			a.Note("This is registration token %s for %s, valid until %s. It is shown once and can be used once.",
				term.OneLine(issued.ID), cmp.Or(term.OneLine(request.Name), "one server"), term.Clock(issued.ExpiresAt, time.Now(), time.TimeOnly))
			return nil
		},
	}.Run(a)
}
