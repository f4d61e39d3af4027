package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// helpCommand returns the help command.
func helpCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC|CODE]",
		Short: "Show the manual",
		Long: `Explains a command, a topic or a code. A code is that of an error, of a reason, of a
mistake in the file, or an exit code. Without an argument, help lists the topics.`,
		Example: `  orchestrator help                          what there is to read
  orchestrator help quickstart
  orchestrator help logs                     a command
  orchestrator help agent restart
  orchestrator help config/unknown-agent     the code of an error, and what to do
  orchestrator help 5                        an exit code`,
		ValidArgsFunction: func(verb *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(help.TopicNames(), VerbNames(verb.Root())...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error { return showHelpOn(a, verb.Root(), args) },
	}
}

// showHelpOn prints the help on one thing. A name of both a topic and a command, such as session,
// is the topic. Its page refers to the command.
func showHelpOn(a *App, root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return showContents(a)
	}
	if len(args) == 1 {
		topic := args[0]
		if also, ok := help.AlsoCalled[topic]; ok {
			topic = also
		}
		if slices.Contains(help.TopicNames(), topic) {
			return showTopic(a, root, topic)
		}
	}
	if verb, rest, err := root.Find(args); err == nil && verb != root && len(rest) == 0 {
		verb.InitDefaultHelpFlag()
		showHelp(a, verb)
		return nil
	}
	return explain(a, root, args)
}

func showTopic(a *App, root *cobra.Command, topic string) error {
	text, err := help.ReadTopic(topic)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.Document(help.Page{FormatVersion: wire.FormatVersion, Topic: topic, Markdown: text})
	}
	if slices.Contains(VerbNames(root), topic) {
		text += "\nThe command of that name: orchestrator " + topic + " --help\n"
	}
	return a.Print("%s", readable(a, text))
}

// readable formats a page for the width of the terminal.
func readable(a *App, markdown string) string {
	return term.Readable(markdown, a.Paint(a.Stdout), min(term.Columns(a.Stdout, 80), 100))
}

// contents is the JSON answer of help without an argument.
type contents struct {
	FormatVersion string        `json:"format_version"`
	Topics        []contentLine `json:"topics"`
}

type contentLine struct {
	Topic string `json:"topic"`
	About string `json:"about"`
}

func showContents(a *App) error {
	answer := contents{FormatVersion: wire.FormatVersion}
	var b strings.Builder
	b.WriteString("The manual.\n\n")
	for _, chapter := range help.Chapters {
		answer.Topics = append(answer.Topics, contentLine{Topic: chapter.Topic, About: chapter.About})
		b.WriteString("  " + term.Pad(chapter.Topic, 17) + chapter.About + "\n")
	}
	b.WriteString(`
  orchestrator help TOPIC     one of these pages
  orchestrator help COMMAND   a command; all of them: orchestrator
  orchestrator help CODE      the code of an error, such as not_found, and what to do
`)
	if a.Flags.JSON {
		return a.Document(answer)
	}
	return a.Print("%s", b.String())
}
