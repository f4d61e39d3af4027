package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/events"
)

// Every spelling of -d starts one orchestrator in the background. It keeps no second copy of
// agent output.
func TestTortureDetach(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-d", "-qd", "-vd", "-d=true", "--detach=1"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, quick+`
agent "talker" {
  command = ["sh", "-c", "echo many words; env | grep DETACHED; exec sleep 1000"]
}
`).up(flag)
			require.Equal(t, cli.ExitOK, s.await())
			waitForThat(t, "orchestrator and its agent, and nothing else", func() bool { return len(s.processes()) == 2 })
			waitForThat(t, "line of the agent", func() bool { return len(s.logged("talker", ".out")) > 0 })
			require.Equal(t, []string{"many words"}, s.logged("talker", ".out"))
			s.ask("down")
			waitForThat(t, "end of all", func() bool { return len(s.processes()) == 0 })
			text, err := os.ReadFile(s.path("state/orchestrator.log"))
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
	s := newStage(t, `
agent "quick" {
  command = ["true"]
}
`).up("-d", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await(), s.cried.all())
	require.Regexp(t, "^The orchestrator has ended already, and well|is up, pid", s.said.all())
}

// up -d does not wait for agents that wait for one that cannot start.
func TestTortureDetachWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
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
`).up("-d")
	require.Equal(t, cli.ExitNo, s.await())
	require.Contains(t, s.cried.all(), "a failed: program not found")
	s.ask("down")
}

// A service manager that does not read its socket delays nothing.
func TestTortureDeafServiceManager(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "only" {
  command = ["cat"]
}
`)
	address := &net.UnixAddr{Name: s.path("notify"), Net: "unixgram"}
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

	s.start(exec.Command("env", "NOTIFY_SOCKET="+s.path("notify"), s.program, "up", "--state-dir", s.state(), "--timeout", "3m", "--json"))
	s.waitForEvents(1, events.AgentStarted, "only")
	s.signal(syscall.SIGHUP)
	s.stop()
}

// A folder made for a socket is removed with it. A folder that another user could have made is
// not used.
func TestTortureSocketElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "only" {
  command = ["cat"]
}
`)
	state := s.path(strings.Repeat("long/", 30))
	start := func() {
		s.start(exec.Command(s.program, "up", "--state-dir", state, "--timeout", "3m", "--json"))
	}
	sockets := func() []string {
		found, err := filepath.Glob(s.path("orchestrator/*"))
		require.NoError(t, err)
		return found
	}
	start()
	s.waitForEvents(1, events.AgentStarted, "only")
	require.Len(t, sockets(), 1)
	s.stop()
	require.Empty(t, sockets())

	require.NoError(t, os.Chmod(s.path("orchestrator"), 0o777))
	start()
	require.Equal(t, cli.ExitNo, s.await())
	require.Contains(t, s.said.all(), s.path("orchestrator")+" may be written by others")
	require.NoError(t, os.Chmod(s.path("orchestrator"), 0o700))
}
