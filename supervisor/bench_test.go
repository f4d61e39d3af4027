package supervisor

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/line"
)

// BenchmarkHear measures a chunk of 327 lines of 200 bytes, written to the file and the tail.
func BenchmarkHear(b *testing.B) {
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), 199), '\n'), 327)
	v := output.NewAgent("a", output.Limits{Dir: b.TempDir(), MaxSize: 16 << 20, Keep: 2, Tail: 200}, func(wire.Event) {})
	s := v.Begin("run", 16<<20)
	defer s.End()
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		s.Write(child.Stdout, chunk)
	}
}

// BenchmarkFlood measures a real child at full speed, through its pipe to the file and the tail.
// The floor reads and splits the same bytes.
func BenchmarkFlood(b *testing.B) {
	h, err := child.NewHost(child.Options{Home: b.TempDir()})
	require.NoError(b, err)
	defer h.Close()
	flood := func(b *testing.B, hear func(child.Stream, []byte)) {
		ended := make(chan struct{})
		_, err := h.Start(child.Spec{
			Command: []string{"sh", "-c", "yes " + strings.Repeat("x", 199) + " | head -c 400000000"},
			Dir:     "/", Env: os.Environ(), Run: uuid.NewString(),
			Output: hear, Exited: func(child.Exit) {}, Ended: func(child.Ending) { close(ended) },
		})
		require.NoError(b, err)
		<-ended
		b.SetBytes(400_000_000)
	}
	b.Run("split", func(b *testing.B) {
		for b.Loop() {
			lines := line.NewSplitter(16 << 20)
			flood(b, func(_ child.Stream, chunk []byte) {
				lines.Feed(chunk)
				for _, ok := lines.Next(); ok; _, ok = lines.Next() {
				}
			})
		}
	})
	b.Run("hear", func(b *testing.B) {
		v := output.NewAgent("a", output.Limits{Dir: b.TempDir(), MaxSize: 16 << 20, Keep: 2, Tail: 200}, func(wire.Event) {})
		for b.Loop() {
			s := v.Begin("run", 16<<20)
			flood(b, s.Write)
			s.End()
		}
	})
}
