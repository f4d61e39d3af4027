package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/help"
)

// The page of commands is generated from the commands.
func TestCommandsPage(t *testing.T) {
	pageIs(t, "help/commands.md", commandsPage(), "TestCommandsPage")
}

// pageIs compares a generated page with the file, or writes the file with -update.
func pageIs(t *testing.T, file, fresh, test string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(fresh), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	has, should := strings.Split(string(text), "\n"), strings.Split(fresh, "\n")
	hint := fmt.Sprintf("update it with: go test ./cmd/orchestrator -run %s -update", test)
	for i := range min(len(has), len(should)) {
		require.Equal(t, should[i], has[i], "%s:%d\n%s", file, i+1, hint)
	}
	require.Equal(t, len(should), len(has), hint)
}

func commandsPage() string {
	root := rootCommand(testApp())
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Made by TestCommandsPage -update -->\n")
	b.WriteString("Every command, with its flags. `orchestrator COMMAND --help` says more of one, and\n`orchestrator` alone has them all on a screen.\n")
	b.WriteString("\n## Flags of every command\n\n" + flagTable(root.PersistentFlags()))
	eachVerb(root, func(verb *cobra.Command) {
		path := strings.TrimPrefix(verb.CommandPath(), "orchestrator ")
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", path, verb.Short, cli.UseLine(verb))
		if own, _ := cli.FlagsOf(verb); own.HasFlags() {
			b.WriteString("\n" + flagTable(own))
		}
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(unindented(verb.Example), "\n"))
	})
	return b.String()
}

// flagTable returns a table of flags. It omits defaults that are empty.
func flagTable(set *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| Flag | Default | What it does |\n|---|---|---|\n")
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if value != "" && flag.NoOptDefVal == "" {
			name += " " + value
		}
		standard := flag.DefValue
		if standard == "false" || standard == "[]" || standard == "0" {
			standard = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", coded(name), coded(standard), strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}

// coded returns a word as code in a table cell.
func coded(word string) string {
	if word == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(word, "|", `\|`) + "`"
}

// unindented returns text without the indentation by two spaces that examples have.
func unindented(text string) string {
	return regexp.MustCompile("(?m)^  ").ReplaceAllString(text, "")
}

// The page has an entry for every command and every flag. A new way to generate it must not lose
// any.
func TestEveryFlagHasAnEntry(t *testing.T) {
	page, err := help.ReadTopic("commands")
	require.NoError(t, err)
	root := rootCommand(testApp())
	parts := make(map[string]string)
	for part := range strings.SplitSeq(page, "\n## ") {
		title, body, _ := strings.Cut(part, "\n")
		parts[title] = body
	}
	verbs, flags := 0, 0
	eachVerb(root, func(verb *cobra.Command) {
		verbs++
		part, ok := parts[strings.TrimPrefix(verb.CommandPath(), "orchestrator ")]
		require.True(t, ok, verb.CommandPath())
		verb.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Name != "help" {
				flags++
				require.Regexp(t, "(?m)^\\| `(-., )?--"+flag.Name+"[ `]", part, verb.CommandPath())
			}
		})
	})
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		require.Regexp(t, "(?m)^\\| `(-., )?--"+flag.Name+"[ `]", parts["Flags of every command"])
	})
	require.Greater(t, verbs, 50)
	require.Greater(t, flags, 100)
}
