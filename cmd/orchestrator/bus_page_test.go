package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The agent and the configuration on the page are those that the script runs.
func TestTheAgentOfTheBusPageRuns(t *testing.T) {
	script, err := os.ReadFile("testdata/script/bus_team.txtar")
	require.NoError(t, err)
	ran := 0
	for _, block := range fences(t, "help/bus.md") {
		text := strings.Join(block.lines, "\n") + "\n"
		switch block.lang {
		case "sh":
			require.Contains(t, string(script), "\n-- answer.sh --\n"+text+"-- ")
			ran++
		case "hcl":
			require.Contains(t, string(script), "\n"+text)
			ran++
		}
	}
	require.Equal(t, 3, ran)
}
