package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
)

func TestSettled(t *testing.T) {
	view := func(name string, state control.State, on ...string) control.AgentView {
		return control.AgentView{Name: name, State: state, DependsOn: on}
	}
	waiting := func(name string, on ...string) control.AgentView { return view(name, control.StateWaiting, on...) }
	for name, test := range map[string]struct {
		agents []control.AgentView
		want   bool
	}{
		"none":                     {want: true},
		"running":                  {want: true, agents: []control.AgentView{view("a", control.StateRunning), view("b", control.StateFailed)}},
		"starting":                 {agents: []control.AgentView{view("a", control.StateRunning), view("b", control.StateStarting)}},
		"waits for a start":        {agents: []control.AgentView{view("a", control.StateStarting), waiting("b", "a")}},
		"waits for one that runs":  {agents: []control.AgentView{view("a", control.StateRunning), waiting("b", "a")}},
		"waits for one in backoff": {agents: []control.AgentView{view("a", control.StateBackoff), waiting("b", "a")}},
		"waits in vain":            {want: true, agents: []control.AgentView{view("a", control.StateFailed), waiting("b", "a")}},
		"in vain, further up": {want: true, agents: []control.AgentView{
			waiting("d", "c"), waiting("c", "b", "x"), waiting("b", "a"), view("a", control.StateFailed), view("x", control.StateRunning),
		}},
		"hope, further up": {agents: []control.AgentView{
			waiting("d", "c"), waiting("c", "b"), waiting("b", "a"), view("a", control.StateBackoff),
		}},
	} {
		require.Equal(t, test.want, settled(control.Status{Agents: test.agents}), name)
	}
}

// The log of a background orchestrator is rotated when it is large.
func TestTurn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "orchestrator.log")
	require.NoError(t, turn(name), "there is none yet")
	for size, turned := range map[int64]bool{OwnLogSize: false, OwnLogSize + 1: true} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Truncate(name, size))
		require.NoError(t, turn(name))
		if !turned {
			require.FileExists(t, name)
			continue
		}
		require.NoFileExists(t, name)
		info, err := os.Stat(name + ".1")
		require.NoError(t, err)
		require.Equal(t, size, info.Size())
	}
}
