package main

import (
	"context"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) keyCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "key", Short: "Manage the keys of agents",
		Example: "  KEY=$(orchestrator key issue ci)",
	},
		a.keyIssueCommand(), a.keyListCommand(), a.keyRotateCommand(), a.keyRevokeCommand(), a.keyRegisterCommand(),
	)
}

func (a *app) keyIssueCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "issue AGENT",
		Short: "Create a key for an agent",
		Long: `Makes a key with which a program may speak as an agent of the file. The key alone
is printed to stdout, this once: only a fingerprint of it is kept.`,
		Example: `  KEY=$(orchestrator key issue ci)
  orchestrator key issue ci --json`,
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneAgent,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.newKey("issue-key", wire.IssueKey{Agent: args[0]}, "")
		},
	}
}

// completeOneAgent is completeAgents for verbs that take one.
func (a *app) completeOneAgent(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeAgents(verb, already, begun)
}

// newKey asks for a key and prints it. More is what else there is to say.
func (a *app) newKey(operation string, request wire.IssueKey, more string) error {
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, operation, request)
		if err != nil {
			return hinted(err, wire.CodeNotFound, noAgentHint)
		}
		if a.flags.json {
			return a.answer(text)
		}
		issued, err := decode[wire.IssuedKey](text)
		if err != nil {
			return err
		}
		if err := a.print("%s\n", issued.Key); err != nil {
			return err
		}
		a.note("This is key %s of %s. It is shown once: keep it in a safe place.", plain.OneLine(issued.ID), plain.OneLine(issued.Agent))
		if more != "" {
			a.note("%s", more)
		}
		return nil
	})
}
