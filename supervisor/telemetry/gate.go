package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A gate limits the number of waiting spans to the room in the span processor behind it, and
// counts sent, dropped and failed spans. The processor itself would drop spans without
// reporting their number.
type gate struct {
	sdktrace.SpanProcessor // sends spans in batches
	to                     sdktrace.SpanExporter
	waiting                atomic.Int64
	most                   int64
	spans                  *prometheus.CounterVec
	sent, dropped, failed  prometheus.Counter
	complain               func(message string, args ...any)

	said  atomic.Int64 // time of the last warning
	quiet atomic.Int64 // spans lost since then
}

func newGate(to sdktrace.SpanExporter, where *destination, complain func(string, ...any)) *gate {
	g := &gate{to: to, most: int64(where.queue), complain: complain, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "spans_total", Help: "Ended spans, by outcome: sent, dropped because too many waited, or failed to be sent.",
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

// full reports whether there is no room for another span.
func (g *gate) full() bool { return g.waiting.Load() >= g.most }

// drop counts spans that did not fit. It does not log them, because its callers must not wait.
func (g *gate) drop(n int) {
	g.dropped.Add(float64(n))
	g.quiet.Add(int64(n))
}

// complainOfDrops logs the spans that drop has counted.
func (g *gate) complainOfDrops() {
	if g.quiet.Load() > 0 {
		g.lost("there are more than can be sent")
	}
}

// aMinute is the least time between two warnings.
const aMinute = time.Minute

// lost logs lost spans, at most once a minute.
func (g *gate) lost(why string) {
	now, said := time.Now().UnixNano(), g.said.Load()
	if said != 0 && now-said < int64(aMinute) || !g.said.CompareAndSwap(said, now) {
		return
	}
	g.complain("spans are lost", "count", g.quiet.Swap(0), "why", why)
}

func (g *gate) warn(message string, args ...any) { g.complain(message, args...) }

// An outlet is the exporter behind a gate.
type outlet gate

// ExportSpans implements sdktrace.SpanExporter. It logs errors itself and does not pass them to
// the global error handler.
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
