// Package help holds the pages of the manual.
package help

import (
	"embed"
	"fmt"
)

// Topics holds the pages of the manual, one Markdown file each.
//
//go:embed *.md
var Topics embed.FS

// Chapters lists the pages of the manual in reading order.
var Chapters = []struct{ Topic, About string }{
	{"quickstart", "The first ten minutes, in the order they happen"},
	{"recipes", "CI, cron, fan-out, retries, approval: what to write for it"},
	{"config", "The file: every block and attribute, with its default"},
	{"agents", "What an agent receives and sends, and how it ends"},
	{"real-agents", "Claude Code and Codex as agents"},
	{"tasks", "What a task is, and how it moves"},
	{"work", "How tasks are assigned, ordered and reported"},
	{"bus", "Messages between agents, people and programs elsewhere"},
	{"session", "An architect, developers and reviewers, by rules"},
	{"verified", "Work that is checked before it is done, in folders of its own"},
	{"delegation", "Delegating work and receiving its results"},
	{"protocol", "Every message between an agent and the orchestrator"},
	{"http", "The same by HTTP: listeners, credentials, figures"},
	{"routes", "Every route, and who may ask"},
	{"events", "Every kind of event, and how to follow them"},
	{"notify", "How people are told that they are needed"},
	{"commands", "Every command and every flag"},
	{"exit-codes", "The exit code of each outcome"},
	{"environment", "Every variable that is read, and that an agent is given"},
	{"signals", "What Ctrl-C and the others do"},
	{"many-machines", "Three machines that share one record"},
	{"security", "Who may do what, and what is kept"},
	{"limits", "What grows and how far, and what the orchestrator does not do"},
	{"troubleshooting", "What to do about each error"},
	{"versions", "Install, upgrade, remove; and what stays the same"},
	{"glossary", "What each word means"},
	{"config-codes", "What can be wrong in the file, by its code"},
}

// AlsoCalled maps other words for a topic to its name.
var AlsoCalled = map[string]string{"protocols": "protocol", "configuration": "config", "errors": "troubleshooting", "metrics": "http"}

// TopicNames returns the names of all pages.
func TopicNames() []string {
	names := make([]string, 0, len(Chapters))
	for _, chapter := range Chapters {
		names = append(names, chapter.Topic)
	}
	return names
}

// A Page is the JSON answer of help TOPIC.
type Page struct {
	FormatVersion string `json:"format_version"`
	Topic         string `json:"topic"`
	Markdown      string `json:"markdown"`
}

// ReadTopic returns the text of a page.
func ReadTopic(topic string) (string, error) {
	text, err := Topics.ReadFile(topic + ".md")
	if err != nil {
		return "", fmt.Errorf("reading the manual: %w", err)
	}
	return string(text), nil
}
