package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Row 8, for the whole program: an agent that never reads its stdin does not delay the ordered
// stop. The other agents are notified and end as usual.
//
// Rows: B-72, T-04.
func TestTorture8DeafAgentAmongOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
defaults {
  stop {
    close_stdin = "500ms"
  }
}

agent "deaf" {
  command = ["sleep", "1000"]
}

agent "reader" {
  command = ["sh", "-c", "echo ready; while IFS= read -r line; do echo \"heard $line\"; done; echo bye"]
}
`).up("--json")
	s.waitForEvents(1, events.AgentStarted, "deaf")
	s.waitForLines(1, "reader")
	s.ask("down")
	require.Equal(t, cli.ExitOK, s.await())
	require.Empty(t, s.processes())
	lines := s.lines("reader", control.StreamOut)
	require.Len(t, lines, 3)
	var notice struct{ Type string }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "heard ")), &notice))
	require.Equal(t, "notify:shutdown", notice.Type)
	require.Equal(t, "bye", lines[2])
	deaf, reader := s.events(events.AgentStopped, "deaf")[0], s.events(events.AgentStopped, "reader")[0]
	require.Contains(t, reader.Text, "exit 0")
	require.Contains(t, deaf.Text, "killed by SIGTERM")
	require.Less(t, reader.Seq, deaf.Seq, "the reader waited for the deaf one")
}

// Row 8: the stdin of an agent is completely full, so the shutdown notice cannot be written. The
// agent is still stopped.
func TestTorture8NoticeCannotBeDelivered(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	run := exec.Command(s.program, "run", "--", "sleep", "1000")
	run.Stdin = strings.NewReader(strings.Repeat(strings.Repeat("x", 1023)+"\n", 4096))
	s.start(run)
	waitForThat(t, "agent with a full stdin", func() bool {
		pids := s.processes()
		return len(pids) == 1 && stdinIsFull(pids[0])
	})
	s.signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, s.await())
	require.Empty(t, s.processes())
}

// stdinIsFull reports whether the stdin pipe of a process accepts no more bytes. Counting bytes
// does not work: a write that does not fit into the last page begins a new one, so a full pipe
// may hold less than 64 KiB.
func stdinIsFull(pid int) bool {
	stdin, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", pid), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // the process has not started, or has ended
	}
	defer stdin.Close()
	polled := []unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n == 0
}

// Every socket is served, also that of run.
func TestTortureRunAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.start(exec.Command(s.program, "run", "--", "sleep", "1000"))
	waitForThat(t, "process of the agent", func() bool { return len(s.processes()) == 1 })
	sockets, err := filepath.Glob(s.path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	if len(sockets) > 0 {
		_, stderr, code := s.call("status", "--host", sockets[0], "--timeout", "5s")
		require.Equal(t, cli.ExitOK, code, stderr)
	}
}

// A thousand idle agents run at the same time, and down leaves none of them.
func TestTortureThousandAgents(t *testing.T) {
	t.Parallel()
	const many = 1000
	s := newStage(t, `
agent "idle" {
  command  = ["cat"]
  replicas = 1000
}
`).ship().up("--json")
	s.waitForEvents(many, events.AgentStarted, "")
	require.Len(t, s.pids(), many)
	require.Len(t, s.processes(), many)
	stdout := s.ask("down")
	require.Contains(t, stdout, "nothing left running")
	require.Equal(t, cli.ExitOK, s.await())
	require.Empty(t, s.processes())
	for _, e := range s.events(events.AgentStopped, "") {
		require.Contains(t, e.Text, "exit 0", e.Agent)
	}
}
