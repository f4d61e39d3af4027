package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

// topics are the pages of the manual, one Markdown file each.
//
//go:embed help/*.md
var topics embed.FS

// topicNames are the pages in the order they are read in.
func topicNames() []string {
	return []string{"quickstart", "config", "agents", "tasks", "work", "bus", "session", "delegation", "protocol", "http", "exit-codes", "environment", "signals", "security", "troubleshooting"}
}

// page answers help TOPIC for programs.
type page struct {
	FormatVersion string `json:"format_version"`
	Topic         string `json:"topic"`
	Markdown      string `json:"markdown"`
}

func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|TOPIC]",
		Short:   "The manual, in this terminal",
		Long:    `Explains a command, or a topic: ` + strings.Join(topicNames(), ", ") + `.`,
		Example: "  orchestrator help quickstart\n  orchestrator help logs",
		ValidArgsFunction: func(verb *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(topicNames(), verbNames(verb.Root())...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error { return a.help(verb.Root(), args) },
	}
}

func (a *app) help(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		a.showHelp(root)
		return nil
	}
	if len(args) == 1 && slices.Contains(topicNames(), args[0]) {
		return a.showTopic(args[0])
	}
	verb, rest, err := root.Find(args)
	if err != nil || verb == root || len(rest) > 0 {
		return misused(
			fmt.Sprintf("no help on %q%s", strings.Join(args, " "), didYouMean(args[0], append(topicNames(), verbNames(root)...))),
			"Commands: orchestrator     Topics: "+strings.Join(topicNames(), ", "),
		)
	}
	verb.InitDefaultHelpFlag()
	a.showHelp(verb)
	return nil
}

func (a *app) showTopic(topic string) error {
	text, err := topics.ReadFile("help/" + topic + ".md")
	if err != nil {
		return fmt.Errorf("reading the manual: %w", err)
	}
	if a.flags.json {
		return a.document(page{FormatVersion: wire.FormatVersion, Topic: topic, Markdown: string(text)})
	}
	return a.print("%s", readable(string(text), a.paint(a.stdout), min(columns(a.stdout, 80), 100)))
}
