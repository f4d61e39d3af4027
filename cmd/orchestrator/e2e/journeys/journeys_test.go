package journeys

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/fixtures/programs"
)

// TestJourneys plays typical uses of several features at once. Each script has the programs of the folder, an identity
// for git, and $ADDRESS, a free address for a hub. Processes that it leaves are killed.
func TestJourneys(t *testing.T) {
	stage.RunScripts(t, ".", func(env *testscript.Env) error {
		addresses, err := programs.FreeAddresses(1)
		if err != nil {
			return err
		}
		env.Setenv("ADDRESS", addresses[0])
		shared, err := filepath.Glob("*.sh")
		if err != nil {
			return err
		}
		for _, program := range shared {
			text, err := os.ReadFile(program)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(env.WorkDir, filepath.Base(program)), text, 0o600); err != nil {
				return err
			}
		}
		env.Defer(func() { // processes left by a failed script
			kill := exec.Command("sh", "kill.sh")
			kill.Dir, kill.Env = env.WorkDir, env.Vars
			_ = kill.Run()
		})
		identity := "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
		return os.WriteFile(filepath.Join(env.WorkDir, ".gitconfig"), []byte(identity), 0o600)
	})
}

// features are the features in the pair table, in its order.
var features = []string{
	"needs", "workspace", "verify", "queue", "review", "session", "budget", "confine", "host", "upgrade",
	"reload", "kill", "restore", "exit-when-idle", "retry", "quota", "pty", "adapters",
}

// apart are pairs of features that cannot meet, with the reason.
var apart = map[string]string{
	"pty adapters": "cannot: a coding agent speaks over pipes: a file with both is refused",
}

// uncrossed are the pairs of features that can meet, and that no script crosses yet. A pair leaves the list with its script.
var uncrossed = []string{}

// TestJourneyPairs compares the table of pairs with the scripts: -update writes it. Each pair of features is crossed by
// a script, or is listed as apart or as uncrossed.
func TestJourneyPairs(t *testing.T) {
	scripts, err := filepath.Glob("*.txtar")
	require.NoError(t, err)
	crossed := make(map[string][]string) // by the features of a pair
	for _, script := range scripts {
		has := featuresOf(t, script)
		for i, a := range has {
			for _, b := range has[i+1:] {
				crossed[a+" "+b] = append(crossed[a+" "+b], strings.TrimSuffix(filepath.Base(script), ".txtar"))
			}
		}
	}
	var table strings.Builder
	table.WriteString("# Pairs of features\n\nThe scripts that cross them. `go test ./cmd/orchestrator/e2e/journeys -run TestJourneyPairs -update` writes this table.\n\n| | | scripts |\n|---|---|---|\n")
	for i, a := range features {
		for _, b := range features[i+1:] {
			names, reason := strings.Join(crossed[a+" "+b], ", "), apart[a+" "+b]
			if slices.Contains(uncrossed, a+" "+b) {
				reason = "not yet"
			}
			assert.NotEqual(t, names == "", reason == "", "%s and %s: %q, %q", a, b, names, reason)
			fmt.Fprintf(&table, "| %s | %s | %s |\n", a, b, cmp.Or(names, reason))
		}
	}
	const golden = "pairs.md"
	if *source.Update {
		require.NoError(t, os.WriteFile(golden, []byte(table.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), table.String(), "write it anew with -update")
}

// featuresOf returns the features that the first line of a script lists, in the order of the table.
func featuresOf(t *testing.T, script string) []string {
	t.Helper()
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	list, ok := strings.CutPrefix(first, "# features: ")
	require.True(t, ok, "%s: its first line is to be: # features: needs, workspace", script)
	has := strings.Split(list, ", ")
	require.GreaterOrEqual(t, len(has), 3, script)
	for _, feature := range has {
		require.Contains(t, features, feature, script)
	}
	slices.SortFunc(has, func(a, b string) int { return slices.Index(features, a) - slices.Index(features, b) })
	return has
}
