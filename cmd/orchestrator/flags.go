package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags are those that every verb has.
type flags struct {
	config   string
	stateDir string
	host     string
	json     bool
	quiet    bool
	verbose  bool
	color    choice
	timeout  duration
	vars     []string
	varFiles []string
}

func (a *app) addFlags(set *pflag.FlagSet) {
	f := &a.flags
	f.color = choice{value: "auto", of: []string{"auto", "always", "never"}}
	set.SortFlags = false
	set.StringVarP(&f.config, "config", "c", "", "configuration `FILE` (else $ORC_CONFIG, else orchestrator.hcl here or in a parent)")
	set.StringVar(&f.stateDir, "state-dir", "", "use this state `DIR` instead of the file's")
	set.StringVar(&f.host, "host", "", "speak to the orchestrator at `URL`: unix:///path, or the path of a socket (else $ORC_HOST)")
	set.BoolVar(&f.json, "json", false, "answer with one JSON document, or JSON lines for streams")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "only the answer; names alone where it is a list")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "say more")
	set.Var(&f.color, "color", "colours: auto, always or never")
	set.Var(&f.timeout, "timeout", "give up after `DUR`, such as 30s (exit 124)")
	set.StringArrayVar(&f.vars, "var", nil, "set a variable of the file: `NAME=VALUE`, may be repeated")
	set.StringArrayVar(&f.varFiles, "var-file", nil, "read variables from `FILE`, may be repeated")
}

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
	open  bool // other words are taken as well
	close bool // and a word that is nearly one of the words is refused
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "WORD" }

func (c *choice) Set(word string) error {
	if !slices.Contains(c.of, word) && (!c.open || word == "" || c.close && nearest(word, c.of) != "") {
		return fmt.Errorf("it is one of %s%s", strings.Join(c.of, ", "), didYouMean(word, c.of))
	}
	c.value = word
	return nil
}

// complete offers the words of the choice to a shell.
func (c *choice) complete(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.of, cobra.ShellCompDirectiveNoFileComp
}

// duration is a flag for a length of time. Zero is as good as not given.
type duration struct{ time.Duration }

func (d *duration) Type() string { return "DUR" }

func (d *duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return d.Duration.String()
}

func (d *duration) Set(text string) error {
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
