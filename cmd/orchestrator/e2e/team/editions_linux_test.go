package team

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
)

// A file and a record of each earlier edition can be used: the tasks, the question and the session exist, the snapshot
// leads to the same state as all facts, and the team continues. Folder 1 is from before task blocks, 2 from before
// workspaces, hosts and shared stores. A release that adds facts adds a folder.
func TestEditions(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/editions/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(folders), 3)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "").Ship()
			require.NoError(t, os.Remove(s.Path("orchestrator.hcl")))
			require.NoError(t, os.CopyFS(s.Dir, os.DirFS(folder)))
			require.Contains(t, s.Ask("validate"), "orchestrator.hcl is valid: 3 agents.")
			s.Ask("fmt", "--check")
			require.NoError(t, os.Mkdir(s.State(), 0o700))
			require.NoError(t, os.Chmod(s.Path("events.db"), 0o600))
			require.NoError(t, os.Rename(s.Path("events.db"), filepath.Join(s.State(), "events.db")))
			require.Contains(t, s.Ask("store", "check"), "all in order")
			require.Contains(t, s.Ask("replay"), "1 open")
			s.Up("--json")
			s.WaitForEvents(1, "agent.started", "hello")
			states := make(map[string]wire.TaskState)
			for _, task := range (&stage.Repo{Team: &stage.Team{Orchestrator: s}}).Tasks() {
				states[task.Name] = task.State
			}
			require.Equal(t, wire.TaskDone, states["One"])
			require.Equal(t, wire.TaskDone, states["From an agent"])
			require.Equal(t, wire.TaskPending, states["Needs a person"])
			require.Equal(t, wire.TaskPending, states["After it"])
			require.Equal(t, wire.TaskCancelled, states["Cancelled"])
			require.Contains(t, s.Ask("session", "ls"), "change  open")
			require.Contains(t, s.Ask("task", "add", "New", "--capability", "greet", "--wait", "--timeout", "2m"), " done in ")
			s.Stop()
		})
	}
}
