package main

import (
	"context"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

func (a *app) keyCommand() *cobra.Command {
	verb := &cobra.Command{
		Use:     "key",
		Short:   "Keys that let programs speak as agents",
		Example: "  KEY=$(orchestrator key issue ci)",
		Args:    cobra.ArbitraryArgs,
		RunE: func(verb *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(verb, args[0])
			}
			a.showHelp(verb)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	verb.AddCommand(a.keyIssueCommand())
	return verb
}

func (a *app) keyIssueCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "issue AGENT",
		Short: "Make a key for an agent",
		Long: `Makes a key with which a program may speak as an agent of the file. The key alone
is printed to stdout, this once: only a fingerprint of it is kept.`,
		Example: `  KEY=$(orchestrator key issue ci)
  orchestrator key issue ci --json`,
		Args: words(1, 1),
		ValidArgsFunction: func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeAgents(verb, already, begun)
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.issueKey(args[0]) },
	}
}

func (a *app) issueKey(agent string) error {
	return a.speak(func(ctx context.Context, d *door) error {
		text, err := a.ask(ctx, d, "issue-key", wire.IssueKey{Agent: agent})
		if err != nil {
			return hinted(err, wire.CodeNotFound, "See which there are: orchestrator agent ls")
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
		a.talk("This is key %s of %s. It is shown once: keep it in a safe place.", oneLine(issued.ID), oneLine(issued.Agent))
		return nil
	})
}
