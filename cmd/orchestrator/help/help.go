// Package help holds the pages of the manual.
package help

import (
	"embed"
	"fmt"
)

// topics are the pages of the manual, one Markdown file each.
//
//go:embed *.md
var Topics embed.FS

// Chapters are the pages of the manual, in the order they are read in.
var Chapters = []struct{ Topic, About string }{
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

// AlsoCalled are words for topics that people try.
var AlsoCalled = map[string]string{"protocols": "protocol", "configuration": "config", "errors": "troubleshooting", "metrics": "http"}

// TopicNames returns the names of all pages.
func TopicNames() []string {
	names := make([]string, 0, len(Chapters))
	for _, chapter := range Chapters {
		names = append(names, chapter.Topic)
	}
	return names
}

// Page answers help TOPIC for programs.
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
