package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are those that every verb has.
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

// AddFlags adds the flags that all commands share.
func (a *App) AddFlags(set *pflag.FlagSet) {
	f := &a.Flags
	f.color = Choice{Value: "auto", Of: []string{"auto", "always", "never"}}
	set.SortFlags = false
	set.StringVarP(&f.Config, "config", "c", "", "configuration `FILE` (else $ORC_CONFIG, else orchestrator.hcl here or in a parent)")
	set.StringVar(&f.StateDir, "state-dir", "", "use this state `DIR` instead of the file's")
	set.StringVar(&f.Host, "host", "", "speak to the orchestrator at `URL`: unix:///path, or the path of a socket (else $ORC_HOST)")
	set.BoolVar(&f.JSON, "json", false, "answer with one JSON document, or JSON lines for streams")
	set.BoolVarP(&f.Quiet, "quiet", "q", false, "only the answer; names alone where it is a list")
	set.BoolVarP(&f.Verbose, "verbose", "v", false, "say more")
	set.Var(&f.color, "color", "colours: auto, always or never")
	set.Var(&f.Timeout, "timeout", "give up after `DUR`, such as 30s (exit 124)")
	set.StringArrayVar(&f.Vars, "var", nil, "set a variable of the file: `NAME=VALUE`, may be repeated")
	set.StringArrayVar(&f.VarFiles, "var-file", nil, "read variables from `FILE`, may be repeated")
}

// Choice is a flag that takes one of a few words.
type Choice struct {
	Value string
	Of    []string
	Open  bool // other words are taken as well
	Close bool // and a word that is nearly one of the words is refused
}

func (c *Choice) String() string { return c.Value }
func (c *Choice) Type() string   { return "WORD" }

func (c *Choice) Set(word string) error {
	if !slices.Contains(c.Of, word) && (!c.Open || word == "" || c.Close && Nearest(word, c.Of) != "") {
		return fmt.Errorf("it is one of %s%s", strings.Join(c.Of, ", "), DidYouMean(word, c.Of))
	}
	c.Value = word
	return nil
}

// Complete offers the words of the choice to a shell.
func (c *Choice) Complete(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.Of, cobra.ShellCompDirectiveNoFileComp
}

// Duration is a flag for a length of time. Zero is as good as not given.
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

// parseDuration reads a length of time and explains the mistake that most people
// makes once.
func parseDuration(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	switch {
	case err != nil && text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("times need a unit: %q?", text+"s")
	case err != nil:
		return 0, fmt.Errorf(`a time looks like "250ms", "30s" or "2h"`)
	case value < 0:
		return 0, fmt.Errorf("a time is not negative")
	}
	return value, nil
}

// FlagFailure returns what is wrong with a flag. A wrong flag after a wrong verb
// is the verb's mistake: the root took it for a word.
func FlagFailure(verb *cobra.Command, err error) error {
	if words := verb.Flags().Args(); verb.HasSubCommands() && len(words) > 0 {
		return UnknownVerb(verb, words)
	}
	hint := fmt.Sprintf("See its flags: %s --help", verb.CommandPath())
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
		return UsageError(fmt.Sprintf("flag --%s wants a value", missing.GetFlag().Name), hint)
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
