package handlers

import "orchestrator/wire"

// trace is where a task stands in a trace, or nil: then it is not known.
func (k *task) trace() *wire.TaskTrace {
	if k.more == nil {
		return nil
	}
	return k.more.trace
}

// traceBelow is the trace of a new task: as it is said, and what is not said as the
// task has it of which it is a part. Nothing that is carried is lost on the way. Above
// is the span that it is said to be below, "" where that is the task's own: one that
// hands on the trace that it was given means itself.
func (t *decision) traceBelow(parent *task, said wire.TaskTrace) (carried wire.TaskTrace, above string) {
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

// traceIDOf is the id of a trace that no caller has begun: that of the first of the
// tasks that lead to this one.
func (t *decision) traceIDOf(parent *task, id string) string {
	for seen := 0; parent != nil && seen < len(t.state.tasks.list); seen++ {
		if up := parent.trace(); up != nil && up.TraceID != "" {
			return up.TraceID
		}
		id = parent.view.ID
		if parent.view.Details == nil {
			break
		}
		parent = t.state.tasks.byID[parent.view.Details.ParentTaskID]
	}
	return wire.TraceIDOf([]byte(id))
}

// traced fills in where a new task stands in a trace. One that is part of nothing
// traced, and says nothing itself, needs no words.
func (t *decision) traced(f *taskCreated, said *wire.TaskTrace) {
	parent := t.state.tasks.byID[f.Parent]
	if said == nil && (parent == nil || parent.trace() == nil) {
		return
	}
	if said == nil {
		said = new(wire.TaskTrace)
	}
	carried, above := t.traceBelow(parent, *said)
	f.Observability, f.TraceID, f.SpanID = &carried, carried.TraceID, above
}
