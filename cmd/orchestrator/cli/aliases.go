package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A FlagAlias is another word for a flag. Help and completion show only the flag.
type FlagAlias struct {
	Word     string
	Flag     string
	Commands []string // without "orchestrator"; none: each command with the flag
}

// FlagAliases are the words of the screens and of the file for flags that have a shorter name.
var FlagAliases = []FlagAlias{
	{Word: "description", Flag: "spec"},
	{Word: "assignee", Flag: "assign"},
	{Word: "assignee", Flag: "agent", Commands: []string{"task ls", "task retry", "acp"}},
	{Word: "skill", Flag: "capability"},
	{Word: "skills", Flag: "capability"},
	{Word: "capabilities", Flag: "capability"},
	{Word: "requires", Flag: "capability", Commands: []string{"task add"}},
}

// addAliases lets a command and its subcommands accept the aliases of their flags.
func addAliases(verb *cobra.Command) {
	flags := make(map[string]string)
	path := strings.TrimPrefix(verb.CommandPath(), verb.Root().Name()+" ")
	for _, alias := range FlagAliases {
		if verb.Flags().Lookup(alias.Flag) != nil && (len(alias.Commands) == 0 || slices.Contains(alias.Commands, path)) {
			flags[alias.Word] = alias.Flag
		}
	}
	if len(flags) > 0 {
		verb.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			if flag, ok := flags[name]; ok {
				name = flag
			}
			return pflag.NormalizedName(name)
		})
	}
	for _, sub := range verb.Commands() {
		addAliases(sub)
	}
}

// aliasesOf returns the aliases that a set of flags accepts.
func aliasesOf(set *pflag.FlagSet) (words []string) {
	for _, alias := range FlagAliases {
		if set.Lookup(alias.Word) != nil {
			words = append(words, alias.Word)
		}
	}
	return words
}
