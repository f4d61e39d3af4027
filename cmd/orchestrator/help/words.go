package help

import "strings"

// sectionOf maps words to sections whose titles do not have them, or that explain them best: blocks of the file, and
// words that people look up.
var sectionOf = map[string]Place{
	"capabilities": {"agents", "Tasks of an agent"},
	"output":       {"config", "Health, limits and output"},
	"repo":         {"work", "Matching"},
	"restart":      {"config", "Restart"},
	"stop":         {"config", "Stop"},
	"confine":      {"config", "Confinement"},
	"confinement":  {"security", "Confinement"},
	"sandbox":      {"security", "Sandboxes and containers"},
	"container":    {"security", "Sandboxes and containers"},
	"placement":    {"config", "Placement"},
	"budget":       {"verified", "Budgets"},
	"orchestrator": {"config", "Orchestrator, log, store, protocol, scheduler, bus, notify, http"},
	"log":          {"config", "Orchestrator, log, store, protocol, scheduler, bus, notify, http"},
	"merge":        {"verified", "Merging"},
	"verify":       {"verified", "Verification"},
	"worktree":     {"verified", "Workspaces"},
	"branch":       {"verified", "Workspaces"},
	"model":        {"config", "Prices"},
	"host":         {"many-machines", "Agents on other machines"},
	"hub":          {"many-machines", "Three hubs"},
	"member":       {"config", "Sessions"},
	"variable":     {"config", "Variables and secrets"},
	"locals":       {"config", "Variables and secrets"},
	"secret":       {"config", "Variables and secrets"},
	"crash":        {"troubleshooting", "The orchestrator was killed"},
	"kill":         {"troubleshooting", "The orchestrator was killed"},
	"kill -9":      {"troubleshooting", "The orchestrator was killed"},
	"disk":         {"troubleshooting", "The disk is full"},
	"retry":        {"recipes", "Retries"},
	"junit":        {"recipes", "CI"},
	"schedule":     {"recipes", "Every night"},
	"cron":         {"recipes", "Every night"},
	"mail":         {"bus", "Sending"},
	"message":      {"bus", "Sending"},
}

// A Line is a line of the contents for a word.
type Line struct{ Word, About string }

// Lookups are the lines of the contents below a page, for sections that a reader may not expect there.
var Lookups = map[string][]Line{
	"troubleshooting": {{"crash", "After a crash, kill -9 or a power failure"}, {"disk", "A full disk"}},
	"verified":        {{"budgets", "Limits on tokens, money and time"}},
}

// SectionOf returns the section that explains a word best. A plural is the same word.
func SectionOf(word string) (Place, bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if place, ok := sectionOf[word]; ok {
		return place, true
	}
	place, ok := sectionOf[singular(word)]
	return place, ok
}
