package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/plain"
)

// showHelp prints what a verb does, how it is written and what it takes.
func (a *app) showHelp(verb *cobra.Command) {
	p := a.paint(a.stdout)
	if !verb.HasParent() {
		_ = a.print("%s", overview(verb, p))
		return
	}
	_ = a.print("%s", verbHelp(verb, p, columns(a.stdout, 100)))
}

func verbHelp(verb *cobra.Command, p paint, width int) string {
	var b strings.Builder
	if verb.Long != "" {
		b.WriteString(strings.TrimSpace(verb.Long) + "\n")
	} else {
		b.WriteString(verb.Short + ".\n")
	}
	section := func(title, body string) {
		if body != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", p.strong(title), strings.TrimRight(body, "\n"))
		}
	}
	section("Usage", "  "+useLine(verb))
	var below strings.Builder
	wide := 12
	for _, name := range verbNames(verb) {
		wide = max(wide, len(name)+2)
	}
	for _, sub := range verb.Commands() {
		if !sub.Hidden {
			fmt.Fprintf(&below, "  %s%s\n", plain.Pad(sub.Name(), wide), sub.Short)
		}
	}
	section("Commands", below.String())
	section("Examples", verb.Example)
	own, common := flagsOf(verb)
	section("Flags", own.FlagUsagesWrapped(width))
	section("Flags of every command", common.FlagUsagesWrapped(width))
	return b.String()
}

// flagsOf splits the flags of a verb into its own and those of every verb, in
// the order they were declared in.
func flagsOf(verb *cobra.Command) (own, common *pflag.FlagSet) {
	common = verb.Root().PersistentFlags()
	own = pflag.NewFlagSet(verb.Name(), pflag.ContinueOnError)
	own.SortFlags = false
	verb.Flags().SortFlags = false
	verb.Flags().VisitAll(func(flag *pflag.Flag) {
		if common.Lookup(flag.Name) == nil {
			own.AddFlag(flag)
		}
	})
	return own, common
}

func useLine(verb *cobra.Command) string {
	if verb.HasSubCommands() {
		return verb.CommandPath() + " COMMAND [flags]"
	}
	return verb.UseLine()
}

// group makes a command of verbs that does nothing by itself.
func (a *app) group(verb *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	verb.Args = cobra.ArbitraryArgs
	verb.ValidArgsFunction = cobra.NoFileCompletions
	verb.RunE = func(verb *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownVerb(verb, args)
		}
		a.showHelp(verb)
		return nil
	}
	verb.AddCommand(verbs...)
	return verb
}
