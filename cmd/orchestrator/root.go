package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/plain"
)

// rootCommand makes the whole command line.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "orchestrator",
		Short:             "Run a team of agents from one file",
		SilenceErrors:     true, // report says them, in text or JSON
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRun: func(verb *cobra.Command, _ []string) {
			a.parsed, a.reading = true, readingVerbs[verb.CommandPath()]
		},
		RunE: func(root *cobra.Command, args []string) error {
			switch asked, _ := root.Flags().GetBool("version"); {
			case len(args) > 0:
				return unknownVerb(root, args)
			case asked:
				return a.showVersion()
			}
			return a.print("%s", overview(root, a.paint(a.stdout)))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.addFlags(root.PersistentFlags())
	root.Flags().BoolP("version", "V", false, "which orchestrator this is")
	_ = root.Flags().MarkHidden("version") // the verb is what is told of
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.fmtCommand(), a.schemaCommand(),
		a.upCommand(), a.runCommand(), a.pipeCommand(), a.reloadCommand(), a.downCommand(),
		a.statusCommand(), a.watchCommand(), a.logsCommand(), a.eventsCommand(), a.whyCommand(), a.graphCommand("orchestrator graph"),
		a.taskCommand(), a.inboxCommand(), a.busCommand(), a.sessionCommand(), a.reviewCommand(),
		a.agentCommand(), a.psCommand(), a.checkCommand(), a.keyCommand(), a.tokenCommand(), a.backupCommand(), a.storeCommand(),
		a.versionCommand(), a.completionCommand(),
	)
	root.SetHelpCommand(a.helpCommand())
	root.InitDefaultHelpCmd()
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) { a.showHelp(verb) })
	root.SetFlagErrorFunc(flagFailure)
	a.completeFlags(root)
	return root
}

// unknownVerb is the answer to a verb that does not exist, with what came after
// it.
func unknownVerb(parent *cobra.Command, args []string) error {
	word := args[0]
	path := strings.TrimPrefix(parent.CommandPath(), "orchestrator")
	wrong := strings.TrimSpace(path + " " + word)
	message := fmt.Sprintf("unknown command %q", wrong)
	if line, ok := borrowedWord(wrong, args[1:]); ok {
		return usageError(message, "Here that is: "+line)
	}
	if slices.Contains(topicNames(), wrong) {
		return usageError(message, "It is a topic of the manual: orchestrator help "+wrong)
	}
	return usageError(
		message+didYouMean(word, verbNames(parent)),
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

// flagFailure returns what is wrong with a flag. A wrong flag after a wrong verb
// is the verb's mistake: the root took it for a word.
func flagFailure(verb *cobra.Command, err error) error {
	if words := verb.Flags().Args(); verb.HasSubCommands() && len(words) > 0 {
		return unknownVerb(verb, words)
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
		return usageError(message, hint)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError(fmt.Sprintf("flag --%s wants a value", missing.GetFlag().Name), hint)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError(fmt.Sprintf("--%s cannot be %q: %v", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap()), hint)
	}
	return usageError(err.Error(), hint)
}

func flagNames(set *pflag.FlagSet) []string {
	var names []string
	set.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// argCount limits how many arguments a verb takes; most < 0 is any number.
func argCount(least, most int) cobra.PositionalArgs {
	return func(verb *cobra.Command, args []string) error {
		hint := "Write: " + strings.TrimSuffix(verb.UseLine(), " [flags]") + whichThereAre(verb)
		switch {
		case len(args) < least:
			return usageError(fmt.Sprintf("%q wants %s", verb.CommandPath(), plain.Count(least, "argument")), hint)
		case most >= 0 && len(args) > most:
			return usageError(fmt.Sprintf("%q has no use for %q", verb.CommandPath(), args[most]), hint)
		}
		return nil
	}
}

// whichThereAre is the end of a hint to a verb that takes the name of something:
// where such names are listed.
func whichThereAre(verb *cobra.Command) string {
	list := ""
	switch takes := argumentOf(verb); {
	case strings.HasPrefix(takes, "AGENT"):
		list = "ps"
	case takes == "ID" || takes == "ID…":
		if parent := verb.Parent().Name(); slices.Contains(verbNames(verb.Parent()), "ls") {
			list = parent + " ls"
		}
	case takes == "TASK|AGENT":
		return "     See which there are: orchestrator ps     orchestrator task ls"
	}
	if list == "" {
		return ""
	}
	return "     See which there are: orchestrator " + list
}

// argumentOf is the first argument that a verb takes, as its help calls it.
func argumentOf(verb *cobra.Command) string {
	_, arguments, _ := strings.Cut(verb.Use, " ")
	first, _, _ := strings.Cut(arguments, " ")
	return strings.Trim(first, "[]")
}
