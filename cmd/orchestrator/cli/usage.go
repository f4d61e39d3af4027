package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire/object"
)

// showHelp prints the help of a command: its description, usage, flags and examples.
func (a *App) showHelp(verb *cobra.Command) {
	p := a.Paint(a.Stdout)
	if !verb.HasParent() {
		_ = a.Print("%s", Overview(verb, p))
		return
	}
	_ = a.Print("%s", verbHelp(verb, p, a.proseWidth()))
}

func verbHelp(verb *cobra.Command, p term.Paint, width int) string {
	var b strings.Builder
	if verb.Long != "" {
		mark := func(paragraph string) string { return MarkCommands(verb.Root(), paragraph) }
		b.WriteString(term.Wrap(verb.Long, mark, width))
	} else {
		b.WriteString(verb.Short + ".\n")
	}
	section := func(title, body string) {
		if body != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", p.Strong(title), strings.TrimRight(body, "\n"))
		}
	}
	section("Usage", "  "+UseLine(verb))
	var below strings.Builder
	wide := 12
	for _, name := range VerbNames(verb) {
		wide = max(wide, len(name)+2)
	}
	for _, sub := range verb.Commands() {
		if !sub.Hidden {
			fmt.Fprintf(&below, "  %s%s\n", term.Pad(sub.Name(), wide), sub.Short)
		}
	}
	section("Commands", below.String())
	section("Examples", verb.Example)
	own, common := FlagsOf(verb)
	section("Flags", own.FlagUsagesWrapped(width))
	section("Flags of every command", common.FlagUsagesWrapped(width))
	return b.String()
}

// FlagsOf splits the flags of a command into its own and the common ones, in the order of
// their declaration.
func FlagsOf(verb *cobra.Command) (own, common *pflag.FlagSet) {
	shared := verb.Root().PersistentFlags()
	own, common = pflag.NewFlagSet(verb.Name(), pflag.ContinueOnError), pflag.NewFlagSet(verb.Name(), pflag.ContinueOnError)
	own.SortFlags, common.SortFlags, verb.Flags().SortFlags = false, false, false
	verb.Flags().VisitAll(func(flag *pflag.Flag) {
		if shared.Lookup(flag.Name) != flag { // it can have the name of a common one: schema --config
			own.AddFlag(flag)
		}
	})
	shared.VisitAll(func(flag *pflag.Flag) {
		if own.Lookup(flag.Name) == nil {
			common.AddFlag(flag)
		}
	})
	return own, common
}

// UseLine returns the usage of a command in one line.
func UseLine(verb *cobra.Command) string {
	if verb.HasAvailableSubCommands() {
		return verb.CommandPath() + " COMMAND [flags]"
	}
	return verb.UseLine()
}

// Group returns a command that only groups subcommands.
func (a *App) Group(verb *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	verb.Args = cobra.ArbitraryArgs
	verb.ValidArgsFunction = cobra.NoFileCompletions
	verb.RunE = func(verb *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownVerb(verb, args)
		}
		if a.Flags.JSON {
			return noCommand(verb)
		}
		a.showHelp(verb)
		return nil
	}
	verb.AddCommand(verbs...)
	return verb
}

// noCommand returns the failure for --json with a command that only groups subcommands: its help is
// not a document.
func noCommand(verb *cobra.Command) error {
	return UsageError(fmt.Sprintf("%q requires a command", verb.CommandPath()), "List the commands: "+verb.CommandPath()+" --help")
}

// UnknownVerb returns the failure for an unknown command and its arguments.
func UnknownVerb(parent *cobra.Command, args []string) error {
	word := args[0]
	path := strings.TrimPrefix(parent.CommandPath(), "orchestrator")
	wrong := strings.TrimSpace(path + " " + word)
	message := fmt.Sprintf("unknown command %q", wrong)
	if line, ok := borrowedWord(wrong, args[1:]); ok {
		return UsageError(message, "Use: "+line)
	}
	if slices.Contains(help.TopicNames(), wrong) {
		return UsageError(message, "It is a page of the manual: orchestrator help "+wrong)
	}
	return UsageError(
		message+DidYouMean(word, VerbNames(parent)),
		fmt.Sprintf("List the commands: orchestrator%s --help", path),
	)
}

// VerbNames returns the names of all commands.
func VerbNames(parent *cobra.Command) []string {
	var names []string
	for _, verb := range parent.Commands() {
		if !verb.Hidden {
			names = append(names, verb.Name())
		}
	}
	return names
}

// ArgCount returns a check of the number of arguments. No limit applies if most < 0.
func ArgCount(least, most int) cobra.PositionalArgs {
	return func(verb *cobra.Command, args []string) error {
		hint := "Usage: " + strings.TrimSuffix(verb.UseLine(), " [flags]") + whichThereAre(verb)
		switch {
		case len(args) < least:
			return UsageError(fmt.Sprintf("%q requires %s", verb.CommandPath(), term.Count(least, "argument")), hint)
		case most >= 0 && len(args) > most:
			return UsageError(fmt.Sprintf("%q does not take the argument %q", verb.CommandPath(), args[most]), hint)
		}
		return nil
	}
}

// whichThereAre returns the end of a hint: the command that lists the names a command
// takes.
func whichThereAre(verb *cobra.Command) string {
	list := ""
	switch takes := argumentOf(verb); {
	case strings.HasPrefix(takes, "AGENT"):
		list = "ps"
	case takes == "ID" || takes == "ID…":
		if parent := verb.Parent().Name(); slices.Contains(VerbNames(verb.Parent()), "ls") {
			list = parent + " ls"
		}
	case takes == "TASK|AGENT":
		return "     List them: orchestrator ps     orchestrator task ls"
	}
	if list == "" {
		return ""
	}
	return "     List them: orchestrator " + list
}

// argumentOf returns the first argument of a command, as its help names it.
func argumentOf(verb *cobra.Command) string {
	_, arguments, _ := strings.Cut(verb.Use, " ")
	first, _, _ := strings.Cut(arguments, " ")
	return strings.Trim(first, "[]")
}

// Nearest returns the word closest to wrong, or "" if none is close.
func Nearest(wrong string, words []string) string {
	best, distance := "", max(1, min(3, len(wrong)/2))+1
	for _, word := range words {
		if d := object.EditDistance(wrong, word); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// DidYouMean returns the nearest word as the end of a message.
func DidYouMean(wrong string, words []string) string {
	if word := Nearest(wrong, words); word != "" {
		return fmt.Sprintf(".  Did you mean %q?", word)
	}
	return ""
}

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
	"retry":     {Alone: "task retry ID", Named: "task retry"},
	"rerun":     {Alone: "task retry ID", Named: "task retry"},
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
	return Nearest(wrong, append(FlagNames(set), aliasesOf(set)...))
}
