package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// trace returns the position of a task in a trace, or nil if it is unknown.
func (t *task) trace() *delegation.Trace {
	if t.more == nil {
		return nil
	}
	return t.more.trace
}

// traceBelow returns the trace of a new task. If that is the trace of the parent task, missing
// members come from there. above is the given span, or "" if that is the span of the parent
// itself.
func (td taskDecision) traceBelow(parent *task, said delegation.Trace) (carried delegation.Trace, above string) {
	carried = said
	if parent == nil || parent.trace() == nil {
		return carried, carried.SpanID
	}
	up := parent.trace()
	if carried.TraceID != "" && carried.TraceID != up.TraceID {
		return carried, carried.SpanID // another trace
	}
	carried.TraceID = up.TraceID
	if carried.SpanID == "" {
		carried.SpanID = up.SpanID
	}
	if carried.Baggage == nil {
		carried.Baggage = up.Baggage
	}
	if carried.SpanID != up.SpanID {
		above = carried.SpanID
	}
	return carried, above
}

// traceIDOf returns the trace id of a task without a given trace. It is derived from the first
// task that leads to this one.
func (t *tasks) traceIDOf(parent *task, id string) string {
	for seen := 0; parent != nil && seen < len(t.list); seen++ {
		if up := parent.trace(); up != nil && up.TraceID != "" {
			return up.TraceID
		}
		id = parent.view.ID
		if parent.view.Details == nil {
			break
		}
		parent = t.byID[parent.view.Details.ParentTaskID]
	}
	return wire.TraceIDOf([]byte(id))
}

// traced sets the position of a new task in a trace. It does nothing if neither the request nor
// the parent has one.
func (td taskDecision) traced(f *taskCreated, said *delegation.Trace) {
	parent := td.state.tasks.byID[f.Parent]
	if said == nil && (parent == nil || parent.trace() == nil) {
		return
	}
	if said == nil {
		said = new(delegation.Trace)
	}
	carried, above := td.traceBelow(parent, *said)
	f.Observability, f.TraceID, f.SpanID = &carried, carried.TraceID, above
}
