package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
)

// Torture 0, row 1: an unterminated last line, then exit 0.
func TestTorture0LastLineWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "leaver" {
  command = ["sh", "-c", "echo first; printf 'last words'"]
}
`).up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	require.Equal(t, []string{"first", "last words"}, s.lines("leaver", control.StreamOut))
	require.Equal(t, []string{"first", "last words"}, s.logged("leaver", ".out"))
}

// Torture 0, row 2: a line of 200 KB, then another line.
func TestTorture0LongLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "talker" {
  command = ["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo; echo after"]
}
`).up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	want := []string{strings.Repeat("x", 200_000), "after"}
	require.Equal(t, want, s.lines("talker", control.StreamOut))
	require.Equal(t, want, s.logged("talker", ".out"))
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
	s := newStage(t, quick+hcl).up("--json")
	s.waitForEvents(3, events.AgentExited, "")
	s.waitForEvents(4, events.AgentStarted, "")
	waitForThat(t, "word of the one that is stopped", func() bool { return s.agent("stopped").Output.Bytes == 6 })
	s.stop()
	for name := range ends {
		want := map[bool]string{false: "out", true: "outbye"}[name == "stopped"]
		require.Equal(t, []string{want}, s.lines(name, control.StreamOut), name)
		require.Equal(t, []string{"err"}, s.lines(name, control.StreamErr), name)
		require.Equal(t, []string{want}, s.logged(name, ".out"), name)
		require.Equal(t, []string{"err"}, s.logged(name, ".err"), name)
	}
	s.start(exec.Command(s.program, "run", "--", "sh", "-c", "printf out; printf err >&2; exit 7"))
	require.Equal(t, 7, s.await())
	require.Equal(t, "out\n", s.said.all())
	require.Equal(t, "err\n", s.cried.all())
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
	s := newStage(t, quick+`
agent "talker" {
  command = ["sh", "talker.sh"]
}
`, "talker.sh", script+"echo '"+message+"'; exec sleep 1000").ship().up("--json")
	cut := s.waitForEvents(1, events.AgentLineCut, "talker")
	waitForThat(t, "last line", func() bool { return s.agent("talker").Output.Lines == 5 })
	require.EqualValues(t, 1, s.agent("talker").Output.Cut)
	s.stop()
	require.Len(t, s.events(events.AgentLineCut, ""), 1)
	require.EqualValues(t, sizes[3], cut[0].Figures.Count)
	lines := s.logged("talker", ".out")
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
	s := newStage(t, `
agent "flooder" {
  command = ["sh", "flooder.sh"]
}
`, "flooder.sh", fmt.Sprintf("until [ -e go ]; do sleep 0.02; done\nhead -c %d /dev/zero; echo; echo after\n", size))
	s.ship().up("--json")
	s.waitForEvents(1, events.AgentStarted, "flooder")
	before := s.peak()
	s.write("go", "")
	exited := s.waitForEvents(1, events.AgentExited, "flooder")[0]
	require.Equal(t, 0, *exited.Figures.ExitCode)
	grown := s.peak() - before
	s.stop()
	cut := s.events(events.AgentLineCut, "flooder")
	require.Len(t, cut, 1)
	require.Equal(t, size, cut[0].Figures.Count)
	lines := s.logged("flooder", ".out")
	require.Len(t, lines, 2)
	require.Equal(t, "after", lines[1])
	// The line is held up to the limit, 16 MiB, beside the smaller buffer that it outgrew, and the
	// collector lets garbage grow to the size of what lives.
	require.Less(t, grown, int64(4*16<<20), "bytes that the orchestrator's memory grew by")
}

// peak returns the peak memory of the orchestrator in bytes.
func (s *stage) peak() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	require.NoError(s.t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(s.t, found)
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(s.t, err)
	return kib << 10
}

// Row 9: one agent floods and another prints a line now and then. All lines of the second one
// arrive in order, on the console and in its file, and the orchestrator answers requests.
func TestTorture9FloodHidesNobody(t *testing.T) {
	t.Parallel()
	const lines = 20
	s := newStage(t, quick+`
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
	s.said, s.cried, s.ended = &transcript{flood: []byte("a line of the flood")}, &transcript{}, make(chan struct{})
	s.launch(exec.Command(s.program, "up", "--state-dir", s.state(), "--timeout", "3m"))
	heard := func() (texts []string, floods []int) {
		s.said.mu.Lock()
		defer s.said.mu.Unlock()
		for i, line := range s.said.text {
			if _, text, found := strings.Cut(line, " quiet   | "); found {
				texts, floods = append(texts, text), append(floods, s.said.before[i])
			}
		}
		return texts, floods
	}
	waitForThat(t, "whole of what the quiet agent says", func() bool { texts, _ := heard(); return len(texts) >= lines })
	require.Equal(t, control.StateRunning, s.agent("flooder").State)
	texts, floods := heard()
	var want []string
	for i := range lines {
		want = append(want, fmt.Sprintf("line %d", i+1))
	}
	require.Equal(t, want, texts)
	require.Equal(t, want, s.logged("quiet", ".out"))
	require.Greater(t, floods[lines-1], floods[0], "there was no flood while the quiet agent spoke")
	s.stop()
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
	s := newStage(t, fmt.Sprintf(`
agent "split" {
  command  = ["sh", "-c", "cat head-${self.index}; sleep 0.1; cat tail-${self.index}"]
  replicas = %d
}
`, len(stream)))
	for i := range len(stream) {
		s.write(fmt.Sprintf("head-%d", i), stream[:i])
		s.write(fmt.Sprintf("tail-%d", i), stream[i:])
	}
	s.up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	for i := range len(stream) {
		name := fmt.Sprintf("split-%d", i)
		require.Equal(t, []string{message, "next"}, s.lines(name, control.StreamOut), name)
		require.Equal(t, []string{message, "next"}, s.logged(name, ".out"), name)
	}
}

// Row 13: a terminal that is raw before the agent starts. A line of 100 KB arrives complete,
// there is no echo, and line ends are unchanged. The last line is read although the terminal
// ends with an error. (No command resizes a terminal: see TestPtyKeepsStderrApartAndIsResized of
// package child.)
//
// Rows: T-05.
func TestTorture13Terminal(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", "raw.sh", `
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
	raw := exec.Command(s.program, "run", "--pty", "--", "sh", s.path("raw.sh"))
	raw.Stdin = strings.NewReader(strings.Repeat("y", 100_000) + "\n")
	s.start(raw)
	require.Equal(t, cli.ExitOK, s.await())
	require.Equal(t, "24 80\nheard 100000\none\ntwo\nlast words\n", s.said.all())
	require.Equal(t, "apart\n", s.cried.all())

	for _, mode := range []string{"sane", "echo"} { // the old default, and raw with echo
		echo := exec.Command(s.program, "run", "--pty", "--", "sh", s.path("echo.sh"), mode)
		stdin, err := echo.StdinPipe()
		require.NoError(t, err)
		s.start(echo)
		waitForThat(t, "terminal with its echo on", func() bool { return s.said.all() == "ready\n" })
		_, err = stdin.Write([]byte("ping\n"))
		require.NoError(t, err)
		require.Equal(t, cli.ExitOK, s.await())
		require.Equal(t, "ready\nheard ping\n", s.said.all(), "what was told came back as said, stty %s", mode)
	}
}

// A full disk, simulated by a limit on file sizes. All agents continue, one message reports it,
// lost lines are counted, and no file has a partial line. When there is room again, the file
// continues with a note.
func TestTortureFullDisk(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+unkept+`
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
	s.start(exec.Command("sh", "-c", `ulimit -S -f 16; exec "$0" "$@"`, s.program, "up", "--yes", "--state-dir", s.state(), "--timeout", "3m"))
	waitForThat(t, "line of the other agent", func() bool { return strings.Contains(s.said.all(), "| fine") })
	require.Equal(t, []string{"fine"}, s.logged("other", ".out"))
	full := s.agent("writer")
	require.Equal(t, control.StateRunning, full.State)
	require.Positive(t, full.Output.Unlogged)
	require.Equal(t, 1, strings.Count(s.said.all(), "cannot write its stdout to a file"))
	require.Empty(t, strings.TrimSpace(s.cried.all()[strings.Index(s.cried.all(), "\n")+1:]), "more than the first line")

	var room unix.Rlimit
	require.NoError(t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = room.Max
	require.NoError(t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
	waitForThat(t, "end of the trouble", func() bool { return strings.Contains(s.said.all(), "is written again") })
	s.stop()
	lost := full.Output.Unlogged
	number, next := regexp.MustCompile(`^line (\d+) of a text that is long enough to fill the little that there is room for$`), 1
	note := regexp.MustCompile(`^\[(\d+) lines before this one could not be written\]$`)
	notes := 0
	for _, line := range s.logged("writer", ".out") {
		if found := note.FindStringSubmatch(line); found != nil {
			gap := numbers(t, found[1:])[0]
			require.GreaterOrEqual(t, int64(gap), lost)
			next += gap
			notes++
			continue
		}
		found := number.FindStringSubmatch(line)
		require.NotNil(t, found, "half a line: %q", line)
		require.Equal(t, next, numbers(t, found[1:])[0], "a line is missing and not counted")
		next++
	}
	require.Equal(t, 1, notes)
	require.Equal(t, 1, strings.Count(s.said.all(), "cannot write its stdout to a file"))
	shown := slices.Collect(strings.Lines(s.said.all()))
	require.Greater(t, len(shown), next, "the console shows every line")
}

// A transcript is the output of a program, line by line, with the documents of up --json
// decoded.
type transcript struct {
	mu      sync.Mutex
	open    []byte // a line without its end
	text    []string
	events  []wire.Event
	lines   []control.LogLine
	flood   []byte // lines with this in them are counted and not kept
	flooded int
	before  []int // number of such lines before each line of text
}

// Write stores output of the program.
func (t *transcript) Write(chunk []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := len(chunk)
	for {
		line, rest, ended := bytes.Cut(chunk, []byte("\n"))
		if !ended {
			t.open = append(t.open, line...)
			return size, nil
		}
		if len(t.open) > 0 {
			line = append(t.open, line...)
			t.open = t.open[:0]
		}
		t.add(line)
		chunk = rest
	}
}

func (t *transcript) add(line []byte) {
	if t.flood != nil && bytes.Contains(line, t.flood) {
		t.flooded++
		return
	}
	t.text = append(t.text, string(line))
	t.before = append(t.before, t.flooded)
	var event wire.Event
	var said control.LogLine
	switch {
	case !bytes.HasPrefix(line, []byte("{")):
	case json.Unmarshal(line, &event) == nil && event.Kind != "":
		t.events = append(t.events, event)
	case json.Unmarshal(line, &said) == nil && said.Stream != "":
		t.lines = append(t.lines, said)
	}
}

// all returns the output so far.
func (t *transcript) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(slices.Clone(t.text), string(t.open)), "\n")
}
