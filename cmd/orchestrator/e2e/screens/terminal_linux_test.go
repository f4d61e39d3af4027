package screens

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
)

// crowd is a team that causes every line of the console: a start, a line of each stream, an exit
// with its cause, a restart with its delay, and a give-up.
const crowd = `
agent "a" {
  command = ["sh", "-c", "printf 'plain \\033[2J escape\\n'; sleep 0.1; echo trouble >&2; exit 3"]
  restart {
    burst  = 1
    delay  = "50ms"
    jitter = 0
  }
}
agent "longer-name" {
  command = ["true"]
}
`

// onTerminal runs up on a terminal. It returns the final screen and all output.
func onTerminal(t *testing.T, environ ...string) (text, written string) {
	w := inTerminal(t, crowd, "$UP --exit-when-idle", 120, 60, environ...)
	return w.ends(cli.ExitNo), w.Written()
}

var (
	colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	clocks = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `)
)

// requireCrowd checks the lines: they are aligned, and each appears once.
func requireCrowd(t *testing.T, screen string) {
	t.Helper()
	for _, line := range []string{
		`^a           > started, pid \d+$`,
		`^a           \| plain \\x1b\[2J escape$`,
		`^a           : trouble$`,
		`^a           ! exit 3 after \d\.\ds$`,
		`^a           ! restart 1 of 1 in 0\.1s$`,
		`^a           > started, pid \d+, start 2$`,
		`^a           x gave up: it ended 2 times within 2m0s \(exit 3, exit 3\), the limit is 1 restart$`,
		`^longer-name > started, pid \d+$`,
		`^longer-name \. exit 0 after \d\.\ds$`,
		`^orchestrator stopped .*nothing left running$`,
	} {
		require.Regexp(t, "(?m)"+line, clocks.ReplaceAllString(screen, ""))
	}
}

func TestConsoleOnATerminal(t *testing.T) {
	t.Parallel()
	text, written := onTerminal(t)
	require.Regexp(t, colour, written)
	requireCrowd(t, text)
}

// Without color the rows below the lines remain. A dumb terminal gets only lines.
func TestConsoleWithoutColour(t *testing.T) {
	t.Parallel()
	for _, environ := range []string{"NO_COLOR=1", "TERM=dumb"} {
		text, written := onTerminal(t, environ)
		require.NotRegexp(t, colour, written, environ)
		require.Equal(t, environ != "TERM=dumb", strings.Contains(written, "\x1b"), environ)
		requireCrowd(t, text)
	}
}

func TestConsoleInAPipe(t *testing.T) {
	s := stage.New(t, crowd)
	cmd := exec.Command(s.Program, "up", "--exit-when-idle", "--state-dir", s.State())
	cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm", "NO_COLOR=")
	screen, err := cmd.Output()
	require.Error(t, err, "an agent failed for good")
	require.NotContains(t, string(screen), "\x1b")
	requireCrowd(t, string(screen))
}

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
	s := stage.New(t, "")
	cmd := exec.Command(s.Program, "pipe", "--as", "me", "--echo")
	cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm")
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	defer terminal.Close()
	screen := bufio.NewReader(terminal)
	await := awaitIn(t, screen)
	await("No orchestrator is running here: me has joined a temporary one")
	await("Ctrl-D ends the input.")
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

// On a terminal, run explains the use of typed lines.
func TestRunOnTerminal(t *testing.T) {
	s := stage.New(t, "")
	cmd := exec.Command(s.Program, "run", "--", "sh", "-c", "read line; echo heard $line")
	cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm")
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	defer terminal.Close()
	screen := bufio.NewReader(terminal)
	await := awaitIn(t, screen)
	await("Your input goes to its stdin. It gets no tasks. For tasks, write a file: orchestrator init")
	_, err = io.WriteString(terminal, "hello\n")
	require.NoError(t, err)
	await("heard hello")
	_, _ = io.Copy(io.Discard, screen) // reading a closed terminal gives an error
	require.NoError(t, cmd.Wait())
}

// A second signal ends the pipe at once and leaves no process behind.
func TestPipeLeavesAtOnce(t *testing.T) {
	s := stage.New(t, "")
	cmd := exec.Command(s.Program, "pipe", "--as", "me", "-v")
	cmd.Dir, cmd.Env = s.Dir, s.Environ()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	answers, err := cmd.StdoutPipe()
	require.NoError(t, err)
	talk, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	await := awaitIn(t, bufio.NewReader(talk))
	await("See its status: orchestrator status --host ")
	for _, line := range []string{
		`{"type":"request:ask-user","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"question":"?","timeout":3600000}}`,
		`{"type":"request:query-agents","id":"2","timestamp":"2026-11-21T14:00:00Z"}`,
	} {
		_, err = io.WriteString(in, line+"\n")
		require.NoError(t, err)
	}
	awaitIn(t, bufio.NewReader(answers))(`"correlationId":"2"`) // so both have arrived
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	await("Waiting for open answers")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, cli.ExitTerminated, cmd.ProcessState.ExitCode())
	left, err := filepath.Glob(s.Path("orchestrator-pipe-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// tidying is for agents that end on request, however long that takes.
const tidying = `
defaults {
  stop {
    close_stdin = "100ms"
    grace       = "1m"
  }
}
`

// Closing the terminal of a team stops everything in order, also without a write that could fail,
// and without the rows.
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
			s := stage.New(t, tidying+fmt.Sprintf(agent, test.talk)).Ship()
			ctx, enough := context.WithTimeout(t.Context(), time.Minute)
			defer enough()
			up := exec.CommandContext(ctx, "sh", "-c", "exec $UP --state-dir $STATE "+test.streams)
			up.Dir = s.Dir
			up.Env = append(s.Environ(), "TERM="+test.terminal, "UP="+s.Program+" up --yes", "STATE="+s.State())
			terminal, err := pty.Start(up)
			require.NoError(t, err)
			stage.WaitFor(t, "the agent runs", func() bool {
				_, err := os.Stat(s.Path("ready"))
				return err == nil
			})
			require.NoError(t, terminal.Close())
			require.NoError(t, up.Wait())
			require.FileExists(t, s.Path("tidied"), "the agent was told to end")
		})
	}
}

// A terminal that takes no output, for example after Ctrl-S, does not prevent the end of a team.
func TestTerminalTakesNothing(t *testing.T) {
	t.Parallel()
	s := stage.New(t, tidying+`
agent "chatty" {
  command = ["sh", "-c", "trap 'echo yes >tidied; exit 0' TERM; head -c 200000 /dev/zero | tr '\\0' 'x' | fold -w 60; echo >ready; while :; do sleep 0.1; done"]
  stdin   = "null"
}
`).Ship()
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	up := exec.CommandContext(ctx, s.Program, "up", "--yes", "--state-dir", s.State())
	up.Dir, up.Env = s.Dir, append(s.Environ(), "TERM=xterm")
	terminal, err := pty.StartWithSize(up, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	defer terminal.Close()
	stage.WaitFor(t, "there is more than it takes", func() bool {
		_, err := os.Stat(s.Path("ready"))
		return err == nil
	})
	require.NoError(t, up.Process.Signal(syscall.SIGTERM))
	require.NoError(t, up.Wait())
	require.FileExists(t, s.Path("tidied"), "the agent was told to end")
}

// On a terminal, up asks before it runs commands of a file for the first time, and reload before it
// runs changed ones. The next up runs the commands that were accepted for reload.
func TestAsksBeforeNewCommands(t *testing.T) {
	t.Parallel()
	agent := func(command string) string {
		return fmt.Sprintf("agent \"a\" {\n  command = [%s]\n}\n", command)
	}
	sleeps := `"sh", "-c", "touch started; read x"`
	ask := `up="${UP% --yes *} ${UP#* --yes }"; ` // $UP without --yes
	w := inTerminal(t, agent(sleeps), ask+`$up; echo "exit $?"; $up -d; echo "exit $?"; read next; ${UP%% *} reload --state-dir state; echo "exit $?"; read next; ${UP%% *} reload --state-dir state; echo "exit $?"; read next; ${UP%% *} down --state-dir state; ORC_TRUST=strict $up -d; echo "trusted $?"; ${UP%% *} down --state-dir state; echo "exit $?"`, 100, 50)
	w.until("/orchestrator.hcl runs commands that you have not approved yet:", `agent a  sh -c 'touch started; read x'  orchestrator.hcl:`, "Run them? [y/N]")
	require.NoFileExists(t, w.Path("started"))
	w.types("\r")
	w.until("exit 1")
	require.NoFileExists(t, w.Path("started"))
	require.NoFileExists(t, w.Path(".orchestrator/lock"))
	w.types("y\r")
	w.until("exit 0")
	w.Write("orchestrator.hcl", agent(`"sh", "-c", "touch again; read x"`))
	w.types("\r")
	w.until(`- agent a  sh -c 'touch started; read x'`, `+ agent a  sh -c 'touch again; read x'`, "Run the changed commands? [y/N]")
	require.NoFileExists(t, w.Path("again"))
	w.Write("orchestrator.hcl", agent(`"sh", "-c", "touch swapped; read x"`))
	w.types("y\r")
	w.until("the commands of the file have changed again since they were shown")
	require.NoFileExists(t, w.Path("swapped"))
	w.types("\r")
	w.until(`+ agent a  sh -c 'touch swapped; read x'`)
	w.types("yes\r")
	w.until("reload: 1 restarted.")
	stage.WaitFor(t, "the new command runs", func() bool {
		_, err := os.Stat(w.Path("swapped"))
		return err == nil
	})
	w.types("\r")
	w.until("trusted 0")
	w.ends(0)
}
