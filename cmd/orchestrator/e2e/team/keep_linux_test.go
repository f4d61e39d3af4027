package team

import (
	"encoding/json"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire/events"
)

// Old records leave the record of a real orchestrator, also across kills. Commands that read
// removed records report that.
func TestOldRecordsLeave(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
store {
  keep = "1MiB"
}
protocol {
  rate  = 1000000
  burst = 1000000
}
agent "busy" {
  command = ["sh", "-c", <<-EOT
    exec 3<&0
    cat <&3 >/dev/null &
    n=0
    while [ $n -lt 8000 ]; do
      n=$((n+1))
      echo '{"type":"request:send-message","id":"'$n'","timestamp":"2026-11-21T14:00:00Z","payload":{"to_actor":"GO","topic":"message.direct","payload":{"text":"'$n' of many, so that the record needs some space for each of them, and grows"}}}'
    done
    wait
    EOT
  ]
}
`)
	for life := range 2 {
		s.Up("--json")
		s.WaitForEvents(1, events.AgentStarted, "busy")
		stage.WaitFor(t, "all messages", func() bool {
			return last(s) > int64(life+1)*8000
		})
		s.Signal(syscall.SIGKILL)
		s.Await()
	}
	s.Up("--json") // it has both snapshots by its messages, and removes at its start
	stage.WaitFor(t, "facts removed", func() bool { return removed(s) > 1000 })
	base := removed(s)
	require.Contains(t, s.Ask("events", "--since", "5"), "were removed on")
	_, stderr, code := s.Call("bus", "poll", "--actor", "GO", "--cursor", "5")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	require.Contains(t, stderr, "were removed on")
	s.Signal(syscall.SIGKILL)
	s.Await()
	require.Regexp(t, `^Facts \d+ to \d+ in .*events\.db, all in order\. Facts 1 to \d+, of \S+ and before, were removed on \S+\n$`, s.Ask("store", "check"))
	require.GreaterOrEqual(t, removed(s), base)
	require.Contains(t, s.Ask("events", "--since", "5"), "were removed on", "while no orchestrator runs")
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "busy")
	s.Stop()
}

// removed returns the number of facts that were removed from the record.
func removed(s *stage.Orchestrator) int64 {
	var report struct {
		Removed struct {
			Seq int64 `json:"seq"`
		} `json:"removed"`
	}
	require.NoError(s.T, json.Unmarshal([]byte(s.Ask("store", "check", "--json")), &report))
	return report.Removed.Seq
}

// last returns the number of the last fact of the record.
func last(s *stage.Orchestrator) int64 {
	log, err := eventlog.Open(s.T.Context(), eventlog.Options{Path: filepath.Join(s.State(), "events.db"), ReadOnly: true})
	require.NoError(s.T, err)
	defer log.Close()
	return log.Last()
}
