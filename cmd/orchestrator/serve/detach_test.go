package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

func TestSettled(t *testing.T) {
	view := func(name string, state wire.State, on ...string) wire.AgentView {
		return wire.AgentView{Name: name, State: state, DependsOn: on}
	}
	waiting := func(name string, on ...string) wire.AgentView { return view(name, wire.StateWaiting, on...) }
	for name, test := range map[string]struct {
		agents []wire.AgentView
		want   bool
	}{
		"none":                     {want: true},
		"running":                  {want: true, agents: []wire.AgentView{view("a", wire.StateRunning), view("b", wire.StateFailed)}},
		"starting":                 {agents: []wire.AgentView{view("a", wire.StateRunning), view("b", wire.StateStarting)}},
		"waits for a start":        {agents: []wire.AgentView{view("a", wire.StateStarting), waiting("b", "a")}},
		"waits for one that runs":  {agents: []wire.AgentView{view("a", wire.StateRunning), waiting("b", "a")}},
		"waits for one in backoff": {agents: []wire.AgentView{view("a", wire.StateBackoff), waiting("b", "a")}},
		"waits in vain":            {want: true, agents: []wire.AgentView{view("a", wire.StateFailed), waiting("b", "a")}},
		"in vain, further up": {want: true, agents: []wire.AgentView{
			waiting("d", "c"), waiting("c", "b", "x"), waiting("b", "a"), view("a", wire.StateFailed), view("x", wire.StateRunning),
		}},
		"hope, further up": {agents: []wire.AgentView{
			waiting("d", "c"), waiting("c", "b"), waiting("b", "a"), view("a", wire.StateBackoff),
		}},
	} {
		require.Equal(t, test.want, settled(wire.Status{Agents: test.agents}), name)
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
