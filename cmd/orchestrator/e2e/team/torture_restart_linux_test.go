package team

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// delays returns the planned delays before restarts, not the measured ones: the machine may be
// busy, but the plan is exact.
func delays(s *stage.Orchestrator, agent string) []int64 {
	var delays []int64
	for _, e := range s.Events(events.AgentRestarting, agent) {
		delays = append(delays, e.Figures.DelayMS)
	}
	return delays
}

// Torture 0, row 5: an agent that crashes at once is restarted with growing delays and then
// given up. The orchestrator continues.
func TestTorture0CrashesAtOnce(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "crasher" {
  command = ["sh", "-c", "exit 1"]
  restart {
    policy = "always"
    delay  = "20ms"
    jitter = 0
  }
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentGaveUp, "crasher")
	require.Equal(t, []int64{20, 40, 80, 160, 320}, delays(s, "crasher"))
	view := s.Agent("crasher")
	require.Equal(t, control.StateFailed, view.State)
	require.Equal(t, 6, view.Starts)
	s.Stop()
}

// Torture 0, row 6: an agent that crashes 1.2 s after its start, when other supervisors count it
// as started, also gets growing delays.
func TestTorture0CrashesAfterAMoment(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "crasher" {
  command = ["sh", "-c", "sleep 1.2; exit 1"]
  restart {
    policy = "always"
    delay  = "20ms"
    jitter = 0
    burst  = 2
  }
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentGaveUp, "crasher")
	require.Equal(t, []int64{20, 40}, delays(s, "crasher"))
	for _, e := range s.Events(events.AgentExited, "crasher") {
		require.GreaterOrEqual(t, e.Figures.UpMS, int64(1200), "uptime is that of the process")
	}
	s.Stop()
}

// Row 10: crashes before reset_after let the delay grow until the agent is given up. After
// longer runs the delay stays at its base. (This test uses 0.3 s and 0.2 s instead of 61 s and
// 60 s; TestRestartDelays of package supervisor uses the real values.)
func TestTorture10RestartDelays(t *testing.T) {
	t.Parallel()
	const growing = `
agent "crasher" {
  command = ["sh", "-c", "%s; exit 1"]
  restart {
    delay  = "20ms"
    jitter = 0
  }
}
`
	for name, script := range map[string]string{"at once": ":", "later": "sleep 0.1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, fmt.Sprintf(growing, script)).Up("--json")
			s.WaitForEvents(1, events.AgentGaveUp, "crasher")
			require.Equal(t, []int64{20, 40, 80, 160, 320}, delays(s, "crasher"))
			s.Stop()
		})
	}
	t.Run("long after", func(t *testing.T) {
		t.Parallel()
		s := stage.New(t, `
agent "crasher" {
  command = ["sh", "-c", "sleep 0.3; exit 1"]
  restart {
    delay       = "20ms"
    jitter      = 0
    reset_after = "200ms"
    window      = "1s"
  }
}
`).Up("--json")
		s.WaitForEvents(8, events.AgentRestarting, "crasher")
		require.Equal(t, slices.Repeat([]int64{20}, 8), delays(s, "crasher")[:8])
		require.Empty(t, s.Events(events.AgentGaveUp, "crasher"))
		s.Stop()
	})
}

// Row 11: fifty agents crash together. One message reports it, their restarts are spread, and
// all of them run again.
func TestTorture11Storm(t *testing.T) {
	t.Parallel()
	const many = 50
	s := stage.New(t, `
agent "victim" {
  command  = ["cat"]
  replicas = 50
  restart {
    delay  = "50ms"
    jitter = 0
  }
}
`).Up("--json")
	for _, e := range s.WaitForEvents(many, events.AgentStarted, "") {
		require.NoError(t, syscall.Kill(e.Figures.PID, syscall.SIGKILL))
	}
	s.WaitForEvents(2*many, events.AgentStarted, "")
	require.Len(t, s.Events(events.OrchestratorStorm, ""), 1)
	delays := delays(s, "")
	require.Len(t, delays, many)
	require.Greater(t, slices.Max(delays)-slices.Min(delays), int64(500), "the restarts are not spread")
	for _, view := range s.Status().Agents {
		require.Equal(t, control.StateRunning, view.State)
		require.Equal(t, 1, view.Restarts)
		require.Equal(t, "killed by SIGKILL", view.LastExit)
	}
	s.Stop()
}

// Row 11, the opposite: one agent that crashes many times in a second is not a storm, and waits
// only for its own delay.
func TestTorture11OneCrasherIsNoStorm(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "crasher" {
  command = ["sh", "-c", "exit 1"]
  restart {
    delay  = "5ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
}
`).Up("--json")
	s.WaitForEvents(40, events.AgentRestarting, "crasher")
	require.Empty(t, s.Events(events.OrchestratorStorm, ""))
	require.Equal(t, slices.Repeat([]int64{5}, 40), delays(s, "crasher")[:40])
	s.Stop()
}

// Every spelling of -d starts one orchestrator in the background. It keeps no second copy of
// agent output.
func TestTortureDetach(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-d", "-qd", "-vd", "-d=true", "--detach=1"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, stage.QuickStop+`
agent "talker" {
  command = ["sh", "-c", "echo many words; env | grep DETACHED; exec sleep 1000"]
}
`).Up(flag)
			require.Equal(t, cli.ExitOK, s.Await())
			stage.WaitFor(t, "orchestrator and its agent, and nothing else", func() bool { return len(s.Processes()) == 2 })
			stage.WaitFor(t, "line of the agent", func() bool { return len(s.Logged("talker", ".out")) > 0 })
			require.Equal(t, []string{"many words"}, s.Logged("talker", ".out"))
			s.Ask("down")
			stage.WaitFor(t, "end of all", func() bool { return len(s.Processes()) == 0 })
			text, err := os.ReadFile(s.Path("state/orchestrator.log"))
			require.NoError(t, err)
			require.NotContains(t, string(text), "many words")
			if flag != "-qd" {
				require.Contains(t, string(text), "started, ")
			}
		})
	}
}

// up -d succeeds if the team ends at once with success.
func TestTortureDetachedAndDone(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "quick" {
  command = ["true"]
}
`).Up("-d", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await(), s.Stderr.All())
	require.Regexp(t, "^The orchestrator has already ended without an error|is up, pid", s.Stdout.All())
}

// up -d does not wait for agents that wait for one that cannot start.
func TestTortureDetachWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["./no-such-program"]
}

agent "b" {
  command    = ["cat"]
  depends_on = ["a"]
}

agent "c" {
  command    = ["cat"]
  depends_on = ["b"]
}
`).Up("-d")
	require.Equal(t, cli.ExitNo, s.Await())
	require.Contains(t, s.Stderr.All(), "a failed: program not found")
	s.Ask("down")
}

// A service manager that does not read its socket delays no decision.
func TestTortureDeafServiceManager(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "only" {
  command = ["cat"]
}
`)
	address := &net.UnixAddr{Name: s.Path("notify"), Net: "unixgram"}
	manager, err := net.ListenUnixgram("unixgram", address)
	require.NoError(t, err)
	defer manager.Close()
	filler, err := net.DialUnix("unixgram", nil, address)
	require.NoError(t, err)
	defer filler.Close()
	require.NoError(t, filler.SetWriteDeadline(time.Now().Add(time.Second)))
	for err == nil { // fill the queue of the socket
		_, err = filler.Write([]byte("STATUS=full"))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	s.Start(exec.Command("env", "NOTIFY_SOCKET="+s.Path("notify"), s.Program, "up", "--state-dir", s.State(), "--timeout", "3m", "--json"))
	s.WaitForEvents(1, events.AgentStarted, "only")
	s.Signal(syscall.SIGHUP)
	s.Stop()
}

// A service manager with a watchdog gets regular reports that decisions are made.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "only" {
  command = ["cat"]
}
`)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.Path("notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	s.Start(exec.Command("env", "NOTIFY_SOCKET="+s.Path("notify"), "WATCHDOG_USEC=100000", s.Program, "up", "--state-dir", s.State(), "--timeout", "3m", "--json"))
	alive, text := 0, make([]byte, 1<<10)
	for alive < 3 {
		n, err := manager.Read(text)
		require.NoError(t, err)
		if string(text[:n]) == "WATCHDOG=1" {
			alive++
		}
	}
	s.Stop()
}

// A folder made for a socket is removed with it. A folder that another user could have made is
// not used.
func TestTortureSocketElsewhere(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "only" {
  command = ["cat"]
}
`)
	state := s.Path(strings.Repeat("long/", 30))
	start := func() {
		s.Start(exec.Command(s.Program, "up", "--state-dir", state, "--timeout", "3m", "--json"))
	}
	sockets := func() []string {
		found, err := filepath.Glob(s.Path("orchestrator/*"))
		require.NoError(t, err)
		return found
	}
	start()
	s.WaitForEvents(1, events.AgentStarted, "only")
	require.Len(t, sockets(), 1)
	s.Stop()
	require.Empty(t, sockets())

	require.NoError(t, os.Chmod(s.Path("orchestrator"), 0o777))
	start()
	require.Equal(t, cli.ExitNo, s.Await())
	require.Contains(t, s.Stdout.All(), s.Path("orchestrator")+" may be written by others")
	require.NoError(t, os.Chmod(s.Path("orchestrator"), 0o700))
}
