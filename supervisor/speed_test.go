package supervisor

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// nothing is a stream that accepts everything at once.
type nothing struct{}

func (nothing) Write(text []byte) (int, error)    { return len(text), nil }
func (nothing) TryWrite(text []byte) (int, error) { return len(text), nil }
func (nothing) SetWriteDeadline(time.Time) error  { return nil }

// mouth is an agent without a process, whose output the benchmark makes.
type mouth struct {
	*Supervisor
	speech *output.Run
	mail   *stdin.Mailbox
}

func newMouth(b *testing.B, record dispatch.Record) *mouth {
	s := New(Options{
		Name: "bench", StateDir: b.TempDir(), Log: hclog.NewNullLogger(), Record: record,
		Protocol: dispatch.Protocol{Rate: 1 << 30, Burst: 1 << 30},
	}, []Agent{{Name: "a", Output: output.Limits{Dir: b.TempDir(), MaxSize: 1 << 20, Keep: 1, Tail: 10}}})
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
	b.ReportAllocs()
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
	o := newMouth(b, nil)
	var chunk []byte
	for i := range perChunk {
		chunk = fmt.Appendf(chunk, `{"type":"request:query-tasks","id":"req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a21%02d","timestamp":"2026-11-21T10:00:00Z","payload":{"status":"queued"}}`+"\n", i)
	}
	for b.Loop() {
		o.speech.Write(child.Stdout, chunk)
	}
	o.end(b)
}

// BenchmarkSubmits measures submitted tasks, which are recorded on disk before the replies
// leave.
func BenchmarkSubmits(b *testing.B) {
	log, err := eventlog.Open(b.Context(), eventlog.Options{Path: filepath.Join(b.TempDir(), "events.db"), Durable: true})
	require.NoError(b, err)
	o := newMouth(b, log)
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
