package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// awaitIn returns a function that reads lines until one contains a text.
func awaitIn(t *testing.T, lines *bufio.Reader) func(part string) {
	return func(part string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err, "waiting for %s", part)
			if strings.Contains(line, part) {
				return
			}
		}
	}
}

// On a terminal, requests may be typed in short form, output is escaped, and Ctrl-D ends the
// pipe.
func TestPipeOnTerminal(t *testing.T) {
	s := newStage(t, "")
	cmd := exec.Command(s.program, "pipe", "--as", "me", "--echo")
	cmd.Dir, cmd.Env = s.dir, append(s.environ(), "TERM=xterm")
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	defer terminal.Close()
	screen := bufio.NewReader(terminal)
	await := awaitIn(t, screen)
	await("No orchestrator runs here: me has joined one of its own")
	await("Ctrl-D ends.")
	_, err = io.WriteString(terminal, `{"type":"request:query-agents"}`+"\n")
	require.NoError(t, err)
	await(`> {"id":"1","timestamp":"`)
	await(`"correlationId":"1"`)
	_, err = io.WriteString(terminal, `{"type":"request:submit-task","payload":{"type":"t","name":"\u009b2J"}}`+"\n\x04")
	require.NoError(t, err)
	await(`"name":"\u009b2J"`)
	_, _ = io.Copy(io.Discard, screen) // reading a closed terminal gives an error
	require.NoError(t, cmd.Wait())
}

// A second signal ends the pipe at once and leaves nothing behind.
func TestPipeLeavesAtOnce(t *testing.T) {
	s := newStage(t, "")
	cmd := exec.Command(s.program, "pipe", "--as", "me", "-v")
	cmd.Dir, cmd.Env = s.dir, s.environ()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	answers, err := cmd.StdoutPipe()
	require.NoError(t, err)
	talk, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	await := awaitIn(t, bufio.NewReader(talk))
	await("Look at it: orchestrator status --host ")
	for _, line := range []string{
		`{"type":"request:ask-user","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"question":"?","timeout":3600000}}`,
		`{"type":"request:query-agents","id":"2","timestamp":"2026-11-21T14:00:00Z"}`,
	} {
		_, err = io.WriteString(in, line+"\n")
		require.NoError(t, err)
	}
	awaitIn(t, bufio.NewReader(answers))(`"correlationId":"2"`) // so both have arrived
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	await("Waiting for what is still to be answered")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, cli.ExitTerminated, cmd.ProcessState.ExitCode())
	left, err := filepath.Glob(s.path("orchestrator-pipe-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
