package output

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
)

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
