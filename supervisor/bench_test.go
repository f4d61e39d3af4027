package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
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
		f := flooded{hear: hear, ended: make(chan struct{})}
		_, err := h.Start(child.Spec{
			Command: []string{"sh", "-c", "yes " + strings.Repeat("x", 199) + " | head -c 400000000"},
			Dir:     "/", Env: os.Environ(), Run: uuid.NewString(),
			Listener: f,
		})
		require.NoError(b, err)
		<-f.ended
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

// A flooded listens to a child that prints at full speed.
type flooded struct {
	child.Nobody
	hear  func(child.Stream, []byte)
	ended chan struct{}
}

func (f flooded) Output(stream child.Stream, chunk []byte) { f.hear(stream, chunk) }
func (f flooded) Ended(child.Ending)                       { close(f.ended) }

// nothing is a stream that accepts every write at once.
type nothing struct{}

func (nothing) Write(text []byte) (int, error)    { return len(text), nil }
func (nothing) TryWrite(text []byte) (int, error) { return len(text), nil }
func (nothing) SetWriteDeadline(time.Time) error  { return nil }

// mouth is an agent without a process. The benchmark makes its output.
type mouth struct {
	*Supervisor
	speech *output.Run
	mail   *stdin.Mailbox
}

func newMouth(b testing.TB, record dispatch.Record) *mouth {
	s := New(Options{
		Name: "bench", StateDir: b.TempDir(), Log: hclog.NewNullLogger(), Record: record,
		Protocol: dispatch.Protocol{Rate: 1 << 30, Burst: 1 << 30},
	}, []settings.Agent{{Name: "a", Output: output.Limits{Dir: b.TempDir(), MaxSize: 1 << 20, Keep: 1, Tail: 10}}})
	if record != nil {
		go s.dispatcher.Run()
	}
	s.life.enlist()
	a := s.life.agents["a"]
	s.life.event(a, wire.Event{Kind: events.AgentStarted, Run: "r", Text: "bench"})
	o := &mouth{
		Supervisor: s, speech: a.voice.Begin("r", 1<<20),
		mail: stdin.New(stdin.Options{Limits: stdin.Limits{Messages: 1024, Bytes: 32 << 20}, To: nothing{}, Shut: func() {}}),
	}
	c := s.dispatcher.Channel("a", "r", func(string, string, int64) {})
	c.Open(o.mail)
	o.speech.Messages = c
	return o
}

const perChunk = 64

// end reports the cost of one request, and requires that none was refused.
func (m *mouth) end(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/perChunk, "ns/request")
	_, _, refused := m.mail.Waiting()
	require.Zero(b, refused)
	m.dispatcher.Close()
}

// BenchmarkAsks measures a chunk of 64 requests in one agent's goroutine: split, parsed,
// decided, answered in one write, and noted.
func BenchmarkAsks(b *testing.B) {
	for name, differ := range map[string]int{"same": 0, "different": 1} {
		b.Run(name, func(b *testing.B) {
			o := newMouth(b, nil)
			chunk := questions(differ)
			b.ReportAllocs()
			for b.Loop() {
				o.speech.Write(child.Stdout, chunk)
			}
			o.end(b)
		})
	}
}

// questions returns a chunk of requests that differ in their payloads, if differ is 1, or only in their ids.
func questions(differ int) (chunk []byte) {
	for i := range perChunk {
		chunk = fmt.Appendf(chunk, `{"type":"request:query-tasks","id":"req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a21%02d","timestamp":"2026-11-21T10:00:00Z","payload":{"status":"queued","limit":%d}}`+"\n",
			i, 10+i*differ)
	}
	return chunk
}

// TestAllocationsOfAsks checks how often a request that only reads allocates, from its line to its answer and its
// line in the audit: not at all if the answer is kept, but for some of each chunk, and otherwise for its payload and
// the list.
func TestAllocationsOfAsks(t *testing.T) {
	for name, test := range map[string]struct {
		differ int
		most   float64 // for each request
	}{"same": {0, 0.2}, "different": {1, 2.3}} {
		t.Run(name, func(t *testing.T) {
			o := newMouth(t, nil)
			chunk := questions(test.differ)
			each := testing.AllocsPerRun(50, func() { o.speech.Write(child.Stdout, chunk) }) / perChunk
			require.LessOrEqual(t, each, test.most)
			o.dispatcher.Close()
		})
	}
}

// BenchmarkSubmits measures submitted tasks, which are recorded on disk before the replies
// leave.
func BenchmarkSubmits(b *testing.B) {
	log, err := eventlog.Open(b.Context(), eventlog.Options{Path: filepath.Join(b.TempDir(), "events.db"), Durable: true})
	require.NoError(b, err)
	o := newMouth(b, log)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		var chunk []byte
		for range perChunk {
			n++
			chunk = fmt.Appendf(chunk, `{"type":"request:submit-task","id":"req-%d","timestamp":"2026-11-21T10:00:00Z","payload":{"type":"t","name":"a task","payload":{"n":%d}}}`+"\n", n, n)
		}
		o.speech.Write(child.Stdout, chunk)
		o.dispatcher.Settle()
	}
	o.end(b)
	require.NoError(b, log.Close())
}
