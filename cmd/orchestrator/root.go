package main

import (
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/access"
	"orchestrator/cmd/orchestrator/agent"
	"orchestrator/cmd/orchestrator/bus"
	"orchestrator/cmd/orchestrator/check"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/inbox"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/session"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/watch"
	"orchestrator/cmd/orchestrator/why"
)

// rootCommand returns the whole command line.
func rootCommand(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:               "orchestrator",
		Short:             "Run a team of agents from one file",
		SilenceErrors:     true, // report prints them, in text or JSON
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRun: func(verb *cobra.Command, _ []string) {
			a.Begin(serve.ReadingVerbs[verb.CommandPath()])
		},
		RunE: func(root *cobra.Command, args []string) error {
			switch asked, _ := root.Flags().GetBool("version"); {
			case len(args) > 0:
				return cli.UnknownVerb(root, args)
			case asked:
				return cli.ShowVersion(a)
			case a.Flags.JSON:
				return cli.NoCommand(root)
			}
			return a.Print("%s", cli.Overview(root, a.Paint(a.Stdout)))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.AddFlags(a, root.PersistentFlags())
	root.Flags().BoolP("version", "V", false, "which orchestrator this is")
	_ = root.Flags().MarkHidden("version") // the manual names the version command only
	root.AddCommand(
		project.InitCommand(a), project.ValidateCommand(a), project.FmtCommand(a), project.SchemaCommand(a),
		serve.UpCommand(a), serve.RunCommand(a), serve.PipeCommand(a), serve.ReloadCommand(a), serve.DownCommand(a),
		agent.StatusCommand(a), watch.Command(a), agent.LogsCommand(a), agent.EventsCommand(a), why.Command(a), task.GraphCommand(a, "orchestrator graph"),
		task.Command(a), inbox.Command(a), bus.Command(a), session.Command(a), session.ReviewCommand(a),
		agent.Command(a), agent.PsCommand(a), check.Command(a), access.KeyCommand(a), access.TokenCommand(a), serve.BackupCommand(a), serve.StoreCommand(a),
		cli.VersionCommand(a), cli.CompletionCommand(a),
	)
	root.SetHelpCommand(cli.HelpCommand(a))
	root.InitDefaultHelpCmd()
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) { cli.ShowHelp(a, verb) })
	root.SetFlagErrorFunc(cli.FlagFailure)
	cli.CompleteFlags(a, root)
	return root
}
