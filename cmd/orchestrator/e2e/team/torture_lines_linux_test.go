package team

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
)

// Torture 0, row 1: an unterminated last line, then exit 0.
func TestTorture0LastLineWithoutEnd(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "leaver" {
  command = ["sh", "-c", "echo first; printf 'last words'"]
}
`).Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	require.Equal(t, []string{"first", "last words"}, s.Lines("leaver", control.StreamOut))
	require.Equal(t, []string{"first", "last words"}, s.Logged("leaver", ".out"))
}

// Torture 0, row 2: a line of 200 KB, then another line.
func TestTorture0LongLine(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "talker" {
  command = ["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo; echo after"]
}
`).Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	want := []string{strings.Repeat("x", 200_000), "after"}
	require.Equal(t, want, s.Lines("talker", control.StreamOut))
	require.Equal(t, want, s.Logged("talker", ".out"))
}

// Torture 0, row 3: 384 MiB without a line end.
func TestTorture0EndlessLine(t *testing.T) {
	t.Parallel()
	endlessLine(t, 384<<20)
}

// Row 1: an unterminated last line is read from both streams, after any kind of exit, and by run
// too.
//
// Rows: B-10.
func TestTorture1UnterminatedLastLine(t *testing.T) {
	t.Parallel()
	ends := map[string]string{"well": "exit 0", "badly": "exit 3", "killed": "kill -9 $$", "stopped": "read -r notice; read -r nothing; printf bye"}
	hcl := ""
	for name, end := range ends {
		hcl += fmt.Sprintf(`
agent %q {
  command = ["sh", "-c", "printf out; printf err >&2; %s"]
  restart {
    policy = "never"
  }
}
`, name, end)
	}
	s := stage.New(t, stage.QuickStop+hcl).Up("--json")
	s.WaitForEvents(3, events.AgentExited, "")
	s.WaitForEvents(4, events.AgentStarted, "")
	stage.WaitFor(t, "word of the one that is stopped", func() bool { return s.Agent("stopped").Output.Bytes == 6 })
	s.Stop()
	for name := range ends {
		want := map[bool]string{false: "out", true: "outbye"}[name == "stopped"]
		require.Equal(t, []string{want}, s.Lines(name, control.StreamOut), name)
		require.Equal(t, []string{"err"}, s.Lines(name, control.StreamErr), name)
		require.Equal(t, []string{want}, s.Logged(name, ".out"), name)
		require.Equal(t, []string{"err"}, s.Logged(name, ".err"), name)
	}
	s.Start(exec.Command(s.Program, "run", "--", "sh", "-c", "printf out; printf err >&2; exit 7"))
	require.Equal(t, 7, s.Await())
	require.Equal(t, "out\n", s.Stdout.All())
	require.Equal(t, "err\n", s.Stderr.All())
}

// Row 2: lines up to the limit arrive complete. A line that is one byte longer is dropped with
// one event, and the message after it arrives.
//
// Rows: B-09.
func TestTorture2LinesUpToTheLimit(t *testing.T) {
	t.Parallel()
	sizes := []int{200_000, 1_300_000, 16 << 20, 16<<20 + 1}
	script := ""
	for _, size := range sizes {
		script += fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo\n", size)
	}
	const message = `{"type":"event:progress","id":"1"}`
	s := stage.New(t, stage.QuickStop+`
agent "talker" {
  command = ["sh", "talker.sh"]
}
`, "talker.sh", script+"echo '"+message+"'; exec sleep 1000").Ship().Up("--json")
	cut := s.WaitForEvents(1, events.AgentLineCut, "talker")
	stage.WaitFor(t, "last line", func() bool { return s.Agent("talker").Output.Lines == 5 })
	require.EqualValues(t, 1, s.Agent("talker").Output.Cut)
	s.Stop()
	require.Len(t, s.Events(events.AgentLineCut, ""), 1)
	require.EqualValues(t, sizes[3], cut[0].Figures.Count)
	lines := s.Logged("talker", ".out")
	require.Equal(t, 5, len(lines), "lines in the file") // Len would print the lines
	for i, size := range sizes[:3] {
		require.True(t, lines[i] == strings.Repeat("x", size), "line %d has %d bytes", i, len(lines[i]))
	}
	require.Equal(t, strings.Repeat("x", line.Head)+"… [cut: the line was 16 MiB]", lines[3])
	require.Equal(t, message, lines[4])
}

// Row 3: a line of 1 GiB takes little memory and does not block the agent.
func TestTorture3EndlessLine(t *testing.T) {
	t.Parallel()
	endlessLine(t, 1<<30)
}

// endlessLine makes an agent print one line of this size and checks the memory that it takes.
func endlessLine(t *testing.T, size int64) {
	s := stage.New(t, `
agent "flooder" {
  command = ["sh", "flooder.sh"]
}
`, "flooder.sh", fmt.Sprintf("until [ -e go ]; do sleep 0.02; done\nhead -c %d /dev/zero; echo; echo after\n", size))
	s.Ship().Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "flooder")
	before := peak(s)
	s.Write("go", "")
	exited := s.WaitForEvents(1, events.AgentExited, "flooder")[0]
	require.Equal(t, 0, *exited.Figures.ExitCode)
	grown := peak(s) - before
	s.Stop()
	cut := s.Events(events.AgentLineCut, "flooder")
	require.Len(t, cut, 1)
	require.Equal(t, size, cut[0].Figures.Count)
	lines := s.Logged("flooder", ".out")
	require.Len(t, lines, 2)
	require.Equal(t, "after", lines[1])
	// The line is held up to the limit, 16 MiB, beside the smaller buffer that it outgrew, and the
	// collector lets garbage grow to the size of live memory.
	require.Less(t, grown, int64(4*16<<20), "bytes that the orchestrator's memory grew by")
}

// peak returns the peak memory of the orchestrator in bytes.
func peak(s *stage.Orchestrator) int64 {
	s.T.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Process.Pid))
	require.NoError(s.T, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(s.T, found)
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(s.T, err)
	return kib << 10
}

// Row 9: one agent floods and another prints a line now and then. All lines of the second one
// arrive in order, on the console and in its file, and the orchestrator answers requests.
func TestTorture9FloodHidesNobody(t *testing.T) {
	t.Parallel()
	const lines = 20
	s := stage.New(t, stage.QuickStop+`
agent "flooder" {
  command = ["yes", "a line of the flood, of which there are many"]
}

agent "quiet" {
  command = ["sh", "quiet.sh"]
}
`, "quiet.sh", fmt.Sprintf(`
for i in $(seq %d); do echo "line $i"; sleep 0.1; done
exec cat
`, lines))
	s.Stdout, s.Stderr, s.Ended = &stage.Output{Flood: []byte("a line of the flood")}, &stage.Output{}, make(chan struct{})
	s.Launch(exec.Command(s.Program, "up", "--state-dir", s.State(), "--timeout", "3m"))
	heard := func() (texts []string, floods []int) {
		s.Stdout.Mu.Lock()
		defer s.Stdout.Mu.Unlock()
		for i, line := range s.Stdout.Text {
			if _, text, found := strings.Cut(line, " quiet   | "); found {
				texts, floods = append(texts, text), append(floods, s.Stdout.Before[i])
			}
		}
		return texts, floods
	}
	stage.WaitFor(t, "whole of what the quiet agent says", func() bool { texts, _ := heard(); return len(texts) >= lines })
	require.Equal(t, control.StateRunning, s.Agent("flooder").State)
	texts, floods := heard()
	var want []string
	for i := range lines {
		want = append(want, fmt.Sprintf("line %d", i+1))
	}
	require.Equal(t, want, texts)
	require.Equal(t, want, s.Logged("quiet", ".out"))
	require.Greater(t, floods[lines-1], floods[0], "there was no flood while the quiet agent spoke")
	s.Stop()
}

// Row 12: a message arrives unchanged wherever it is split: within characters of 2, 3 and 4
// bytes, the byte order mark, or the line end. U+2028 ends no line. Each split is a separate
// stream, with a pause between its parts.
//
// Rows: B-02, T-01.
func TestTorture12EverySplit(t *testing.T) {
	t.Parallel()
	const message = "{\"type\":\"event:x\",\"text\":\"é € 😀 \u2028 .\"}"
	const stream = "\ufeff" + message + "\r\nnext\n"
	s := stage.New(t, fmt.Sprintf(`
agent "split" {
  command  = ["sh", "-c", "cat head-${self.index}; sleep 0.1; cat tail-${self.index}"]
  replicas = %d
}
`, len(stream)))
	for i := range len(stream) {
		s.Write(fmt.Sprintf("head-%d", i), stream[:i])
		s.Write(fmt.Sprintf("tail-%d", i), stream[i:])
	}
	s.Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	for i := range len(stream) {
		name := fmt.Sprintf("split-%d", i)
		require.Equal(t, []string{message, "next"}, s.Lines(name, control.StreamOut), name)
		require.Equal(t, []string{message, "next"}, s.Logged(name, ".out"), name)
	}
}

// Row 13: a terminal that is raw before the agent starts. A line of 100 KB arrives complete,
// without echo, and line ends are unchanged. The last line is read although the terminal ends with
// an error. (No command resizes a terminal: see TestPtyKeepsStderrApartAndIsResized of package
// child.)
//
// Rows: T-05.
func TestTorture13Terminal(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "", "raw.sh", `
stty size
echo apart >&2
IFS= read -r line
echo "heard ${#line}"
printf 'one\r\ntwo\nlast words'
`, "echo.sh", `
stty $1
echo ready
IFS= read -r line
echo "heard $line"
`)
	raw := exec.Command(s.Program, "run", "--pty", "--", "sh", s.Path("raw.sh"))
	raw.Stdin = strings.NewReader(strings.Repeat("y", 100_000) + "\n")
	s.Start(raw)
	require.Equal(t, cli.ExitOK, s.Await())
	require.Equal(t, "24 80\nheard 100000\none\ntwo\nlast words\n", s.Stdout.All())
	require.Equal(t, "apart\n", s.Stderr.All())

	for _, mode := range []string{"sane", "echo"} { // the old default, and raw with echo
		echo := exec.Command(s.Program, "run", "--pty", "--", "sh", s.Path("echo.sh"), mode)
		stdin, err := echo.StdinPipe()
		require.NoError(t, err)
		s.Start(echo)
		stage.WaitFor(t, "terminal with its echo on", func() bool { return s.Stdout.All() == "ready\n" })
		_, err = stdin.Write([]byte("ping\n"))
		require.NoError(t, err)
		require.Equal(t, cli.ExitOK, s.Await())
		require.Equal(t, "ready\nheard ping\n", s.Stdout.All(), "what was told came back as said, stty %s", mode)
	}
}

// A full disk, simulated by a limit on file sizes. All agents continue, one message reports it,
// lost lines are counted, and no file has a partial line. When there is room again, the file
// continues with a note.
func TestTortureFullDisk(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+stage.InMemory+`
agent "writer" {
  command = ["sh", "writer.sh"]
}

agent "other" {
  command = ["sh", "-c", "until [ -e full ]; do sleep 0.02; done; echo fine; exec cat"]
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
	s.Start(exec.Command("sh", "-c", `ulimit -S -f 16; exec "$0" "$@"`, s.Program, "up", "--yes", "--state-dir", s.State(), "--timeout", "3m"))
	stage.WaitFor(t, "line of the other agent", func() bool { return strings.Contains(s.Stdout.All(), "| fine") })
	require.Equal(t, []string{"fine"}, s.Logged("other", ".out"))
	full := s.Agent("writer")
	require.Equal(t, control.StateRunning, full.State)
	require.Positive(t, full.Output.Unlogged)
	require.Equal(t, 1, strings.Count(s.Stdout.All(), "cannot write its stdout to a file"))
	require.Empty(t, strings.TrimSpace(s.Stderr.All()[strings.Index(s.Stderr.All(), "\n")+1:]), "more than the first line")

	var room unix.Rlimit
	require.NoError(t, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = room.Max
	require.NoError(t, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
	stage.WaitFor(t, "end of the trouble", func() bool { return strings.Contains(s.Stdout.All(), "is written again") })
	s.Stop()
	lost := full.Output.Unlogged
	number, next := regexp.MustCompile(`^line (\d+) of a text that is long enough to fill the little that there is room for$`), 1
	note := regexp.MustCompile(`^\[(\d+) lines before this one could not be written\]$`)
	notes := 0
	for _, line := range s.Logged("writer", ".out") {
		if found := note.FindStringSubmatch(line); found != nil {
			gap := stage.Numbers(t, found[1:])[0]
			require.GreaterOrEqual(t, int64(gap), lost)
			next += gap
			notes++
			continue
		}
		found := number.FindStringSubmatch(line)
		require.NotNil(t, found, "half a line: %q", line)
		require.Equal(t, next, stage.Numbers(t, found[1:])[0], "a line is missing and not counted")
		next++
	}
	require.Equal(t, 1, notes)
	require.Equal(t, 1, strings.Count(s.Stdout.All(), "cannot write its stdout to a file"))
	shown := slices.Collect(strings.Lines(s.Stdout.All()))
	require.Greater(t, len(shown), next, "the console shows every line")
}
