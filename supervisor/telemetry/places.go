package telemetry

import "orchestrator/wire"

// place is where a span is: its trace, its own id, and that of the span above it.
type place struct {
	trace, span string
	parent      string // "": it is the first of its trace here
	sampled     bool   // the trace is one of those that are sent
}

// placeOf is the place of a task that is created.
func (w *openWork) placeOf(f *fact) place {
	p := place{span: spanOf(f.Task)}
	above, known := w.parentOf(f.Parent)
	switch {
	case wire.IsTraceID(f.TraceID) && wire.IsSpanID(f.SpanID):
		p.trace, p.parent, p.sampled = f.TraceID, f.SpanID, true // the sender has a span
	case wire.IsTraceID(f.TraceID) && f.TraceID != above.trace:
		p.trace, p.sampled = f.TraceID, w.spans.samples(f.TraceID)
	case known:
		p.trace, p.parent, p.sampled = above.trace, above.span, above.sampled
	default:
		p.trace = traceOf(f.Task)
		p.sampled = w.spans.samples(p.trace)
	}
	return p
}

// parentOf is the place of the task that another one comes from. One that ended so
// long ago that it is forgotten is taken for the first of its trace.
func (w *openWork) parentOf(id string) (p place, known bool) {
	if id == "" {
		return place{}, false
	}
	if k := w.tasks[id]; k != nil {
		return k.place, true
	}
	if p, known = w.gone.places[id]; known {
		return p, true
	}
	trace := traceOf(id)
	return place{trace: trace, span: spanOf(id), sampled: w.spans.samples(trace)}, true
}

func traceOf(what string) string { return wire.TraceIDOf([]byte(what)) }
func spanOf(what string) string  { return wire.SpanIDOf([]byte(what)) }

// lineage remembers the places of tasks that ended not long ago: others may come
// from them.
type lineage struct {
	places map[string]place
	order  []string // a ring
	next   int
}

// remembered is how many they are.
const remembered = 10_000

func (l *lineage) add(id string, p place) {
	if l.places == nil {
		l.places = make(map[string]place)
	}
	if len(l.order) < remembered {
		l.order = append(l.order, id)
	} else {
		delete(l.places, l.order[l.next])
		l.order[l.next] = id
		l.next = (l.next + 1) % remembered
	}
	l.places[id] = p
}
