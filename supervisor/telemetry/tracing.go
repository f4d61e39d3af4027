package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"orchestrator/wire"
)

// A tracing creates spans. A nil tracing creates none.
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	gate     *gate
	sender   *sender
}

type span = trace.Span

// newTracing returns a tracing for a destination. It sends no spans yet.
func newTracing(where *destination, o Options) (*tracing, error) {
	what, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", namespace), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("reading what this service is: %w", err)
	}
	s := newSender(where)
	exporter, err := otlptrace.New(context.Background(), s)
	if err != nil {
		return nil, fmt.Errorf("making the way to the collector: %w", err)
	}
	g := newGate(exporter, where, o.Warn)
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(what), sdktrace.WithIDGenerator(given{}), sdktrace.WithSpanProcessor(g))
	return &tracing{provider: p, tracer: p.Tracer(namespace, trace.WithInstrumentationVersion(o.Version)), gate: g, sender: s}, nil
}

func (t *tracing) register(r *prometheus.Registry) { r.MustRegister(t.gate.spans) }

// close sends the ended spans, for at most the given time.
func (t *tracing) close(most time.Duration) {
	t.sender.hurry()
	ctx, enough := context.WithTimeout(context.Background(), most)
	defer enough()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.gate.complain("the last spans were not sent in time", "error", err)
	}
	t.sender.giveUp()
}

// drop counts spans that did not fit.
func (t *tracing) drop(n int) {
	if t != nil {
		t.gate.drop(n)
	}
}

// full reports whether a span that begins now would probably be dropped.
func (t *tracing) full() bool { return t != nil && t.gate.full() }

// complain logs the dropped spans.
func (t *tracing) complain() {
	if t != nil {
		t.gate.complainOfDrops()
	}
}

// given generates the ids of a span from the place in its context.
type given struct{}

type givenKey struct{}

// NewIDs implements sdktrace.IDGenerator.
func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	p, _ := ctx.Value(givenKey{}).(place)
	return p.ids()
}

// NewSpanID implements sdktrace.IDGenerator.
func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	p, _ := ctx.Value(givenKey{}).(place)
	_, id := p.ids()
	return id
}

func (p place) ids() (trace.TraceID, trace.SpanID) {
	of, _ := trace.TraceIDFromHex(p.trace) // well-formed: ids of other programs were checked
	id, _ := trace.SpanIDFromHex(p.span)
	return of, id
}

// start begins a span at its place.
func (t *tracing) start(p place, name string, at time.Time, attributes ...attribute.KeyValue) span {
	ctx := context.WithValue(context.Background(), givenKey{}, p)
	if p.parent != "" {
		of, _ := p.ids()
		above, _ := trace.SpanIDFromHex(p.parent)
		flags := trace.TraceFlags(0).WithSampled(p.sampled)
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: of, SpanID: above, TraceFlags: flags, Remote: true,
		}))
	}
	_, started := t.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithAttributes(attributes...))
	return started
}

// samples reports whether a trace that begins here is sent. The result is the sampling decision about its first span,
// and the same after a restart.
func (t *tracing) samples(of string) bool {
	return t.start(place{trace: of, span: spanOf(of)}, "", time.Time{}).SpanContext().IsSampled()
}

// begin begins the span of a task.
func (t *tracing) begin(k *task) {
	if t == nil {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("task.id", k.id), attribute.String("task.name", k.name), attribute.String("task.type", k.kind),
		attribute.String("task.submitted_by", k.by),
	}
	if k.session != "" {
		attributes = append(attributes, attribute.String("task.session", k.session))
	}
	k.span = t.start(k.place, strings.TrimSpace("task "+cut(k.kind, maxName)), k.created, attributes...)
}

// end ends the span of a task.
func (t *tracing) end(k *task, agent string, state wire.TaskState, at time.Time, why string) {
	k.span.SetAttributes(attribute.String("task.state", string(state)))
	k.span.SetAttributes(k.spent.attributes()...)
	if agent != "" {
		k.span.SetAttributes(attribute.String("task.agent", agent))
	}
	finish(k.span, at, why)
}

// hop begins the span of a task's assignment, if the task is assigned.
func (t *tracing) hop(k *task) {
	if t == nil || k.hop == nil {
		return
	}
	h := k.hop
	h.place = place{
		trace: k.place.trace, parent: k.place.span, sampled: k.place.sampled, span: spanOf(k.id + " " + strconv.Itoa(h.attempt)),
	}
	h.span = t.start(h.place, "assignment", h.began,
		attribute.String("task.id", k.id), attribute.Int("task.attempt", h.attempt), attribute.Int("task.retries", h.retries),
		attribute.String("agent.name", h.agent), attribute.String("agent.run", h.run))
	for _, at := range h.forwarded {
		t.forwarded(h, at)
	}
}

// forwarded adds the delivery time of an assignment to its span.
func (t *tracing) forwarded(h *hop, at time.Time) {
	if t != nil {
		h.span.SetAttributes(attribute.String("agent.run", h.run))
		h.span.AddEvent("forwarded", trace.WithTimestamp(at))
	}
}

// endHop ends the span of an assignment. why is "" if the work is done.
func (t *tracing) endHop(h *hop, at time.Time, why string) {
	if t != nil {
		finish(h.span, at, why)
	}
}

// batch creates the complete span of a batch.
func (t *tracing) batch(b *batch) {
	if t == nil {
		return
	}
	what := "batch " + strconv.FormatInt(b.first, 10)
	recorded := t.start(place{trace: traceOf(what), span: spanOf(what)}, "record", b.began,
		attribute.Int("record.facts", b.facts), attribute.Int("record.bytes", b.bytes),
		attribute.Int64("record.first", b.first), attribute.Int64("record.last", b.last))
	finish(recorded, b.began.Add(b.took), "")
}

// finish ends a span, with an error if there is a reason.
func finish(of span, at time.Time, why string) {
	if why != "" {
		of.SetStatus(codes.Error, cut(why, maxReason))
	}
	of.End(trace.WithTimestamp(at))
}

const (
	maxName   = 64
	maxReason = 256
)

// cut returns the beginning of a text without splitting a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:cmp.Or(most, 1)], "") + "…"
}

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

// full reports whether another span would not fit.
func (g *gate) full() bool { return g.waiting.Load() >= g.most }

// drop counts spans that did not fit. It does not log them, because its callers must not wait.
func (g *gate) drop(n int) {
	g.dropped.Add(float64(n))
	g.quiet.Add(int64(n))
}

// complainOfDrops logs the spans that drop has counted.
func (g *gate) complainOfDrops() {
	if g.quiet.Load() > 0 {
		g.lost("more spans are waiting than can be sent")
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
