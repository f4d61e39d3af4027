package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
)

// Each borrowed word is suggested as an existing command, and is not itself a command.
func TestBorrowedWordsLeadSomewhere(t *testing.T) {
	root := rootCommand(cli.New(cli.Env{}))
	for word, m := range cli.ForeignCommands {
		for _, line := range []string{m.Alone, m.Named, m.Also} {
			if line == "" {
				continue
			}
			verb, _, err := root.Find(strings.Fields(line))
			require.NoError(t, err, "%s: %s", word, line)
			require.NotEqual(t, root, verb, "%s: %s", word, line)
			require.False(t, verb.HasSubCommands() && len(strings.Fields(line)) > 1, "%s: %s", word, line)
		}
		verb, rest, err := root.Find(strings.Fields(word))
		require.True(t, err != nil || len(rest) > 0, "%q is the verb %s", word, verb.CommandPath())
	}
}

// Each verb in ReadingVerbs exists under that name.
func TestReadingVerbsExist(t *testing.T) {
	root := rootCommand(cli.New(cli.Env{}))
	for path := range serve.ReadingVerbs {
		verb, _, err := root.Find(strings.Fields(path)[1:])
		require.NoError(t, err)
		require.Equal(t, path, verb.CommandPath())
	}
}

// Each borrowed flag is suggested as a flag that some verb has.
func TestBorrowedFlagsLeadSomewhere(t *testing.T) {
	root := rootCommand(cli.New(cli.Env{}))
	for word, flag := range cli.ForeignFlags {
		found := false
		for _, name := range append(cli.VerbNames(root), "bus poll", "task add") {
			verb, _, err := root.Find(strings.Fields(name))
			require.NoError(t, err)
			found = found || verb.Flag(flag) != nil
		}
		require.True(t, found, "%s: --%s", word, flag)
	}
}
