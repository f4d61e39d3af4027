package main

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
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Tests of output that is not read or cannot be written.

// pausedPipe returns the path of a pipe that can be opened and is never read.
func (s *stage) pausedPipe() string {
	s.t.Helper()
	require.NoError(s.t, unix.Mkfifo(s.path("pipe"), 0o600))
	pipe, err := os.OpenFile(s.path("pipe"), os.O_RDWR, 0)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, pipe.Close()) })
	return s.path("pipe")
}

// shell starts the program with a shell redirection of its stdout.
func (s *stage) shell(redirection string, args ...string) {
	s.t.Helper()
	s.start(exec.Command("sh", append([]string{"-c", `exec "$0" "$@" ` + redirection, s.program}, args...)...))
}

// A full disk for the output does not stop the program. When there is room again, the output
// continues and tells how much is missing.
func TestTortureUpOntoFullDisk(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+unkept+`
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
	s.start(exec.Command("sh", "-c", `ulimit -S -f 16; exec "$0" "$@" >shown`, s.program, "up", "--state-dir", s.state(), "--timeout", "3m"))
	waitForThat(t, "full disk", func() bool { return strings.Contains(s.cried.all(), "cannot write to stdout") })
	require.Equal(t, control.StateRunning, s.agent("writer").State)
	var room unix.Rlimit
	require.NoError(t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = room.Max
	require.NoError(t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
	shown := func() string {
		text, err := os.ReadFile(s.path("shown"))
		require.NoError(t, err)
		return string(text)
	}
	note := regexp.MustCompile(`(?m)^[0-9:]+ (\d+) lines before this one could not be written$`)
	waitForThat(t, "note in the output", func() bool { return note.MatchString(shown()) })
	s.stop()
	require.Equal(t, 1, strings.Count(s.cried.all(), "cannot write to stdout"))
	notes := note.FindAllStringSubmatch(shown(), -1)
	require.Len(t, notes, 1)
	missing, last, gaps := numbers(t, notes[0][1:])[0], 0, 0
	for _, found := range regexp.MustCompile(`(?m)\| line (\d+) of .* room for$`).FindAllStringSubmatch(shown(), -1) {
		n := numbers(t, found[1:])[0]
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
	s := newStage(t, quick+`
agent "talker" {
  command = ["yes"]
}
`)
	s.start(exec.Command("sh", "-c", `"$0" "$@" | head -n 1`, s.program, "up", "--state-dir", s.state(), "--timeout", "3m"))
	require.Equal(t, cli.ExitOK, s.await())
	waitForThat(t, "end of all", func() bool { return len(s.processes()) == 0 })
}

// With a disk that is always full, the team works and stops in order.
func TestTortureUpOntoNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "talker" {
  command = ["sh", "-c", "echo words; exec cat"]
}
`)
	s.shell(">/dev/full", "up", "--state-dir", s.state(), "--timeout", "3m")
	waitForThat(t, "trouble", func() bool { return strings.Contains(s.cried.all(), "cannot write to stdout") })
	waitForThat(t, "line of the agent", func() bool { return len(s.logged("talker", ".out")) == 1 })
	require.Equal(t, control.StateRunning, s.agent("talker").State)
	s.stop()
	require.Equal(t, 1, strings.Count(s.cried.all(), "cannot write to stdout"))
	require.Contains(t, s.cried.all(), "missing_lines")
}

// A paused reader, such as a terminal after Ctrl-S, does not delay the exit of a team that has
// ended.
func TestTortureUpWithPausedReader(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "talker" {
  command = ["sh", "-c", "yes | head -c 2000000; echo >done; exec cat"]
}
`)
	s.shell(">"+s.pausedPipe(), "up", "--state-dir", s.state(), "--timeout", "3m")
	waitForThat(t, "end of the flood", func() bool { _, err := os.Stat(s.path("done")); return err == nil })
	s.stop()
	require.Contains(t, s.cried.all(), "the last lines are not shown")
}

// A slow reader of run gets all output.
func TestTortureRunWithLateReader(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	pipe := s.pausedPipe()
	s.shell(">"+pipe, "run", "--", "sh", "-c", "seq 20000; >done")
	waitForThat(t, "end of the command", func() bool {
		_, err := os.Stat(s.path("done"))
		return err == nil && len(s.processes()) == 0
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
	require.Equal(t, cli.ExitOK, s.await())
}

// run may be signalled while its reader is paused, and still returns the exit code of the
// command.
func TestTortureRunWithPausedReader(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.shell(">"+s.pausedPipe(), "run", "--", "sh", "-c", "yes | head -c 2000000; >done; exit 3")
	waitForThat(t, "end of the command", func() bool { _, err := os.Stat(s.path("done")); return err == nil })
	sockets, err := filepath.Glob(s.path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	waitForThat(t, "end of the team", func() bool {
		_, _, code := s.call("status", "--host", sockets[0])
		return code == cli.ExitConflict
	})
	s.signal(syscall.SIGTERM)
	require.Equal(t, 3, s.await())
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
			s := newStage(t, "")
			s.start(exec.Command("bash", "-c", script, s.program))
			require.Equal(t, cli.ExitBrokenPipe, s.await())
			require.Equal(t, "y\n", s.said.all())
			require.Empty(t, s.cried.all())
			require.Empty(t, s.processes(), "left running")
		})
	}
}

// run reports a write error once. It fails then unless the command itself has failed.
func TestTortureRunOntoFullDisk(t *testing.T) {
	t.Parallel()
	for script, exit := range map[string]int{"seq 100000": cli.ExitNo, "seq 100000; exit 3": 3} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.shell(">/dev/full", "run", "--", "sh", "-c", script+"; # to the end")
			require.Equal(t, exit, s.await())
			require.Equal(t, 1, strings.Count(s.cried.all(), "Error: cannot write what sh prints to stdout: "))
			require.Contains(t, s.cried.all(), "no space left on device")
		})
	}
}

// Input without line ends is passed on, and never held in memory as a whole.
func TestTortureRunEndlessInput(t *testing.T) {
	t.Parallel()
	s := newStage(t, "").ship()
	const size = 300 << 20
	require.NoError(t, os.WriteFile(s.path("zeros"), nil, 0o600))
	require.NoError(t, os.Truncate(s.path("zeros"), size))
	zeros, err := os.Open(s.path("zeros"))
	require.NoError(t, err)
	defer zeros.Close()
	run := exec.Command(s.program, "run", "--", "sh", "-c", "wc -c; until [ -e go ]; do sleep 0.02; done")
	run.Stdin = zeros
	s.start(run)
	waitForThat(t, "sum", func() bool { return s.said.all() == fmt.Sprintln(size) })
	most := int64(200 << 20)
	if hasRaceDetector() {
		most = size // in addition to its own memory
	}
	require.Less(t, s.peak(), most)
	s.write("go", "")
	require.Equal(t, cli.ExitOK, s.await())
}

// hasRaceDetector reports whether the program was built with -race.
func hasRaceDetector() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// run can restart its command, like any agent.
func TestTortureRunStartedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.start(exec.Command(s.program, "run", "--", "sh", "-c", "echo here; exec sleep 1000"))
	waitForThat(t, "first start", func() bool { return s.said.all() == "here\n" })
	sockets, err := filepath.Glob(s.path("orchestrator-run-*/api.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	s.ask("agent", "restart", "sh", "--host", sockets[0])
	waitForThat(t, "second start", func() bool { return s.said.all() == "here\nhere\n" })
	s.stop()
}

// A signal without a name is shown by its number.
func TestTortureRunEndedBySignal(t *testing.T) {
	t.Parallel()
	for _, number := range []int{9, 15, 34, 40, 64} {
		s := newStage(t, "")
		s.start(exec.Command(s.program, "run", "--", "bash", "-c", fmt.Sprintf("kill -%d $$", number)))
		require.Equal(t, 128+number, s.await())
	}
}

// Reading the logs takes little memory, however long they are.
func TestTortureLongHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "writer" {
  command = ["cat"]
}
`).ship()
	require.NoError(t, os.MkdirAll(s.path("state/logs/writer"), 0o700))
	line := "2020-01-01T00:00:00.000Z " + strings.Repeat("x", 998) + "\n"
	for _, name := range []string{"000001-01.out", "000001-02.out", "000001-01.err"} {
		s.write("state/logs/writer/"+name, strings.Repeat(line, 64<<10))
	}
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "writer")
	text, err := exec.Command("sh", "-c", `"$0" logs -n all --json --host "$1" | wc -l`, s.program, s.path("state/api.sock")).Output()
	require.NoError(t, err)
	require.GreaterOrEqual(t, numbers(t, strings.Fields(string(text)))[0], 3*64<<10)
	require.Less(t, s.peak(), int64(200<<20))
	s.stop()
}

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
  stop {
    close_stdin = "1m"
  }
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
