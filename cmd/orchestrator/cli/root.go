package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/term"
)

// Root returns the whole command line: the commands verbs, and version, completion and help.
// The paths of commands that read the event log if no orchestrator runs are in reading.
func Root(a *App, reading map[string]bool, verbs ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:               "orchestrator",
		Short:             "Run a team of agents from one file",
		SilenceErrors:     true, // report prints them, in text or JSON
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRun: func(verb *cobra.Command, _ []string) {
			a.parsed, a.reading = true, reading[verb.CommandPath()]
		},
		RunE: func(root *cobra.Command, args []string) error {
			switch asked, _ := root.Flags().GetBool("version"); {
			case len(args) > 0:
				return UnknownVerb(root, args)
			case asked:
				return showVersion(a)
			case a.Flags.JSON:
				return noCommand(root)
			}
			return a.Print("%s", Overview(root, a.Paint(a.Stdout)))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	AddFlags(a, root.PersistentFlags())
	root.Flags().BoolP("version", "V", false, "which orchestrator this is")
	_ = root.Flags().MarkHidden("version") // the manual names the version command only
	root.AddCommand(verbs...)
	root.AddCommand(versionCommand(a), completionCommand(a))
	root.SetHelpCommand(helpCommand(a))
	root.InitDefaultHelpCmd()
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) { showHelp(a, verb) })
	root.SetFlagErrorFunc(flagFailure)
	completeFlags(a, root)
	return root
}

// Overview returns the text that "orchestrator" prints without a command: all commands in
// groups.
func Overview(root *cobra.Command, p term.Paint) string {
	groups := []struct {
		title string
		verbs []string
	}{
		{"Start", []string{"init", "validate", "fmt", "schema"}},
		{"Run", []string{"up", "run", "pipe", "mcp", "reload", "down"}},
		{"Look", []string{"status", "watch", "logs", "events", "why", "graph"}},
		{"Work", []string{"task", "inbox", "bus", "session", "review"}},
		{"Agents", []string{"agent", "ps", "check"}},
		{"Access", []string{"key", "token"}},
		{"Record", []string{"backup", "store"}},
		{"", []string{"version", "completion", "help"}},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", root.Short)
	for _, group := range groups {
		b.WriteByte('\n')
		title := group.title
		for _, name := range group.verbs {
			verb, _, err := root.Find([]string{name})
			if err != nil || verb == root {
				continue
			}
			fmt.Fprintf(&b, "%s %s%s\n", p.Strong(term.Pad(title, 9)), term.Pad(name, 13), verb.Short)
			title = ""
		}
	}
	b.WriteString(`
  orchestrator init          write a first orchestrator.hcl here
  orchestrator up            run it
  orchestrator help          the manual: quickstart, config, troubleshooting, …
`)
	return b.String()
}
