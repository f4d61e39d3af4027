// Package access holds the commands on credentials: keys of agents and tokens of people
// and actors.
package access

import (
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// KeyCommand returns the key command.
func KeyCommand(a *cli.App) *cobra.Command {
	return cli.Group(a, &cobra.Command{
		Use: "key", Short: "Manage the keys of agents",
		Example: "  KEY=$(orchestrator key issue ci)",
	},
		keyIssueCommand(a), keyListCommand(a), keyRotateCommand(a), keyRevokeCommand(a), keyRegisterCommand(a),
	)
}

func keyIssueCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "issue AGENT",
		Short: "Create a key for an agent",
		Long: `Creates a key with which a program can act as an agent of the file. Only the key is
printed to stdout, and only once: the orchestrator stores a fingerprint of it.`,
		Example: `  KEY=$(orchestrator key issue ci)
  orchestrator key issue ci --json`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.Completion(a, completeOneAgent),
		RunE: func(_ *cobra.Command, args []string) error {
			return newKey(a, "issue-key", wire.IssueKey{Agent: args[0]}, "")
		},
	}
}

// completeOneAgent completes the agent of a command that takes only one.
func completeOneAgent(a *cli.App, verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteAgents(verb, already, begun)
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
