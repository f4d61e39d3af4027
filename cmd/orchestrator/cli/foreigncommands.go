package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// ForeignCommands maps commands of other tools to the commands of this one. It is not used
// for words that are commands here.
var ForeignCommands = map[string]meant{
	"start":    {Alone: "up", Named: "agent start"},
	"launch":   {Alone: "up", Named: "up"},
	"compose":  {Alone: "up"},
	"serve":    {Alone: "up -d"},
	"daemon":   {Alone: "up -d"},
	"stop":     {Alone: "down", Named: "agent stop"},
	"shutdown": {Alone: "down"},
	"quit":     {Alone: "down"},
	"exit":     {Alone: "down"},
	"destroy":  {Alone: "down"},
	"kill":     {Alone: "down --force", Named: "agent stop"},
	"restart":  {Alone: "agent restart --all", Named: "agent restart"},
	"plan":     {Alone: "reload --dry-run"},
	"apply":    {Alone: "reload"},
	"config":   {Alone: "validate", Named: "validate"},
	"lint":     {Alone: "validate", Named: "validate"},
	"format":   {Alone: "fmt", Named: "fmt"},
	"create":   {Alone: "init", Named: "init"},
	"new":      {Alone: "init", Named: "init"},

	"ls":       {Alone: "agent ls", Also: "task ls"},
	"list":     {Alone: "agent ls", Also: "task ls"},
	"agents":   {Alone: "agent ls"},
	"tasks":    {Alone: "task ls"},
	"info":     {Alone: "status"},
	"top":      {Alone: "status"},
	"stats":    {Alone: "status"},
	"show":     {Alone: "agent show AGENT", Named: "agent show", Also: "task show ID"},
	"get":      {Alone: "agent show AGENT", Named: "agent show", Also: "task show ID"},
	"inspect":  {Alone: "agent show AGENT", Named: "agent show", Also: "task show ID"},
	"describe": {Alone: "agent show AGENT", Named: "agent show", Also: "task show ID"},
	"explain":  {Alone: "why AGENT", Named: "why"},
	"tail":     {Alone: "logs -f", Named: "logs -f"},
	"attach":   {Alone: "logs -f", Named: "logs -f"},
	"history":  {Alone: "events"},
	"exec":     {Alone: "run -- CMD"},
	"shell":    {Alone: "run -- CMD"},

	"add":       {Alone: "task add TITLE", Named: "task add"},
	"submit":    {Alone: "task add TITLE", Named: "task add"},
	"wait":      {Alone: "task wait ID", Named: "task wait"},
	"cancel":    {Alone: "task cancel ID", Named: "task cancel"},
	"ask":       {Alone: "inbox"},
	"questions": {Alone: "inbox"},
	"answer":    {Alone: "inbox answer ID VALUE", Named: "inbox answer"},
	"reply":     {Alone: "inbox answer ID VALUE", Named: "inbox answer"},
	"send":      {Alone: "bus send --to ACTOR --topic TOPIC"},
	"login":     {Alone: "token issue --sub NAME"},

	"task list":     {Alone: "task ls"},
	"task new":      {Alone: "task add TITLE", Named: "task add"},
	"task create":   {Alone: "task add TITLE", Named: "task add"},
	"task rm":       {Alone: "task cancel ID", Named: "task cancel"},
	"task remove":   {Alone: "task cancel ID", Named: "task cancel"},
	"task delete":   {Alone: "task cancel ID", Named: "task cancel"},
	"task stop":     {Alone: "task cancel ID", Named: "task cancel"},
	"task get":      {Alone: "task show ID", Named: "task show"},
	"task status":   {Alone: "task show ID", Named: "task show"},
	"task inspect":  {Alone: "task show ID", Named: "task show"},
	"task describe": {Alone: "task show ID", Named: "task show"},
	"task complete": {Alone: "task done ID", Named: "task done"},
	"task finish":   {Alone: "task done ID", Named: "task done"},
	"task edit":     {Alone: "task update ID", Named: "task update"},
	"task run":      {Alone: "task start ID", Named: "task start"},
	"task approve":  {Alone: "task approve-plan ID", Named: "task approve-plan"},
	"task why":      {Alone: "why ID", Named: "why"},
	"task logs":     {Alone: "events --task ID", Named: "events --task"},
	"task events":   {Alone: "events --task ID", Named: "events --task"},

	"agent list":     {Alone: "agent ls"},
	"agent ps":       {Alone: "agent ls"},
	"agent kill":     {Alone: "agent stop AGENT", Named: "agent stop"},
	"agent get":      {Alone: "agent show AGENT", Named: "agent show"},
	"agent status":   {Alone: "agent show AGENT", Named: "agent show"},
	"agent inspect":  {Alone: "agent show AGENT", Named: "agent show"},
	"agent describe": {Alone: "agent show AGENT", Named: "agent show"},
	"agent why":      {Alone: "why AGENT", Named: "why"},
	"agent logs":     {Alone: "logs AGENT", Named: "logs"},

	"inbox list":    {Alone: "inbox ls"},
	"inbox show":    {Alone: "inbox ls"},
	"inbox reply":   {Alone: "inbox answer ID VALUE", Named: "inbox answer"},
	"inbox respond": {Alone: "inbox answer ID VALUE", Named: "inbox answer"},
}

// meant holds the commands for a word of another tool: Alone without arguments, Named with
// them, and Also as an alternative.
type meant struct{ Alone, Named, Also string }

// borrowedWord returns a command line that can be pasted for a command of another tool. It
// repeats the arguments if they are names.
func borrowedWord(path string, after []string) (string, bool) {
	m, known := ForeignCommands[path]
	if !known {
		return "", false
	}
	line := "orchestrator " + m.Alone
	switch {
	case path == "compose" && len(after) > 0:
		line = "orchestrator " + strings.Join(Quoted(after), " ")
	case m.Named != "" && len(after) > 0:
		line = "orchestrator " + m.Named + " " + strings.Join(Quoted(after), " ")
	}
	if m.Also != "" {
		line += "     or: orchestrator " + m.Also
	}
	return line, true
}

// ForeignFlags maps flags of other tools to the flags of this one.
var ForeignFlags = map[string]string{
	"depends-on": "needs", "depends_on": "needs", "after": "needs", "dependency": "needs",
	"f": "config", "file": "config",
	"o": "json", "output": "json", "format": "json",
	"D": "detach", "daemon": "detach", "background": "detach",
	"tail": "lines", "y": "yes", "force": "yes", "H": "host", "socket": "host",
	"no-color": "color", "data-dir": "state-dir", "e": "var", "w": "follow", "watch": "follow",
}

// likelyFlag returns the flag that was probably meant by an unknown one, or "".
func likelyFlag(wrong string, set *pflag.FlagSet) string {
	if likely := ForeignFlags[wrong]; set.Lookup(likely) != nil {
		return likely
	}
	if len(wrong) < 2 {
		return ""
	}
	return Nearest(wrong, FlagNames(set))
}
