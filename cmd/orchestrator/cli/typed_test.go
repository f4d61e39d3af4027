package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestMarkCommands checks which words of a text are one command.
func TestMarkCommands(t *testing.T) {
	root, task, help := &cobra.Command{Use: "orchestrator"}, &cobra.Command{Use: "task"}, &cobra.Command{Use: "help"}
	root.AddCommand(task, help)
	task.AddCommand(&cobra.Command{Use: "ls"})
	for text, marked := range map[string]string{
		"see orchestrator task ls for\nall":             "see `orchestrator task ls` for all",
		"The orchestrator stops its agents.":            "The orchestrator stops its agents.",
		"its tasks: orchestrator task. Ls is short":     "its tasks: `orchestrator task.` Ls is short",
		"(orchestrator task ls --json), or":             "`(orchestrator task ls --json),` or",
		"with --lines N it lists, with --json also all": "with `--lines N` it lists, with --json also all",
		"orchestrator help config restart and tasks":    "`orchestrator help config restart` and tasks",
		"the orchestrator":                              "the orchestrator",
		"":                                              "",
	} {
		require.Equal(t, marked, MarkCommands(root, text))
	}
}
