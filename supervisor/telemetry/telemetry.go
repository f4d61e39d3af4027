package telemetry

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Team is the subject of a Telemetry.
type Team interface {
	// Status returns the present state, as far as it is quickly available.
	Status(ctx context.Context) (control.Status, error)
	// ResumePoint returns the number after which a reader of the record sees every task that is
	// open or has ended after since. It also returns the open sessions.
	ResumePoint(ctx context.Context, since int64) (behind int64, sessions []string, err error)
	// Records returns the facts after a number, in order.
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
}

// Options configure a Telemetry.
type Options struct {
	Version    string
	Operations []string // operations with names that may be labels
	Team       Team
	Env        func(name string) string
	Warn       func(message string, args ...any)
}

// A Telemetry exports metrics and spans. Its methods may be called concurrently.
type Telemetry struct {
	options  Options
	registry *prometheus.Registry
	counters counters
	usage    usage
	tracing  *tracing // nil if spans are disabled

	// The fields below are for spans, and for metrics about open work. Their goroutine starts
	// when it is first needed.
	began   sync.Once
	follows atomic.Bool
	queue   chan item
	held    atomic.Int64  // bytes in the queue
	missed  chan struct{} // signals that a batch did not fit
	work    openWork
	enough  chan struct{} // closed when no more items will be queued
	ended   chan struct{}
	giveUp  context.CancelFunc
}

// New returns a Telemetry. If the environment is invalid, New logs a warning and disables
// spans.
func New(o Options) *Telemetry {
	t := &Telemetry{
		options: o, registry: prometheus.NewRegistry(), queue: make(chan item, maxItems), missed: make(chan struct{}, 1),
		enough: make(chan struct{}), ended: make(chan struct{}), giveUp: func() {},
	}
	t.counters.register(t.registry, o)
	t.usage.agents = make(map[string]*agentUsage)
	t.work.reset()
	t.work.wake = t.look
	where, err := readDestination(o.Env)
	if err == nil && where != nil {
		t.tracing, err = newTracing(where, o)
	}
	if err != nil {
		o.Warn("no spans are sent: the environment has an unsupported setting", "error", err)
	}
	if t.tracing != nil {
		t.tracing.register(t.registry)
		t.work.spans = t.tracing
	}
	return t
}

// Tracing reports whether spans are enabled.
func (t *Telemetry) Tracing() bool { return t.tracing != nil }

// Begin starts the spans. Facts after number last are of this run of the orchestrator. It has no effect if spans are
// disabled.
func (t *Telemetry) Begin(last int64) {
	if t.tracing != nil {
		t.work.past = last
		t.follow()
	}
}

// flushing is how long Close may take.
const flushing = 3 * time.Second

// Close sends the remaining spans, for a limited time. No method may be called after it.
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
