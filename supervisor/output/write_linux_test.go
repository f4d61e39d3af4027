package output

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
	"orchestrator/wire/line"
)

// writes returns how often this process has called write(2).
func writes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	n, err := strconv.Atoi(string(regexp.MustCompile(`syscw: (\d+)`).FindSubmatch(text)[1]))
	require.NoError(t, err)
	return n
}

// fewestWrites returns how often a chunk of 256 KiB is written at least, and the files that it is in. The runtime may
// write as well.
func fewestWrites(t *testing.T, limits Limits, messages Messages, f *Follower) (calls int, files []string) {
	chunk := bytes.Repeat([]byte(string(bytes.Repeat([]byte("x"), 63))+"\n"), 4<<10)
	for range 5 {
		limits.Dir = t.TempDir()
		a := NewAgent("a", limits, func(wire.Event) {})
		r := a.Begin("run", 1<<20)
		if r.Messages = messages; f != nil {
			a.Follow(f)
		}
		r.Write(child.Stdout, []byte("the file is open\n"))
		before := writes(t)
		r.Write(child.Stdout, chunk)
		if n := writes(t) - before; calls == 0 || n < calls {
			calls = n
		}
		r.End()
	}
	files, err := filepath.Glob(filepath.Join(limits.Dir, "a", "*.out"))
	require.NoError(t, err)
	return calls, files
}

// TestWriteOfALongChunk checks that the log of a chunk is written at once, but the log before a message is not kept
// back by what follows, and files keep their limit.
func TestWriteOfALongChunk(t *testing.T) {
	large := Limits{MaxSize: 16 << 20, Keep: 8, Tail: 10}
	calls, _ := fewestWrites(t, large, nil, nil)
	require.Equal(t, 1, calls)
	calls, _ = fewestWrites(t, large, nil, NewFollower(false))
	require.Equal(t, 4, calls)
	m := &everyThousandth{}
	calls, _ = fewestWrites(t, large, m, nil)
	require.Equal(t, 4, calls)
	require.Equal(t, 5*5, m.sent)
	calls, files := fewestWrites(t, Limits{MaxSize: 128 << 10, Keep: 8, Tail: 10}, nil, nil)
	require.Equal(t, 4, calls)
	for _, name := range files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(128<<10))
	}
}

// everyThousandth takes every thousandth line as a message.
type everyThousandth struct{ lines, sent int }

func (e *everyThousandth) Take(line.Line, time.Time) bool {
	e.lines++
	return e.lines%1000 == 0
}
func (e *everyThousandth) Spoke() bool    { return false }
func (e *everyThousandth) Send(time.Time) { e.sent++ }
func (e *everyThousandth) End(time.Time)  {}
