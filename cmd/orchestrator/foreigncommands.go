package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// foreignCommands are the words that people bring along from other tools, and what they
// are called here. A word that is a verb here is not looked up.
var foreignCommands = map[string]meant{
	"start":    {alone: "up", named: "agent start"},
	"launch":   {alone: "up", named: "up"},
	"compose":  {alone: "up"},
	"serve":    {alone: "up -d"},
	"daemon":   {alone: "up -d"},
	"stop":     {alone: "down", named: "agent stop"},
	"shutdown": {alone: "down"},
	"quit":     {alone: "down"},
	"exit":     {alone: "down"},
	"destroy":  {alone: "down"},
	"kill":     {alone: "down --force", named: "agent stop"},
	"restart":  {alone: "agent restart --all", named: "agent restart"},
	"plan":     {alone: "reload --dry-run"},
	"apply":    {alone: "reload"},
	"config":   {alone: "validate", named: "validate"},
	"lint":     {alone: "validate", named: "validate"},
	"format":   {alone: "fmt", named: "fmt"},
	"create":   {alone: "init", named: "init"},
	"new":      {alone: "init", named: "init"},

	"ls":       {alone: "agent ls", also: "task ls"},
	"list":     {alone: "agent ls", also: "task ls"},
	"agents":   {alone: "agent ls"},
	"tasks":    {alone: "task ls"},
	"info":     {alone: "status"},
	"top":      {alone: "status"},
	"stats":    {alone: "status"},
	"show":     {alone: "agent show AGENT", named: "agent show", also: "task show ID"},
	"get":      {alone: "agent show AGENT", named: "agent show", also: "task show ID"},
	"inspect":  {alone: "agent show AGENT", named: "agent show", also: "task show ID"},
	"describe": {alone: "agent show AGENT", named: "agent show", also: "task show ID"},
	"explain":  {alone: "why AGENT", named: "why"},
	"tail":     {alone: "logs -f", named: "logs -f"},
	"attach":   {alone: "logs -f", named: "logs -f"},
	"history":  {alone: "events"},
	"exec":     {alone: "run -- CMD"},
	"shell":    {alone: "run -- CMD"},

	"add":       {alone: "task add TITLE", named: "task add"},
	"submit":    {alone: "task add TITLE", named: "task add"},
	"wait":      {alone: "task wait ID", named: "task wait"},
	"cancel":    {alone: "task cancel ID", named: "task cancel"},
	"ask":       {alone: "inbox"},
	"questions": {alone: "inbox"},
	"answer":    {alone: "inbox answer ID VALUE", named: "inbox answer"},
	"reply":     {alone: "inbox answer ID VALUE", named: "inbox answer"},
	"send":      {alone: "bus send --to ACTOR --topic TOPIC"},
	"login":     {alone: "token issue --sub NAME"},

	"task list":     {alone: "task ls"},
	"task new":      {alone: "task add TITLE", named: "task add"},
	"task create":   {alone: "task add TITLE", named: "task add"},
	"task rm":       {alone: "task cancel ID", named: "task cancel"},
	"task remove":   {alone: "task cancel ID", named: "task cancel"},
	"task delete":   {alone: "task cancel ID", named: "task cancel"},
	"task stop":     {alone: "task cancel ID", named: "task cancel"},
	"task get":      {alone: "task show ID", named: "task show"},
	"task status":   {alone: "task show ID", named: "task show"},
	"task inspect":  {alone: "task show ID", named: "task show"},
	"task describe": {alone: "task show ID", named: "task show"},
	"task complete": {alone: "task done ID", named: "task done"},
	"task finish":   {alone: "task done ID", named: "task done"},
	"task edit":     {alone: "task update ID", named: "task update"},
	"task run":      {alone: "task start ID", named: "task start"},
	"task approve":  {alone: "task approve-plan ID", named: "task approve-plan"},
	"task why":      {alone: "why ID", named: "why"},
	"task logs":     {alone: "events --task ID", named: "events --task"},
	"task events":   {alone: "events --task ID", named: "events --task"},

	"agent list":     {alone: "agent ls"},
	"agent ps":       {alone: "agent ls"},
	"agent kill":     {alone: "agent stop AGENT", named: "agent stop"},
	"agent get":      {alone: "agent show AGENT", named: "agent show"},
	"agent status":   {alone: "agent show AGENT", named: "agent show"},
	"agent inspect":  {alone: "agent show AGENT", named: "agent show"},
	"agent describe": {alone: "agent show AGENT", named: "agent show"},
	"agent why":      {alone: "why AGENT", named: "why"},
	"agent logs":     {alone: "logs AGENT", named: "logs"},

	"inbox list":    {alone: "inbox ls"},
	"inbox show":    {alone: "inbox ls"},
	"inbox reply":   {alone: "inbox answer ID VALUE", named: "inbox answer"},
	"inbox respond": {alone: "inbox answer ID VALUE", named: "inbox answer"},
}

// meant is what a word of other tools is called here: alone, or followed by the
// words that came after it.
type meant struct{ alone, named, also string }

// borrowedWord answers a word of other tools with the command that is meant. The
// words after it are said again, if they are names: a line to be pasted.
func borrowedWord(path string, after []string) (string, bool) {
	m, known := foreignCommands[path]
	if !known {
		return "", false
	}
	line := "orchestrator " + m.alone
	switch {
	case path == "compose" && len(after) > 0:
		line = "orchestrator " + strings.Join(quoted(after), " ")
	case m.named != "" && len(after) > 0:
		line = "orchestrator " + m.named + " " + strings.Join(quoted(after), " ")
	}
	if m.also != "" {
		line += "     or: orchestrator " + m.also
	}
	return line, true
}

// borrowedFlags are flags of other tools, by what they are called here.
var borrowedFlags = map[string]string{
	"depends-on": "needs", "depends_on": "needs", "after": "needs", "dependency": "needs",
	"f": "config", "file": "config",
	"o": "json", "output": "json", "format": "json",
	"D": "detach", "daemon": "detach", "background": "detach",
	"tail": "lines", "y": "yes", "force": "yes", "H": "host", "socket": "host",
	"no-color": "color", "data-dir": "state-dir", "e": "var", "w": "follow", "watch": "follow",
}

// likelyFlag is the flag of a verb that is meant by one that it does not have.
func likelyFlag(wrong string, set *pflag.FlagSet) string {
	if likely := borrowedFlags[wrong]; set.Lookup(likely) != nil {
		return likely
	}
	if len(wrong) < 2 {
		return ""
	}
	return nearest(wrong, flagNames(set))
}
