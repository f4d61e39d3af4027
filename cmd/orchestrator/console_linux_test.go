package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
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
	s := newStage(t, crowd)
	cmd := exec.Command(s.program, "up", "--exit-when-idle", "--state-dir", s.state())
	cmd.Dir, cmd.Env = s.dir, append(s.environ(), "TERM=xterm", "NO_COLOR=")
	screen, err := cmd.Output()
	require.Error(t, err, "an agent failed for good")
	require.NotContains(t, string(screen), "\x1b")
	requireCrowd(t, string(screen))
}
