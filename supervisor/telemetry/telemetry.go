package telemetry

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orchestrator/wire"
)

// Options of Telemetry.
type Options struct {
	Version    string
	Operations []string // whose names may stand in a label
	// Status is how everything is just now, as far as that is quickly said.
	Status func(context.Context) (wire.Status, error)
	// Hindsight is behind which fact of the record a reader that begins with it knows
	// every task that is open, or has ended behind number since, and which sessions
	// are open.
	Hindsight func(ctx context.Context, since int64) (behind int64, sessions []string, err error)
	// Records are the facts behind a number, in order.
	Records func(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
	Env     func(name string) string
	Warn    func(message string, args ...any)
}

// Telemetry sees what happens and tells of it. Its methods may be called by several
// goroutines.
type Telemetry struct {
	options  Options
	registry *prometheus.Registry
	counters counters
	tracing  *tracing // nil: spans are not wanted

	// What follows serves those who follow the record: spans, and the figures about
	// what waits. It begins when it is first needed.
	began   sync.Once
	follows atomic.Bool
	queue   chan item
	held    atomic.Int64  // bytes in the queue
	missed  chan struct{} // holds one when a batch has found no room
	work    openWork
	caught  chan struct{} // closed when the work is known
	enough  chan struct{} // closed when nothing more will come
	ended   chan struct{}
	giveUp  context.CancelFunc
}

// New makes a Telemetry. What is wrong with the environment is warned of, and there
// are no spans then.
func New(o Options) *Telemetry {
	t := &Telemetry{
		options: o, registry: prometheus.NewRegistry(), queue: make(chan item, mostItems), missed: make(chan struct{}, 1),
		caught: make(chan struct{}), enough: make(chan struct{}), ended: make(chan struct{}), giveUp: func() {},
	}
	t.counters.register(t.registry, o)
	t.work.reset()
	where, err := readDestination(o.Env)
	if err == nil && where != nil {
		t.tracing, err = newTracing(where, o)
	}
	if err != nil {
		o.Warn("no spans are sent: the environment asks for what cannot be done", "error", err)
	}
	if t.tracing != nil {
		t.tracing.register(t.registry)
		t.work.spans = t.tracing
	}
	return t
}

// Tracing reports whether there are spans.
func (t *Telemetry) Tracing() bool { return t.tracing != nil }

// Begin begins with the spans: what is recorded behind number last is of this life.
// It does nothing when there are none.
func (t *Telemetry) Begin(last int64) {
	if t.tracing != nil {
		t.work.past = last
		t.follow()
	}
}

// flushing is how long the end may take.
const flushing = 3 * time.Second

// Close sends what is there, for a moment. Nothing is told to a Telemetry any more.
func (t *Telemetry) Close() {
	t.began.Do(func() { close(t.ended) })
	close(t.enough)
	late := time.AfterFunc(flushing, t.giveUp)
	<-t.ended
	late.Stop()
	t.giveUp()
	if t.tracing != nil {
		t.tracing.close(flushing)
	}
}
