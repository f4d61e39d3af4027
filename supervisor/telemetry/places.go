package telemetry

import "orchestrator/wire"

// A place identifies a span: its trace, its id, and the id of its parent.
type place struct {
	trace, span string
	parent      string // "" for the first span of its trace
	sampled     bool   // the trace is sent
}

// placeOf returns the place of a new task.
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

// parentOf returns the place of a parent task. A parent that ended too long ago is not known;
// it is treated as the first of its trace.
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

// A lineage stores the places of tasks that ended recently and may still get children.
type lineage struct {
	places map[string]place
	order  []string // a ring
	next   int
}

// remembered is the number of places that a lineage stores.
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
