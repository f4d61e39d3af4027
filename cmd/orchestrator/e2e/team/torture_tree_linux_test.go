package team

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Torture 0, row 4: the leader crashes while a grandchild holds stdout open. Each crash is
// detected, and no grandchild outlives its leader.
func TestTorture0GrandchildKeepsStdout(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leaver" {
  command = ["sh", "-c", "sleep 1000 & echo $!; exit 1"]
  restart {
    policy = "always"
    delay  = "20ms"
    factor = 1
    burst  = 1000
  }
}
`).Up("--json")
	s.WaitForEvents(4, events.AgentStarted, "leaver")
	pids := stage.Numbers(t, s.WaitForLines(4, "leaver"))
	stage.RequireGone(t, pids[:3]...)
	s.Stop()
}

// Torture 0, row 7: an agent that ignores TERM, INT and HUP does not delay the exit of the
// orchestrator and does not outlive it.
func TestTorture0IgnoresSignals(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "deaf" {
  command = ["sh", "-c", "trap '' TERM INT HUP; echo $$; while :; do sleep 1; done"]
}
`).Up("--json")
	pid := stage.Numbers(t, s.WaitForLines(1, "deaf"))[0]
	s.Stop()
	stage.RequireGone(t, pid)
	require.Contains(t, s.Events(events.AgentStopped, "deaf")[0].Text, "had to be killed")
	require.Contains(t, s.Events(events.OrchestratorStopped, "")[0].Text, "1 had to be killed, nothing left running")
}

// memberIgnoresTERM is a leader that exits on TERM and a process in its group that does not.
const memberIgnoresTERM = `trap '' TERM
sleep 1000 &
echo $!
trap - TERM
while :; do sleep 1; done
`

// Torture 0, row 8: the leader exits on TERM, and a child in the same group ignores it.
func TestTorture0GroupMemberIgnoresTERM(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leader" {
  command = ["sh", "leader.sh"]
}
`, "leader.sh", memberIgnoresTERM).Up("--json")
	pid := stage.Numbers(t, s.WaitForLines(1, "leader"))[0]
	s.Stop()
	stage.RequireGone(t, pid)
}

// Torture 0, row 9: a grandchild has its own session.
func TestTorture0GrandchildDidSetsid(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leader" {
  command = ["sh", "-c", "setsid sh -c 'trap \"\" TERM; echo $$ >>pids; exec sleep 1000' & exec sleep 1000"]
}
`).Up("--json")
	pid := s.WaitForPIDs(1, "pids")[0]
	s.Stop()
	stage.RequireGone(t, pid)
}

// Torture 0, row 10: the orchestrator is killed. Its agents die with it.
func TestTorture0OrchestratorKilled(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "sleeper" {
  command  = ["sleep", "1000"]
  replicas = 5
}
`).Up("--json")
	s.WaitForEvents(5, events.AgentStarted, "")
	require.Len(t, s.Processes(), 5)
	s.Signal(syscall.SIGKILL)
	s.Await()
	stage.WaitFor(t, "end of the agents", func() bool { return len(s.Processes()) == 0 })
}

// Row 4: the exit is reported before the remaining process is ended. This process is named as
// the one that held the output open, and the restart follows.
func TestTorture4HeldOpenIsNamed(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leaver" {
  command = ["sh", "-c", "trap '' TERM; sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; echo $!; exit 1"]
  restart {
    delay = "20ms"
  }
}
`).Up("--json")
	started := s.WaitForEvents(2, events.AgentStarted, "leaver")
	pid := stage.Numbers(t, s.WaitForLines(1, "leaver"))[0]
	exited := s.Events(events.AgentExited, "leaver")[0]
	left := s.Events(events.AgentLeftOver, "leaver")[0]
	require.Equal(t, 1, *exited.Figures.ExitCode)
	require.Equal(t, []wire.LeftOver{{PID: pid, Program: "sleep", HeldOpen: true}}, left.Figures.LeftOver)
	restarting := s.Events(events.AgentRestarting, "leaver")[0]
	require.IsIncreasing(t, []int64{started[0].Seq, exited.Seq, left.Seq, restarting.Seq, started[1].Seq})
	stage.RequireGone(t, pid)
	s.Stop()
}

// Row 5: after an agent with a leader that exits on TERM is stopped, no process of its group is
// left. The processes that had to be killed are reported by id.
func TestTorture5NoSurvivorOfTheGroup(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leader" {
  command = ["sh", "leader.sh"]
}

agent "other" {
  command = ["cat"]
}
`, "leader.sh", memberIgnoresTERM).Up("--json")
	pid := stage.Numbers(t, s.WaitForLines(1, "leader"))[0]
	s.WaitForEvents(1, events.AgentStarted, "other")
	s.Ask("agent", "stop", "leader")
	stage.RequireGone(t, pid)
	require.Contains(t, s.WaitForEvents(1, events.AgentStopped, "leader")[0].Figures.LeftOver, wire.LeftOver{PID: pid, Program: "sleep", HeldOpen: true})
	require.Len(t, s.Processes(), 1, "the other agent is not touched")
	s.Stop()
}

// Row 6: a double-forked process with its own session and closed stdio is ended after a crash, a
// restart, a stop, and the exit of the orchestrator.
func TestTorture6NoSurvivorOfTheTree(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leader" {
  command = ["sh", "leader.sh"]
  restart {
    delay = "20ms"
  }
}
`, "leader.sh", `
(setsid sh -c 'trap "" TERM INT HUP; echo $$ >>pids; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
until [ -e crash ]; do sleep 0.02; done
rm crash
exit 1
`).Up("--json")
	s.WaitForPIDs(1, "pids")
	s.Write("crash", "")
	stage.RequireGone(t, s.WaitForPIDs(2, "pids")[0])
	s.Ask("agent", "restart", "leader")
	stage.RequireGone(t, s.WaitForPIDs(3, "pids")[1])
	s.Ask("agent", "stop", "leader")
	require.Empty(t, s.Processes())
	s.Ask("agent", "start", "leader")
	pids := s.WaitForPIDs(4, "pids")
	s.Ask("down")
	require.Equal(t, cli.ExitOK, s.Await())
	stage.RequireGone(t, pids...)
	require.Empty(t, s.Processes())
}

// Row 7: the orchestrator is killed. Its agents die with it, and processes that left their trees
// are ended within seconds, without another start. The next start reports them.
func TestTorture7LeftOversOfAKilledOrchestrator(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "leader" {
  command = ["sh", "leader.sh"]
}

agent "reader" {
  command = ["cat"]
}
`, "leader.sh", `setsid sh -c 'trap "" TERM INT HUP; echo $$ >>pids; exec sleep 1000' &
exec sleep 1000
`).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "reader")
	first := s.WaitForPIDs(1, "pids")[0]
	s.Signal(syscall.SIGKILL)
	s.Await()
	stage.WaitFor(t, "end of all that is left", func() bool { return len(s.Processes()) == 0 })
	stage.WaitFor(t, "word of it", func() bool {
		word, _ := os.ReadFile(s.Path("state/swept"))
		return bytes.HasSuffix(word, []byte("\n"))
	})
	s.Up("--json")
	second := s.WaitForPIDs(2, "pids")[1]
	stage.RequireGone(t, first)
	require.Contains(t, s.Stderr.All(), fmt.Sprintf("%d sleep", first))
	s.Stop()
	stage.RequireGone(t, second)
}

// Row 16: thousands of agents exit at once. Every exit status is exact, and no zombie or
// descriptor remains.
func TestTorture16ManyShortAgents(t *testing.T) {
	t.Parallel()
	const many = 2000
	s := stage.New(t, fmt.Sprintf(`
agent "short" {
  command   = ["sh", "-c", "exit ${self.index %% 256}"]
  replicas  = %d
  autostart = false
  restart {
    policy = "never"
  }
}
`, many)).Ship().Up("--json")
	s.WaitForEvents(1, events.OrchestratorStarted, "")
	before := descriptors(s)
	_, stderr, code := s.Call("agent", "start", "--all", "--timeout", "4m")
	require.Zero(t, len(s.Events(events.AgentRestarting, "")), "starts that failed, such as that of %v", first(s, events.AgentRestarting))
	require.Equal(t, cli.ExitNo, code, "most of them fail: %s", stderr)
	for i, view := range s.Status().Agents {
		require.Equal(t, fmt.Sprintf("exit %d", i%256), view.LastExit, view.Name)
		require.Equal(t, 1, view.Starts, view.Name)
	}
	require.Empty(t, children(s), "zombies")
	stage.WaitFor(t, "return of the descriptors", func() bool { return descriptors(s) <= before+2 })
	s.Stop()
}

// first returns the agent and text of the first event of a kind.
func first(s *stage.Orchestrator, kind string) string {
	for _, e := range s.Events(kind, "") {
		return e.Agent + ": " + e.Text
	}
	return ""
}

// descriptors counts the open files of the orchestrator: of its main thread, and of all other threads, which have
// another table. Only root can list them; Linux 6.2 shows everybody their number.
func descriptors(s *stage.Orchestrator) int {
	pid := s.Process.Process.Pid
	tables, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/fd", pid))
	require.NoError(s.T, err)
	own, most := 0, 0
	for _, table := range tables {
		count := 0
		if info, err := os.Stat(table); err != nil {
			continue // the thread has ended
		} else if count = int(info.Size()); count == 0 {
			entries, _ := os.ReadDir(table)
			count = len(entries)
		}
		if most = max(most, count); strings.HasSuffix(table, fmt.Sprintf("/task/%d/fd", pid)) {
			own = count
		}
	}
	require.NotZero(s.T, most)
	return own + most
}

// children returns the child processes of the orchestrator, including zombies.
func children(s *stage.Orchestrator) []string {
	folder := fmt.Sprintf("/proc/%d/task", s.Process.Process.Pid)
	threads, err := os.ReadDir(folder)
	require.NoError(s.T, err)
	var found []string
	for _, thread := range threads {
		text, err := os.ReadFile(folder + "/" + thread.Name() + "/children")
		require.NoError(s.T, err)
		found = append(found, strings.Fields(string(text))...)
	}
	return slices.DeleteFunc(found, func(pid string) bool {
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		return err == nil && string(name) == "orc-watchdog\n"
	})
}
