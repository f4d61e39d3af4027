package output

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestFollowerThatMovesAtTheLastMoment checks that a blocking follower is given up only if it has
// taken no event for as long as an agent waits.
func TestFollowerThatMovesAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{moved: make(chan struct{})}
		earlier := make(chan struct{}) // replaced when the follower took a page, as time ran out
		f.await(earlier)
		require.False(t, f.stuck)
		f.await(f.moved)
		require.True(t, f.stuck)
	})
}

// TestEventsInOrder checks that an event is not heard before an earlier one of another agent, and
// that lines of an agent still come in one piece.
func TestEventsInOrder(t *testing.T) {
	f := NewFollower(false)
	event := func(agent, kind string) {
		var p page
		p.add(mark{stream: control.StreamOwn, news: &Notice{Record: wire.Record{Kind: kind, Payload: []byte(`{}`)}}})
		f.pushNow(agent, &p)
	}
	line := func(agent, text string) {
		var p page
		p.add(mark{stream: control.StreamOut}, []byte(text))
		f.push(agent, &p)
	}
	event("", "1")
	line("a", "x")
	event("a", "2")
	line("b", "y")
	event("", "3")
	event("a", "4")
	line("b", "z")
	event("", "5")
	event("", "6")
	f.Close()
	var heard []string
	var spare Backlog
	for f.Next(t.Context(), &spare, func(l Line) {
		if l.Event != nil {
			heard = append(heard, l.Event.Kind)
		} else {
			heard = append(heard, string(l.Text))
		}
	}) {
		heard = append(heard, "|")
	}
	require.Equal(t, "1 | x 2 | y z | 3 | 4 | 5 6 |", strings.Join(heard, " "))
	for _, q := range f.queues {
		require.Zero(t, q.text)
		require.Zero(t, q.weight)
	}
}

// TestSkippedEventsAreNotSpelled checks that events that a follower skips are not even encoded, and
// that it gets all other events.
func TestSkippedEventsAreNotSpelled(t *testing.T) {
	f := NewFollower(false)
	f.Skip(func(kind string) bool { return kind == events.TaskProgress })
	for _, kind := range []string{events.TaskProgress, events.OrchestratorIdle} {
		var p page
		n := &Notice{Record: wire.Record{At: time.Now(), Kind: kind, Payload: []byte(`{"text":"x"}`)}}
		p.add(mark{at: n.Record.At, stream: control.StreamOwn, news: n}, nil)
		f.pushNow("a", &p)
	}
	f.Close()
	var heard []string
	var spare Backlog
	for f.Next(t.Context(), &spare, func(l Line) { heard = append(heard, l.Event.Kind) }) {
	}
	require.Equal(t, []string{events.OrchestratorIdle}, heard)
}

// TestSizeOfANotice checks that a recent event that nobody asks for takes little more than its record.
func TestSizeOfANotice(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Notice{}), unsafe.Sizeof(wire.Record{})+24)
}

// TestEventsAfterTheEnd checks that an event may come after the end, such as that the link of a host is
// gone.
func TestEventsAfterTheEnd(t *testing.T) {
	r := NewRecentEvents(true)
	r.Close()
	require.NotPanics(t, func() { r.add([]*Notice{{}}) })
	require.EqualValues(t, 1, r.Latest())
	_, _, grown := r.After(0)
	require.Nil(t, grown)
	r.Close()
}

// TestLastLinesOfOneStream checks that lines of another stream in the tail do not hide lines of
// a file.
func TestLastLinesOfOneStream(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "1999-01-01T00:00:%02d.000Z out %d\n", i, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "000001-01.out"), []byte(text.String()), 0o600))
	p := &AgentLog{Agent: "a", Dir: dir}
	for i := range 10 {
		p.Tail = append(p.Tail, control.LogLine{At: fmt.Sprintf("1999-01-01T00:01:%02d.000Z", i), Agent: "a", Stream: control.StreamErr, Text: "err"})
	}
	var seen []string
	for line, err := range p.Lines(&LogQuery{Last: 5, Stream: control.StreamOut}) {
		require.NoError(t, err)
		seen = append(seen, line.Text)
	}
	require.Equal(t, []string{"out 15", "out 16", "out 17", "out 18", "out 19"}, seen)
}

// TestLastReadsOnce checks that lines are read twice only if they are too large to be held.
func TestLastReadsOnce(t *testing.T) {
	for _, c := range []struct{ size, reads int }{{10, 1}, {maxHeld / 2, 2}} {
		reads := 0
		lines := func(yield func(control.LogLine, error) bool) {
			reads++
			for i := range 10 {
				if !yield(control.LogLine{At: strconv.Itoa(i), Text: strings.Repeat("x", c.size)}, nil) {
					return
				}
				if i == 2 && !yield(control.LogLine{At: "bad"}, io.ErrUnexpectedEOF) {
					return
				}
			}
		}
		var seen []string
		for line := range last(3, lines) {
			seen = append(seen, line.At)
		}
		require.Equal(t, []string{"bad", "7", "8", "9"}, seen)
		require.Equal(t, c.reads, reads)
	}
}

// TestLogFileOfManyParts checks that part 100 is newer than part 11, although it sorts before
// it. The current file must not be removed.
func TestLogFileOfManyParts(t *testing.T) {
	dir := t.TempDir()
	f := File{Dir: dir, Prefix: "000001", Suffix: ".out", Limits: Limits{MaxSize: 1, Keep: 3}}
	for i := range 250 {
		require.NoError(t, f.Write(fmt.Appendf(nil, "line %d\n", i+1), 1, time.Now()))
	}
	f.Close()
	require.Equal(t, []string{"000001-248.out", "000001-249.out", "000001-250.out"}, fileNames(dir, ".out"))
	for i, name := range fileNames(dir, ".out") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("line %d\n", 248+i), string(text))
	}
}

func TestLogNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"000002-01.out", "000001-100.out", "000001-11.out", "1000000-01.out", "000001-09.err",
		"notes.out", "000001.out", "000001-x.out", "000003-01.out.gz",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, []string{"000001-11.out", "000001-100.out", "000002-01.out", "1000000-01.out"}, fileNames(dir, ".out"))
	require.Equal(t, []string{"000001-09.err"}, fileNames(dir, ".err"))
	require.Equal(t, 1_000_001, NextRun(dir))
	require.Empty(t, fileNames(filepath.Join(dir, "none"), ".out"))

	f := File{Dir: dir, Prefix: "000001", Suffix: ".out", part: 11, Limits: Limits{Keep: 1}}
	f.prune()
	require.Equal(t, []string{"000001-11.out", "1000000-01.out"}, fileNames(dir, ".out"), "what is written stays")
	require.FileExists(t, filepath.Join(dir, "notes.out"), "what is not ours stays")
}

// TestLostLinesAtTheEnd checks that lines that could not be written are counted in the file, even
// if no line follows them.
func TestLostLinesAtTheEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // in the way of the folder
	f := File{Dir: dir, Prefix: "000001", Suffix: ".out", Limits: Limits{MaxSize: 1 << 20, Keep: 3}}
	require.Error(t, f.Write([]byte("one\n"), 1, time.Now()))
	require.NoError(t, f.Write([]byte("two\n"), 1, time.Now()), "reported before")
	require.NoError(t, os.Remove(dir))
	f.Close()
	text, err := os.ReadFile(filepath.Join(dir, "000001-01.out"))
	require.NoError(t, err)
	require.Regexp(t, `^\S+Z \[2 lines before this one could not be written\]\n$`, string(text))
}
