package handlers

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// The checks of delegated tasks at the end of a turn.

// handoverTurn holds the effects of a turn.
type handoverTurn struct {
	told     *wire.Delivered // the input, if it is one
	created  []*handover
	requests []*delegation.Request // of created
	forwards []*handover           // each must have a letter
	acts     []act                 // these too, if their agents can be told
	finals   []*handover
	ended    []*handover
	vain     []*handover // parts of tasks that ended without success
	reads    []string    // agents that read again
}

// An act is a message to the agent of a handover.
type act struct {
	of   *handover
	fact *taskActed // nil: sent again
	seq  int64
}

func (h *handovers) begin(message wire.Message) {
	h.turn = handoverTurn{}
	h.turn.told, _ = message.(*wire.Delivered)
}

// lookAtTurn checks all records and letters of a turn.
func (h *handovers) lookAtTurn(in *Input) {
	for i, e := range h.turn.created {
		h.lookAtCreated(in, e, h.turn.requests[i])
	}
	for _, e := range h.turn.finals {
		h.w.must(e.state.Response() == e.status && e.state.Final(), "%+v is said to have ended", e)
	}
	for _, e := range h.turn.ended {
		h.w.must(e.final != 0 && slices.Contains(h.turn.finals, e), "%+v has ended, and nobody is told", e)
	}
	for _, e := range h.turn.vain {
		h.w.must(e.state.Final(), "%+v is part of what has come to nothing", e)
	}
	h.w.must(len(h.turn.forwards) == 0, "%v are brought to nobody", h.turn.forwards)
	for _, a := range h.turn.acts {
		holder := h.w.state.agents.byID[a.of.holder]
		h.w.must(holder == nil || !holder.reachable() || holder.run != a.of.out || a.of.state.Final(), "%+v of %+v is said to nobody", a, a.of)
	}
	for _, name := range h.turn.reads {
		h.lookAtReader(name)
	}
	h.lookAtProgress()
	h.lookAtOwed()
}

// lookAtCreated checks that a delegated task names the task that it is part of, and inherits the
// context of that task.
func (h *handovers) lookAtCreated(in *Input, e *handover, q *delegation.Request) {
	said := in.Message.(*wire.Request).Body.(*delegation.Request)
	h.asked[e.id] = said
	source := q.Routing.Source
	h.w.must(q.ID == said.ID && q.Type == said.Type && string(q.Payload) == string(said.Payload) && q.Context.Priority == said.Context.Priority,
		"%s is asked, and %s is kept", said.Document, q.Document)
	h.w.must(source != "" && (in.From.Kind != Agent || source == in.From.Name) && (in.From.Kind == Agent || h.w.state.agents.byID[source] == nil), "%v is %s", in.From, source)
	h.w.must(e.chain[len(e.chain)-1] == source, "%s has it last, and not %s", e.chain, source)
	seen := make(map[string]bool)
	for _, name := range e.chain {
		h.w.must(!seen[name] || h.w.state.agents.byID[name] == nil, "%s has had it in hand twice: %v of %s", name, e.chain, said.Document)
		seen[name] = true
	}
	for _, name := range said.Routing.Chain {
		h.w.must(seen[name], "%s has had it in hand, says %s, and not %v", name, said.Document, e.chain)
	}
	k := h.w.state.tasks.byID[q.Context.ParentTaskID]
	may := k != nil && (in.From.Kind != Agent || k.view.AssignedTo == in.From.Name || k.view.SubmittedBy == in.From.String())
	h.w.must(said.Context.ParentTaskID == "" && (may || q.Context.ParentTaskID == "") || said.Context.ParentTaskID == q.Context.ParentTaskID,
		"%s is part of %s", said.Document, q.Context.ParentTaskID)
	h.w.must(q.Observability.TraceID != "" && q.Observability.SpanID != "", "%s has no trace", q.Document)
	o, is := said.Observability, q.Observability
	h.w.must((o.TraceID == "" || o.TraceID == is.TraceID) && (o.SpanID == "" || o.SpanID == is.SpanID) && (o.Baggage == nil || string(o.Baggage) == string(is.Baggage)),
		"%s is asked, and %s is kept", said.Document, q.Document)
	if !may || k.trace() == nil {
		return
	}
	up := k.trace()
	h.w.must(o.TraceID != "" || is.TraceID == up.TraceID, "%s is part of the trace %s", q.Document, up.TraceID)
	h.w.must(o.Baggage != nil || o.TraceID != "" && o.TraceID != up.TraceID || string(is.Baggage) == string(up.Baggage), "%s has lost %s", q.Document, up.Baggage)
	if d := k.delegation(); d != nil && d.chain == nil {
		return // ended long ago
	}
	for _, name := range h.chainOf(q.Context.ParentTaskID) {
		h.w.must(seen[name], "%s has had it in hand, and not %v", name, e.chain)
	}
	h.w.saw["handed on: in a trace"]++
}

func (h *handovers) chainOf(id string) []string {
	if e := h.byID[id]; e != nil {
		return e.chain
	}
	return nil
}

// lookAtReader checks that an agent that reads again receives all lost inputs.
func (h *handovers) lookAtReader(name string) {
	a := h.w.state.agents.byID[name]
	for _, e := range h.open {
		if e.holder != name || e.out != a.run || !a.listens() {
			continue
		}
		for _, i := range e.inputs {
			h.w.must(!i.lost, "%s reads again, and is not brought input %d to %+v", name, i.seq, e)
		}
	}
}

// lookAtProgress checks that no task waits for an agent that reads and has room, or for one that
// does not come.
func (h *handovers) lookAtProgress() {
	if h.w.state.stopping {
		return
	}
	for _, e := range h.open {
		k := h.w.state.tasks.byID[e.id]
		a := h.w.state.agents.byID[e.holder]
		h.w.must(e.state != wire.TaskPending || !e.next.IsZero(), "%+v is nobody's", e)
		if a == nil || e.out != "" || h.w.state.tasks.graph.Open(k.node) > 0 {
			continue
		}
		if e.state == wire.TaskAssigned && a.state == up && !a.stale && a.listens() {
			h.w.must(h.used(a) >= a.Capacity, "%+v waits, and %s has room", e, a.ID)
		}
	}
}

// lookAtOwed checks that a source that reads receives the latest response.
func (h *handovers) lookAtOwed() {
	h.owing = slices.DeleteFunc(h.owing, func(e *handover) bool { return !e.owed })
	for _, e := range h.owing {
		a := h.w.state.agents.byID[agentOf(e.source)]
		if a == nil || a.remote != nil || !a.reachable() || a.deaf {
			continue
		}
		h.w.must(e.sent == a.run || e.failed == a.run, "%+v is not brought to %s: %+v", e, a.run, *h.w.state.tasks.byID[e.id].delegation())
	}
}

// look compares the handovers with the State.
func (h *handovers) look() {
	for _, e := range h.order {
		k := h.w.state.tasks.byID[e.id]
		d := k.delegation()
		h.w.must(d != nil && k.view.State == e.state && d.owed == e.owed && (e.state.Final() || d.out == e.out), "%+v is %+v", e, d)
		h.w.must(e.state == wire.TaskPending || e.state.Final() || k.view.AssignedTo == e.holder, "%+v is %+v", e, k.view)
		waits := 0
		if k.more != nil {
			waits = len(k.more.handedOn)
		}
		h.w.must(len(h.parts[e.id]) == waits, "%+v waits for %d", e, waits)
	}
}
