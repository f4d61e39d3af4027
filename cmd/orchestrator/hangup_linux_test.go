package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// Closing the terminal of a team stops everything in order, also if nothing is being written
// that could fail, and without the rows.
func TestHangUp(t *testing.T) {
	t.Parallel()
	agent := `
agent "tidy" {
  command = ["sh", "-c", "trap 'echo yes >tidied; exit 0' TERM; %s echo >ready; while :; do sleep 0.1; done"]
}
`
	for name, test := range map[string]struct{ talk, streams, terminal string }{
		"silent":  {"", "", "xterm"},
		"talking": {"(while echo blah; do sleep 0.1; done) &", "", "xterm"},
		"no rows": {"", "", "dumb"},
		"no keys": {"", "</dev/null", "xterm"},
		"no text": {"", ">out 2>&1", "xterm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, quick+fmt.Sprintf(agent, test.talk)).ship()
			ctx, enough := context.WithTimeout(t.Context(), time.Minute)
			defer enough()
			up := exec.CommandContext(ctx, "sh", "-c", "exec $UP --state-dir $STATE "+test.streams)
			up.Dir = s.dir
			up.Env = append(s.environ(), "TERM="+test.terminal, "UP="+s.program+" up", "STATE="+s.state())
			terminal, err := pty.Start(up)
			require.NoError(t, err)
			waitForThat(t, "the agent runs", func() bool {
				_, err := os.Stat(s.path("ready"))
				return err == nil
			})
			require.NoError(t, terminal.Close())
			require.NoError(t, up.Wait())
			require.FileExists(t, s.path("tidied"), "the agent was told to end")
		})
	}
}

// A terminal that takes no output, for example after Ctrl-S, does not prevent the end of a team.
func TestTerminalTakesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "chatty" {
  command = ["sh", "-c", "trap 'echo yes >tidied; exit 0' TERM; head -c 200000 /dev/zero | tr '\\0' 'x' | fold -w 60; echo >ready; while :; do sleep 0.1; done"]
  stdin   = "null"
}
`).ship()
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	up := exec.CommandContext(ctx, s.program, "up", "--state-dir", s.state())
	up.Dir, up.Env = s.dir, append(s.environ(), "TERM=xterm")
	terminal, err := pty.StartWithSize(up, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	defer terminal.Close()
	waitForThat(t, "there is more than it takes", func() bool {
		_, err := os.Stat(s.path("ready"))
		return err == nil
	})
	require.NoError(t, up.Process.Signal(syscall.SIGTERM))
	require.NoError(t, up.Wait())
	require.FileExists(t, s.path("tidied"), "the agent was told to end")
}
