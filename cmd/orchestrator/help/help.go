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

// A Chapter is a page of the manual.
type Chapter struct{ Part, Topic, About string }

// Chapters lists the pages of the manual in reading order, by the parts of the manual.
var Chapters = []Chapter{
	{"Start", "quickstart", "The first ten minutes, in the order they happen"},
	{"Start", "recipes", "CI, cron, fan-out, retries, approval: what to write for it"},
	{"Start", "glossary", "What each word means"},

	{"The team", "config", "The file: every block and attribute, with its default"},
	{"The team", "agents", "What an agent receives and sends, and how it ends"},
	{"The team", "python", "An agent in Python, on one screen"},
	{"The team", "typescript", "An agent in TypeScript or JavaScript, on one screen"},
	{"The team", "real-agents", "Claude Code and Codex as agents"},
	{"The team", "many-machines", "Three machines that share one record"},
	{"The team", "security", "Who may do what, and what is kept"},

	{"The work", "tasks", "What a task is, and how it moves"},
	{"The work", "work", "How tasks are assigned, ordered and reported"},
	{"The work", "verified", "Work that is checked before it is done, in folders of its own"},
	{"The work", "session", "An architect, developers and reviewers, by rules"},
	{"The work", "delegation", "Delegating work and receiving its results"},
	{"The work", "submitters", "What the submitter of a task hears, in each protocol"},
	{"The work", "bus", "Messages between agents, people and programs elsewhere"},
	{"The work", "notify", "How people are told that they are needed"},

	{"When it runs", "troubleshooting", "What to do about each error"},
	{"When it runs", "limits", "What grows and how far, and what the orchestrator does not do"},
	{"When it runs", "signals", "What Ctrl-C and the others do"},
	{"When it runs", "versions", "Install, upgrade, remove; and what stays the same"},

	{"Reference", "commands", "Every command and every flag"},
	{"Reference", "protocol", "Every message between an agent and the orchestrator"},
	{"Reference", "http", "The same by HTTP: listeners, credentials, figures"},
	{"Reference", "routes", "Every route, and who may ask"},
	{"Reference", "events", "Every kind of event, and how to follow them"},
	{"Reference", "environment", "Every variable that is read, and that an agent is given"},
	{"Reference", "exit-codes", "The exit code of each outcome"},
	{"Reference", "config-codes", "What can be wrong in the file, by its code"},
}

// AlsoCalled maps other words for a topic to its name.
var AlsoCalled = map[string]string{
	"protocols": "protocol", "configuration": "config", "errors": "troubleshooting", "metrics": "http", "seams": "submitters", "javascript": "typescript",
}

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
