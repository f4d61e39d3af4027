package team

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/wire/events"
)

// Everything in the state directory of a real orchestrator has a row with its bound in the manual.
func TestStateDirectoryIsListed(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "coder" {
  command = ["sh", "-c", <<-EOT
    while read -r line; do
      case "$line" in *notify:task-assigned*)
        task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        echo '{"type":"request:complete-task","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"long","content":"'"$(head -c 70000 /dev/zero | tr '\0' x)"'"}]}}'
      esac
    done
    EOT
  ]
  capabilities { names = ["go"] }
}
`)
	s.Ask("up", "-d", "--state-dir", s.State())
	s.Ask("--state-dir", s.State(), "task", "add", "Pages", "--capability", "go", "--wait")
	requireListed(t, s.State(), "artifacts")
	s.Ask("--state-dir", s.State(), "down")
	requireListed(t, s.State(), "events.db")

	kept, err := filepath.Glob(filepath.Join(s.State(), "artifacts", "*", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	orphan := filepath.Join(s.State(), "artifacts", "00", strings.Repeat("0", 64)) // as a killed orchestrator leaves it
	require.NoError(t, os.MkdirAll(filepath.Dir(orphan), 0o700))
	require.NoError(t, os.WriteFile(orphan, []byte("orphan"), 0o600))
	s.Ask("up", "-d", "--state-dir", s.State())
	stage.WaitFor(t, "the orphan removed", func() bool {
		_, err := os.Stat(orphan)
		return errors.Is(err, fs.ErrNotExist)
	})
	require.FileExists(t, kept[0])
	s.Ask("--state-dir", s.State(), "down")
}

// requireListed fails for an entry of a state directory without a row, or with a wrong one.
func requireListed(t *testing.T, dir, must string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		if entry.Type()&fs.ModeSymlink == 0 {
			source.RequireFileRow(t, entry.Name())
		}
	}
	require.Contains(t, names, must)
}

// Only the latest reports are kept.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	for n := range 12 {
		s.Write(fmt.Sprintf("state/report-20200101T0000%02d.txt", n), "old")
	}
	s.Signal(syscall.SIGUSR1)
	stage.WaitFor(t, "the report", func() bool {
		reports, err := filepath.Glob(filepath.Join(s.State(), "report-*.txt"))
		require.NoError(t, err)
		return len(reports) == 8 && filepath.Base(reports[0]) == "report-20200101T000005.txt"
	})
	s.Stop()
}
