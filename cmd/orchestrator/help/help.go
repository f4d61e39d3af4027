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

// A Chapter is a page of the manual. Its part is the goal of its readers.
type Chapter struct{ Part, Topic, About string }

// Chapters lists the pages of the manual in reading order, by part.
var Chapters = []Chapter{
	{"Start", "quickstart", "Your first team, in ten minutes"},
	{"Start", "recipes", "CI, cron, fan-out, retries, approvals"},
	{"Start", "versions", "Installation, upgrades, removal, compatibility"},
	{"Start", "troubleshooting", "Symptoms and error codes, with their fixes"},
	{"Start", "glossary", "The words of the manual and the protocols"},

	{"Describe a team", "config", "The file: every block and attribute, with its default"},
	{"Describe a team", "agents", "Input, output and exit of an agent"},
	{"Describe a team", "python", "An agent in Python, on one screen"},
	{"Describe a team", "typescript", "An agent in TypeScript or JavaScript, on one screen"},
	{"Describe a team", "tasks", "The parts of a task, and its states"},
	{"Describe a team", "work", "Assignment, order and reports of tasks"},
	{"Describe a team", "session", "An architect, developers and reviewers, by rules"},
	{"Describe a team", "delegation", "Work that one agent gives to another"},
	{"Describe a team", "submitters", "Notices to the submitter of a task, by protocol"},

	{"Real coding agents", "real-agents", "Claude Code, Codex, Gemini and other clients"},

	{"Branches, tests and merges", "verified", "Worktrees, verification, merges, budgets"},

	{"People and questions", "bus", "Messages between agents, people and other programs"},
	{"People and questions", "notify", "Notifications by terminal, command or webhook"},

	{"Safety", "security", "Rights, confinement, credentials, the audit"},
	{"Safety", "limits", "Limits of every resource, and known gaps"},

	{"Many machines", "many-machines", "Three machines with one record, and agents on hosts"},

	{"Reference", "commands", "Every command and flag"},
	{"Reference", "protocol", "Every message between an agent and the orchestrator"},
	{"Reference", "http", "The HTTP API: listeners, credentials, metrics"},
	{"Reference", "routes", "Every route, and its callers"},
	{"Reference", "events", "Every kind of event"},
	{"Reference", "environment", "Every environment variable"},
	{"Reference", "signals", "The effect of each signal"},
	{"Reference", "exit-codes", "Every exit code and error code"},
	{"Reference", "config-codes", "Every code of a mistake in the file"},
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
