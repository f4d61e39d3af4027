package team

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Tests of output that is not read or cannot be written.

// pausedPipe returns the path of a pipe that can be opened and is never read.
func pausedPipe(s *stage.Orchestrator) string {
	s.T.Helper()
	require.NoError(s.T, unix.Mkfifo(s.Path("pipe"), 0o600))
	pipe, err := os.OpenFile(s.Path("pipe"), os.O_RDWR, 0)
	require.NoError(s.T, err)
	s.T.Cleanup(func() { require.NoError(s.T, pipe.Close()) })
	return s.Path("pipe")
}

// shell starts the program with a shell redirection of its stdout.
func shell(s *stage.Orchestrator, redirection string, args ...string) {
	s.T.Helper()
	s.Start(exec.Command("sh", append([]string{"-c", `exec "$0" "$@" ` + redirection, s.Program}, args...)...))
}

// A full disk for the output does not stop the program. When it has room again, the output
// continues and counts the missing lines.
func TestTortureUpOntoFullDisk(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+stage.InMemory+`
agent "writer" {
  command = ["sh", "writer.sh"]
}
`, "writer.sh", `
i=0
while [ $i -lt 400 ]; do
  i=$((i+1)); echo "line $i of a text that is long enough to fill the little that there is room for"
done
echo full >full
while :; do
  i=$((i+1)); echo "line $i of a text that is long enough to fill the little that there is room for"; sleep 0.1
done
`)
	s.Start(exec.Command("sh", "-c", `ulimit -S -f 16; exec "$0" "$@" >shown`, s.Program, "up", "--state-dir", s.State(), "--timeout", "3m"))
	stage.WaitFor(t, "full disk", func() bool { return strings.Contains(s.Stderr.All(), "cannot write to stdout") })
	require.Equal(t, control.StateRunning, s.Agent("writer").State)
	var room unix.Rlimit
	require.NoError(t, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = room.Max
	require.NoError(t, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
	shown := func() string {
		text, err := os.ReadFile(s.Path("shown"))
		require.NoError(t, err)
		return string(text)
	}
	note := regexp.MustCompile(`(?m)^[0-9:]+ (\d+) lines before this one could not be written$`)
	stage.WaitFor(t, "note in the output", func() bool { return note.MatchString(shown()) })
	s.Stop()
	require.Equal(t, 1, strings.Count(s.Stderr.All(), "cannot write to stdout"))
	notes := note.FindAllStringSubmatch(shown(), -1)
	require.Len(t, notes, 1)
	missing, last, gaps := stage.Numbers(t, notes[0][1:])[0], 0, 0
	for _, found := range regexp.MustCompile(`(?m)\| line (\d+) of .* room for$`).FindAllStringSubmatch(shown(), -1) {
		n := stage.Numbers(t, found[1:])[0]
		gaps += n - last - 1
		last = n
	}
	require.Positive(t, gaps)
	require.GreaterOrEqual(t, missing, gaps)
	require.LessOrEqual(t, missing-gaps, 5, "more than events are counted besides") // events are lines too
}

// Without a reader the team is stopped, like programs that get SIGPIPE.
func TestTortureUpWithoutReader(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "talker" {
  command = ["yes"]
}
`)
	s.Start(exec.Command("sh", "-c", `"$0" "$@" | head -n 1`, s.Program, "up", "--state-dir", s.State(), "--timeout", "3m"))
	require.Equal(t, cli.ExitOK, s.Await())
	stage.WaitFor(t, "end of all", func() bool { return len(s.Processes()) == 0 })
}

// With a disk that is always full, the team works and stops in order.
func TestTortureUpOntoNothing(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "talker" {
  command = ["sh", "-c", "echo words; exec cat"]
}
`)
	shell(s, ">/dev/full", "up", "--state-dir", s.State(), "--timeout", "3m")
	stage.WaitFor(t, "trouble", func() bool { return strings.Contains(s.Stderr.All(), "cannot write to stdout") })
	stage.WaitFor(t, "line of the agent", func() bool { return len(s.Logged("talker", ".out")) == 1 })
	require.Equal(t, control.StateRunning, s.Agent("talker").State)
	s.Stop()
	require.Equal(t, 1, strings.Count(s.Stderr.All(), "cannot write to stdout"))
	require.Contains(t, s.Stderr.All(), "missing_lines")
}

// A paused reader, such as a terminal after Ctrl-S, does not delay the exit of a team that has
// ended.
func TestTortureUpWithPausedReader(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "talker" {
  command = ["sh", "-c", "yes | head -c 2000000; echo >done; exec cat"]
}
`)
	shell(s, ">"+pausedPipe(s), "up", "--state-dir", s.State(), "--timeout", "3m")
	stage.WaitFor(t, "end of the flood", func() bool { _, err := os.Stat(s.Path("done")); return err == nil })
	s.Stop()
	require.Contains(t, s.Stderr.All(), "the last lines are not shown")
}

// A slow reader of run gets all output.
func TestTortureRunWithLateReader(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	pipe := pausedPipe(s)
	shell(s, ">"+pipe, "run", "--", "sh", "-c", "seq 20000; >done")
	stage.WaitFor(t, "end of the command", func() bool {
		_, err := os.Stat(s.Path("done"))
		return err == nil && len(s.Processes()) == 0
	})
	reader, err := os.Open(pipe)
	require.NoError(t, err)
	defer reader.Close()
	want := ""
	for i := range 20_000 {
		want += fmt.Sprintln(i + 1)
	}
	text := make([]byte, len(want))
	_, err = io.ReadFull(reader, text)
	require.NoError(t, err)
	require.True(t, string(text) == want)
	require.Equal(t, cli.ExitOK, s.Await())
}

// run may be signalled while its reader is paused, and still returns the exit code of the
// command.
func TestTortureRunWithPausedReader(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	shell(s, ">"+pausedPipe(s), "run", "--", "sh", "-c", "yes | head -c 2000000; >done; exit 3")
	stage.WaitFor(t, "end of the command", func() bool { _, err := os.Stat(s.Path("done")); return err == nil })
	sockets, err := filepath.Glob(s.Path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	stage.WaitFor(t, "end of the team", func() bool {
		_, _, code := s.Call("status", "--host", sockets[0])
		return code == cli.ExitConflict
	})
	s.Signal(syscall.SIGTERM)
	require.Equal(t, 3, s.Await())
}

// Without a reader, run ends silently.
func TestTortureRunWithoutReader(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"stdout":  `"$0" run -- yes | head -n 1; exit ${PIPESTATUS[0]}`,
		"stderr":  `"$0" run -- sh -c 'yes >&2' 2>&1 >/dev/null | head -n 1; exit ${PIPESTATUS[0]}`,
		"ignored": `trap "" PIPE; "$0" run -- yes | head -n 1; exit ${PIPESTATUS[0]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "")
			s.Start(exec.Command("bash", "-c", script, s.Program))
			require.Equal(t, cli.ExitBrokenPipe, s.Await())
			require.Equal(t, "y\n", s.Stdout.All())
			require.Empty(t, s.Stderr.All())
			require.Empty(t, s.Processes(), "left running")
		})
	}
}

// run reports a write error once. It fails then unless the command itself has failed.
func TestTortureRunOntoFullDisk(t *testing.T) {
	t.Parallel()
	for script, exit := range map[string]int{"seq 100000": cli.ExitNo, "seq 100000; exit 3": 3} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "")
			shell(s, ">/dev/full", "run", "--", "sh", "-c", script+"; # to the end")
			require.Equal(t, exit, s.Await())
			require.Equal(t, 1, strings.Count(s.Stderr.All(), "Error: cannot write the output of sh to stdout: "))
			require.Contains(t, s.Stderr.All(), "no space left on device")
		})
	}
}

// Input without line ends is passed on, and never held in memory as a whole.
func TestTortureRunEndlessInput(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "").Ship()
	const size = 300 << 20
	require.NoError(t, os.WriteFile(s.Path("zeros"), nil, 0o600))
	require.NoError(t, os.Truncate(s.Path("zeros"), size))
	zeros, err := os.Open(s.Path("zeros"))
	require.NoError(t, err)
	defer zeros.Close()
	run := exec.Command(s.Program, "run", "--", "sh", "-c", "wc -c; until [ -e go ]; do sleep 0.02; done")
	run.Stdin = zeros
	s.Start(run)
	stage.WaitFor(t, "sum", func() bool { return s.Stdout.All() == fmt.Sprintln(size) })
	most := int64(200 << 20)
	if hasRaceDetector() {
		most = size // in addition to its own memory
	}
	require.Less(t, peak(s), most)
	s.Write("go", "")
	require.Equal(t, cli.ExitOK, s.Await())
}

// hasRaceDetector reports whether the program was built with -race.
func hasRaceDetector() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// run can restart its command, like any agent.
func TestTortureRunStartedAgain(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	s.Start(exec.Command(s.Program, "run", "--", "sh", "-c", "echo here; exec sleep 1000"))
	stage.WaitFor(t, "first start", func() bool { return s.Stdout.All() == "here\n" })
	sockets, err := filepath.Glob(s.Path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	s.Ask("agent", "restart", "sh", "--host", sockets[0])
	stage.WaitFor(t, "second start", func() bool { return s.Stdout.All() == "here\nhere\n" })
	s.Stop()
}

// A signal without a name is shown by its number.
func TestTortureRunEndedBySignal(t *testing.T) {
	t.Parallel()
	for _, number := range []int{9, 15, 34, 40, 64} {
		s := stage.New(t, "")
		s.Start(exec.Command(s.Program, "run", "--", "bash", "-c", fmt.Sprintf("kill -%d $$", number)))
		require.Equal(t, 128+number, s.Await())
	}
}

// Reading the logs takes little memory, however long they are.
func TestTortureLongHistory(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "writer" {
  command = ["cat"]
}
`).Ship()
	require.NoError(t, os.MkdirAll(s.Path("state/logs/writer"), 0o700))
	line := "2020-01-01T00:00:00.000Z " + strings.Repeat("x", 998) + "\n"
	for _, name := range []string{"000001-01.out", "000001-02.out", "000001-01.err"} {
		s.Write("state/logs/writer/"+name, strings.Repeat(line, 64<<10))
	}
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "writer")
	text, err := exec.Command("sh", "-c", `"$0" logs -n all --json --host "$1" | wc -l`, s.Program, s.Path("state/api.sock")).Output()
	require.NoError(t, err)
	require.GreaterOrEqual(t, stage.Numbers(t, strings.Fields(string(text)))[0], 3*64<<10)
	require.Less(t, peak(s), int64(200<<20))
	s.Stop()
}

// Row 8, for the whole program: an agent that never reads its stdin does not delay the ordered
// stop. The other agents are notified and end as usual.
//
// Rows: B-72, T-04.
func TestTorture8DeafAgentAmongOthers(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
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
  stop {
    close_stdin = "1m"
  }
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "deaf")
	s.WaitForLines(1, "reader")
	s.Ask("down")
	require.Equal(t, cli.ExitOK, s.Await())
	require.Empty(t, s.Processes())
	lines := s.Lines("reader", control.StreamOut)
	require.Len(t, lines, 3)
	var notice struct{ Type string }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "heard ")), &notice))
	require.Equal(t, "notify:shutdown", notice.Type)
	require.Equal(t, "bye", lines[2])
	deaf, reader := s.Events(events.AgentStopped, "deaf")[0], s.Events(events.AgentStopped, "reader")[0]
	require.Contains(t, reader.Text, "exit 0")
	require.Contains(t, deaf.Text, "killed by SIGTERM")
	require.Less(t, reader.Seq, deaf.Seq, "the reader waited for the deaf one")
}

// Row 8: the stdin of an agent is completely full, so the shutdown notice cannot be written. The
// agent is still stopped.
func TestTorture8NoticeCannotBeDelivered(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	run := exec.Command(s.Program, "run", "--", "sleep", "1000")
	run.Stdin = strings.NewReader(strings.Repeat(strings.Repeat("x", 1023)+"\n", 4096))
	s.Start(run)
	stage.WaitFor(t, "agent with a full stdin", func() bool {
		pids := s.Processes()
		return len(pids) == 1 && stdinIsFull(pids[0])
	})
	s.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, s.Await())
	require.Empty(t, s.Processes())
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

// Every socket is served, also of run.
func TestTortureRunAnswers(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	s.Start(exec.Command(s.Program, "run", "--", "sleep", "1000"))
	stage.WaitFor(t, "process of the agent", func() bool { return len(s.Processes()) == 1 })
	sockets, err := filepath.Glob(s.Path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	if len(sockets) > 0 {
		_, stderr, code := s.Call("status", "--host", sockets[0], "--timeout", "5s")
		require.Equal(t, cli.ExitOK, code, stderr)
	}
}

// A thousand idle agents run at the same time, and down leaves none of them.
func TestTortureThousandAgents(t *testing.T) {
	t.Parallel()
	const many = 1000
	s := stage.New(t, `
agent "idle" {
  command  = ["cat"]
  replicas = 1000
}
`).Ship().Up("--json")
	s.WaitForEvents(many, events.AgentStarted, "")
	require.Len(t, pids(s), many)
	require.Len(t, s.Processes(), many)
	stdout := s.Ask("down")
	require.Contains(t, stdout, "nothing left running")
	require.Equal(t, cli.ExitOK, s.Await())
	require.Empty(t, s.Processes())
	for _, e := range s.Events(events.AgentStopped, "") {
		require.Contains(t, e.Text, "exit 0", e.Agent)
	}
}
