package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Flags are the flags of every command.
type Flags struct {
	Config   string
	StateDir string
	Host     string
	JSON     bool
	Quiet    bool
	Verbose  bool
	color    Choice
	Timeout  Duration
	Vars     []string
	VarFiles []string
}

// AddFlags adds the flags of every command.
func (a *App) AddFlags(set *pflag.FlagSet) {
	f := &a.Flags
	f.color = Choice{Value: "auto", Of: []string{"auto", "always", "never"}}
	set.SortFlags = false
	set.StringVarP(&f.Config, "config", "c", "", "configuration `FILE` (else $ORC_CONFIG, else orchestrator.hcl here or in a parent)")
	set.StringVar(&f.StateDir, "state-dir", "", "use this state `DIR` instead of the file's")
	set.StringVar(&f.Host, "host", "", "speak to the orchestrator at `URL`: unix:///path, or the path of a socket (else $ORC_HOST)")
	set.BoolVar(&f.JSON, "json", false, "answer with one JSON document, or JSON lines for streams")
	set.BoolVarP(&f.Quiet, "quiet", "q", false, "print only the answer; for a list, only the names")
	set.BoolVarP(&f.Verbose, "verbose", "v", false, "print more details")
	set.Var(&f.color, "color", "when to use color: auto, always or never")
	set.Var(&f.Timeout, "timeout", "give up after `DUR`, for example 30s (exit 124)")
	set.StringArrayVar(&f.Vars, "var", nil, "set a variable of the file: `NAME=VALUE`, may be repeated")
	set.StringArrayVar(&f.VarFiles, "var-file", nil, "read variables from `FILE`, may be repeated")
}

// A Choice is a flag that takes one of a few words.
type Choice struct {
	Value string
	Of    []string
	Open  bool // other words are accepted too
	Close bool // with Open: a word close to one of the words is refused
}

func (c *Choice) String() string { return c.Value }
func (c *Choice) Type() string   { return "WORD" }

func (c *Choice) Set(word string) error {
	if !slices.Contains(c.Of, word) && (!c.Open || word == "" || c.Close && Nearest(word, c.Of) != "") {
		return fmt.Errorf("it must be one of %s%s", strings.Join(c.Of, ", "), DidYouMean(word, c.Of))
	}
	c.Value = word
	return nil
}

// Complete completes the words of the choice.
func (c *Choice) Complete(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.Of, cobra.ShellCompDirectiveNoFileComp
}

// A Guest has the flags of a command that joins a team as an agent.
type Guest struct {
	Name         string
	Role         Choice
	Capabilities []string
}

// AddFlags adds the flags to a command. The usage describes the flag for the name.
func (g *Guest) AddFlags(a *App, verb *cobra.Command, usage string) {
	g.Role = Choice{Of: wire.Roles, Open: true, Close: true}
	set := verb.Flags()
	set.StringVar(&g.Name, "as", "", usage)
	set.Var(&g.Role, "role", "the role of a new agent: worker, planner, reviewer or another word")
	set.StringSliceVar(&g.Capabilities, "capability", nil, "capabilities of a new agent: comma-separated `NAMES`; may be repeated")
	_ = verb.RegisterFlagCompletionFunc("as", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("role", g.Role.Complete)
	_ = verb.RegisterFlagCompletionFunc("capability", cobra.NoFileCompletions)
}

// Query returns the query that joins a pipe.
func (g *Guest) Query() url.Values {
	return url.Values{"as": {g.Name}, "role": {g.Role.Value}, "capability": g.Capabilities}
}

// ParseCount parses the value of -n: a number of items from least, or "all", which returns all.
func ParseCount(text, items string, least, all int) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case text == "all":
		return all, nil
	case err != nil || n < least:
		return 0, UsageError(fmt.Sprintf("-n cannot be %q", text), "Use a number of "+items+", or all")
	}
	return n, nil
}

// A Duration is a flag for a duration. Zero means not given.
type Duration struct{ time.Duration }

func (d *Duration) Type() string { return "DUR" }

func (d *Duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return d.Duration.String()
}

func (d *Duration) Set(text string) error {
	value, err := parseDuration(text)
	d.Duration = value
	return err
}

// parseDuration parses a duration. Its error explains a missing unit, the usual mistake.
func parseDuration(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	switch {
	case err != nil && text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("durations need a unit: %q?", text+"s")
	case err != nil:
		return 0, fmt.Errorf(`a time looks like "250ms", "30s" or "2h"`)
	case value < 0:
		return 0, fmt.Errorf("a time cannot be negative")
	}
	return value, nil
}

// flagFailure returns the failure for a wrong flag. If a wrong command precedes the flag,
// the failure is about the command.
func flagFailure(verb *cobra.Command, err error) error {
	if words := verb.Flags().Args(); verb.HasSubCommands() && len(words) > 0 {
		return UnknownVerb(verb, words)
	}
	hint := fmt.Sprintf("List its flags: %s --help", verb.CommandPath())
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		message := "unknown flag --" + name
		if unknown.GetSpecifiedShortnames() != "" {
			message = "unknown flag -" + name
		}
		if likely := likelyFlag(name, verb.Flags()); likely != "" {
			message += ".  Did you mean --" + likely + "?"
		}
		return UsageError(message, hint)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return UsageError(fmt.Sprintf("flag --%s requires a value", missing.GetFlag().Name), hint)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return UsageError(fmt.Sprintf("--%s cannot be %q: %v", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap()), hint)
	}
	return UsageError(err.Error(), hint)
}

// FlagNames returns the names of flags.
func FlagNames(set *pflag.FlagSet) []string {
	var names []string
	set.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// ParseTime parses a time of a flag: how long ago (10m), a clock time of today (14:33), or
// a date with an optional clock time.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, UsageError(
		fmt.Sprintf("--%s cannot be %q", flag, text),
		`Use a duration (10m, 2h), a time of today (14:33), or a date with a time ("2026-11-20 14:33", 2026-11-20T14:33:00Z)`,
	)
}

// ReadArg returns the text given with a flag or an argument: the text itself, the contents
// of FILE for @FILE, or stdin for "-". It removes the line end that editors and echo add.
// Errors name the flag by the first argument.
func (a *App) ReadArg(what, value string) (string, error) {
	var text []byte
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile && value != "-" {
		return value, nil
	}
	err := a.decline()
	switch {
	case err != nil:
		return "", err
	case value == "-":
		name = "stdin"
		text, err = readBounded(a.Stdin)
	default:
		text, err = ReadFile(a.Path(name))
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		hint := "Write the text"
		if isFile {
			hint = "For text that begins with @ use stdin: " + what + " -"
		}
		return "", UsageError(what+" cannot read "+name+": "+err.Error(), hint)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// maxGiven is the maximum size of an argument, equal to the maximum of a request.
const maxGiven = 16 << 20

func readBounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxGiven+1))
	if err == nil && len(text) > maxGiven {
		err = errors.New("it is larger than 16 MiB")
	}
	return text, err
}

// ReadFile reads a file of at most maxGiven bytes.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

// GivenDocument returns the JSON object given with a flag, or nil without the flag.
func (a *App) GivenDocument(flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := a.ReadArg("--"+flag, value)
	if err != nil {
		return nil, err
	}
	document := wire.Raw(text)
	if !document.IsValid() || document.Kind() != '{' {
		return nil, UsageError("--"+flag+" is not a JSON object: "+term.Clip(term.OneLine(text), 60), `Write it as: --`+flag+` '{"key": "value"}', or --`+flag+` @FILE`)
	}
	return document, nil
}

// GivenResult returns the JSON object or text given with a flag. A text that begins with {
// must be a valid object.
func (a *App) GivenResult(flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := a.ReadArg("--"+flag, value)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return a.GivenDocument(flag, text)
	}
	if document := wire.Raw(text); document.IsValid() && document.Kind() == '"' {
		return document, nil
	}
	return object.Encode(text)
}

// Quoted puts quotes around the words of a command that need them.
func Quoted(words []string) []string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = term.Word(word)
	}
	return shown
}

// NotEmpty returns an error for a flag that is given an empty value. In a script that is
// usually an unset variable.
func NotEmpty(verb *cobra.Command, names ...string) error {
	for _, name := range names {
		if flag := verb.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return UsageError("--"+name+" is empty", "Leave it out, or give a value")
		}
	}
	return nil
}

// ReplaceFile replaces a file atomically. It follows links and keeps the file's mode. A new
// file has the mode that the umask allows.
func ReplaceFile(path string, text []byte) error {
	var rights fs.FileMode
	if target, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		path, rights = target, info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".orchestrator-new-%d", os.Getpid()))
	next, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err == nil && rights != 0 {
		err = next.Chmod(rights)
	}
	if err == nil {
		err = next.Sync()
	}
	if closing := next.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
