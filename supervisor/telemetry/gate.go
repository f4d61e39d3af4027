package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// gate is where spans leave. It lets so many wait as the sender behind it has room
// for, and counts what becomes of them. The sender would drop what is too much as
// well, but does not tell how much that is.
type gate struct {
	sdktrace.SpanProcessor // the batches
	to                     sdktrace.SpanExporter
	waiting                atomic.Int64
	most                   int64
	spans                  *prometheus.CounterVec
	sent, dropped, failed  prometheus.Counter
	complain               func(message string, args ...any)

	said  atomic.Int64 // when something was complained about
	quiet atomic.Int64 // spans that were lost since, not yet told
}

func newGate(to sdktrace.SpanExporter, where *destination, complain func(string, ...any)) *gate {
	g := &gate{to: to, most: int64(where.queue), complain: complain, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "spans_total", Help: "Spans that have ended, by what became of them: sent, dropped because too many waited, or failed to be sent.",
	}, []string{"outcome"})}
	g.sent, g.dropped, g.failed = g.spans.WithLabelValues("sent"), g.spans.WithLabelValues("dropped"), g.spans.WithLabelValues("failed")
	g.SpanProcessor = sdktrace.NewBatchSpanProcessor((*outlet)(g))
	return g
}

// OnEnd implements sdktrace.SpanProcessor.
func (g *gate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.waiting.Add(1) > g.most {
		g.waiting.Add(-1)
		g.drop(1)
		g.complainOfDrops()
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// full reports whether there is no room just now.
func (g *gate) full() bool { return g.waiting.Load() >= g.most }

// drop counts spans for which there was no room. It is for those who must not wait,
// and so it does not complain: who writes to a log may have to.
func (g *gate) drop(n int) {
	g.dropped.Add(float64(n))
	g.quiet.Add(int64(n))
}

// complainOfDrops does so for them.
func (g *gate) complainOfDrops() {
	if g.quiet.Load() > 0 {
		g.lost("there are more than can be sent")
	}
}

// aMinute is how long nothing is said again.
const aMinute = time.Minute

// lost complains of spans that will not be seen, now and then.
func (g *gate) lost(why string) {
	now, said := time.Now().UnixNano(), g.said.Load()
	if said != 0 && now-said < int64(aMinute) || !g.said.CompareAndSwap(said, now) {
		return
	}
	g.complain("spans are lost", "count", g.quiet.Swap(0), "why", why)
}

func (g *gate) warn(message string, args ...any) { g.complain(message, args...) }

// outlet is the other side of a gate.
type outlet gate

// ExportSpans implements sdktrace.SpanExporter. What goes wrong is said here, and
// not to the global handler of errors.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	g := (*gate)(o)
	err := g.to.ExportSpans(ctx, spans)
	g.waiting.Add(-int64(len(spans)))
	if err != nil {
		g.failed.Add(float64(len(spans)))
		g.quiet.Add(int64(len(spans)))
		g.lost(err.Error())
		return nil
	}
	g.sent.Add(float64(len(spans)))
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (o *outlet) Shutdown(ctx context.Context) error { return o.to.Shutdown(ctx) }
