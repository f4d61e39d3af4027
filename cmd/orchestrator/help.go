package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// topics are the pages of the manual, one Markdown file each.
//
//go:embed help/*.md
var topics embed.FS

// chapters are the pages of the manual, in the order they are read in.
var chapters = []struct{ topic, about string }{
	{"quickstart", "The first ten minutes, in the order they happen"},
	{"config", "The file: every block and attribute, with its default"},
	{"agents", "What an agent is given, says and is told, and how it ends"},
	{"tasks", "What a task is, and how it moves"},
	{"work", "Who gets a task, after what, and what is said about it"},
	{"bus", "Messages between agents, people and programs elsewhere"},
	{"session", "An architect, developers and reviewers, by rules"},
	{"delegation", "Handing work on, and hearing what becomes of it"},
	{"protocol", "Every message between an agent and the orchestrator"},
	{"http", "The same by HTTP: listeners, credentials, figures"},
	{"routes", "Every route, and who may ask"},
	{"events", "Every kind of event, and how to follow them"},
	{"commands", "Every command and every flag"},
	{"exit-codes", "What a command says when it ends"},
	{"environment", "Every variable that is read, and that an agent finds"},
	{"signals", "What Ctrl-C and the others do"},
	{"security", "Who may do what, and what is kept"},
	{"limits", "What it does not do, and does not know"},
	{"troubleshooting", "What to do about each error"},
	{"config-codes", "What can be wrong in the file, by its code"},
}

// alsoCalled are words for topics that people try.
var alsoCalled = map[string]string{"protocols": "protocol", "configuration": "config", "errors": "troubleshooting", "metrics": "http"}

func topicNames() []string {
	names := make([]string, 0, len(chapters))
	for _, chapter := range chapters {
		names = append(names, chapter.topic)
	}
	return names
}

// page answers help TOPIC for programs.
type page struct {
	FormatVersion string `json:"format_version"`
	Topic         string `json:"topic"`
	Markdown      string `json:"markdown"`
}

func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC|CODE]",
		Short: "Show the manual",
		Long: `Explains a command, a topic, or a code: that of an error, the reason of a refusal,
the code of a mistake in the file, or the number that a command has ended with.
Alone it lists the topics.`,
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
			return append(topicNames(), verbNames(verb.Root())...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error { return a.help(verb.Root(), args) },
	}
}

// help explains one thing. What is a topic and a command, such as session, is
// the topic, which says where the command is.
func (a *app) help(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return a.showContents()
	}
	if len(args) == 1 {
		topic := args[0]
		if also, ok := alsoCalled[topic]; ok {
			topic = also
		}
		if slices.Contains(topicNames(), topic) {
			return a.showTopic(root, topic)
		}
	}
	if verb, rest, err := root.Find(args); err == nil && verb != root && len(rest) == 0 {
		verb.InitDefaultHelpFlag()
		a.showHelp(verb)
		return nil
	}
	return a.explain(root, args)
}

func readTopic(topic string) (string, error) {
	text, err := topics.ReadFile("help/" + topic + ".md")
	if err != nil {
		return "", fmt.Errorf("reading the manual: %w", err)
	}
	return string(text), nil
}

func (a *app) showTopic(root *cobra.Command, topic string) error {
	text, err := readTopic(topic)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.document(page{FormatVersion: wire.FormatVersion, Topic: topic, Markdown: text})
	}
	if slices.Contains(verbNames(root), topic) {
		text += "\nThe command of that name: orchestrator " + topic + " --help\n"
	}
	return a.print("%s", a.readable(text))
}

// readable lays a page out for the terminal that there is.
func (a *app) readable(markdown string) string {
	return readable(markdown, a.paint(a.stdout), min(columns(a.stdout, 80), 100))
}

// contents answers help alone for programs.
type contents struct {
	FormatVersion string        `json:"format_version"`
	Topics        []contentLine `json:"topics"`
}

type contentLine struct {
	Topic string `json:"topic"`
	About string `json:"about"`
}

func (a *app) showContents() error {
	answer := contents{FormatVersion: wire.FormatVersion}
	var b strings.Builder
	b.WriteString("The manual.\n\n")
	for _, chapter := range chapters {
		answer.Topics = append(answer.Topics, contentLine{Topic: chapter.topic, About: chapter.about})
		b.WriteString("  " + plain.Pad(chapter.topic, 17) + chapter.about + "\n")
	}
	b.WriteString(`
  orchestrator help TOPIC     one of these pages
  orchestrator help COMMAND   a command; all of them: orchestrator
  orchestrator help CODE      the code of an error, such as not_found, and what to do
`)
	if a.flags.json {
		return a.document(answer)
	}
	return a.print("%s", b.String())
}
