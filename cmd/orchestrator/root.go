package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/plain"
)

// rootCommand makes the whole command line.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "orchestrator",
		Short:             "Runs your agents and keeps them running",
		SilenceErrors:     true, // report says them, in text or JSON
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRun:  func(*cobra.Command, []string) { a.parsed = true },
		RunE: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(root, args[0])
			}
			return a.print("%s", overview(root, a.paint(a.stdout)))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.addFlags(root.PersistentFlags())
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.fmtCommand(), a.schemaCommand(),
		a.upCommand(), a.runCommand(), a.pipeCommand(), a.reloadCommand(), a.downCommand(),
		a.statusCommand(), a.watchCommand(), a.logsCommand(), a.eventsCommand(), a.whyCommand(), a.graphCommand("orchestrator graph"),
		a.taskCommand(), a.inboxCommand(), a.busCommand(), a.sessionCommand(), a.reviewCommand(),
		a.agentCommand(), a.psCommand(), a.keyCommand(), a.tokenCommand(),
		a.versionCommand(), a.completionCommand(),
	)
	root.SetHelpCommand(a.helpCommand())
	root.InitDefaultHelpCmd()
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) { a.showHelp(verb) })
	root.SetFlagErrorFunc(flagFailure)
	a.completeFlags(root)
	return root
}

// unknownVerb is the answer to a verb that does not exist.
func unknownVerb(parent *cobra.Command, word string) error {
	path := strings.TrimPrefix(parent.CommandPath(), "orchestrator")
	return misused(
		fmt.Sprintf("unknown command %q%s", strings.TrimSpace(path+" "+word), didYouMean(word, verbNames(parent))),
		fmt.Sprintf("See what there is: orchestrator%s --help", path),
	)
}

func verbNames(parent *cobra.Command) []string {
	var names []string
	for _, verb := range parent.Commands() {
		if !verb.Hidden {
			names = append(names, verb.Name())
		}
	}
	return names
}

// flagFailure says what is wrong with a flag. A wrong flag after a wrong verb
// is the verb's mistake: the root took it for a word.
func flagFailure(verb *cobra.Command, err error) error {
	if words := verb.Flags().Args(); verb.HasSubCommands() && len(words) > 0 {
		return unknownVerb(verb, words[0])
	}
	hint := fmt.Sprintf("See its flags: %s --help", verb.CommandPath())
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if unknown.GetSpecifiedShortnames() != "" {
			return misused("unknown flag -"+unknown.GetSpecifiedName(), hint)
		}
		name := unknown.GetSpecifiedName()
		message := "unknown flag --" + name
		if likely := nearest(name, flagNames(verb)); likely != "" {
			message += ".  Did you mean --" + likely + "?"
		}
		return misused(message, hint)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return misused(fmt.Sprintf("flag --%s wants a value", missing.GetFlag().Name), hint)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return misused(fmt.Sprintf("--%s cannot be %q: %v", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap()), hint)
	}
	return misused(err.Error(), hint)
}

func flagNames(verb *cobra.Command) []string {
	var names []string
	verb.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// words limits how many arguments a verb takes; most < 0 is any number.
func words(least, most int) cobra.PositionalArgs {
	return func(verb *cobra.Command, args []string) error {
		hint := fmt.Sprintf("Write: %s", verb.UseLine())
		switch {
		case len(args) < least:
			return misused(fmt.Sprintf("%q wants %s", verb.CommandPath(), plain.Count(least, "argument")), hint)
		case most >= 0 && len(args) > most:
			return misused(fmt.Sprintf("%q has no use for %q", verb.CommandPath(), args[most]), hint)
		}
		return nil
	}
}
