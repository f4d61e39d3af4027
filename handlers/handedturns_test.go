package handlers

import (
	"encoding/json"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
)

// The checks of delegated tasks at the end of a turn.

// handoverTurn holds the effects of a turn.
type handoverTurn struct {
	told     *wire.Delivered // the input, if it is one
	created  []*handover
	requests []*delegation.Request // of created
	forwards []*handover           // each must have a letter
	acts     []act                 // these too, if their agents can be reached
	finals   []*handover
	ended    []*handover
	vain     []*handover // parts of tasks that ended without success
	reads    []string    // agents that read again
}

// An act is a message to the agent of a handover.
type act struct {
	of   *handover
	fact *state.TaskActed // nil: sent again
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
		holder := h.w.state.Agents.ByID[a.of.holder]
		h.w.must(holder == nil || !holder.Reachable() || holder.Run != a.of.out || a.of.state.Final(), "%+v of %+v is said to nobody", a, a.of)
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
	h.w.must(source != "" && (in.From.Kind != Agent || source == in.From.Name) && (in.From.Kind == Agent || h.w.state.Agents.ByID[source] == nil), "%v is %s", in.From, source)
	h.w.must(e.chain[len(e.chain)-1] == source, "%s has it last, and not %s", e.chain, source)
	seen := make(map[string]bool)
	for _, name := range e.chain {
		h.w.must(!seen[name] || h.w.state.Agents.ByID[name] == nil, "%s has had it in hand twice: %v of %s", name, e.chain, said.Document)
		seen[name] = true
	}
	for _, name := range said.Routing.Chain {
		h.w.must(seen[name], "%s has had it in hand, says %s, and not %v", name, said.Document, e.chain)
	}
	k := h.w.task(q.Context.ParentTaskID)
	may := k != nil && (in.From.Kind != Agent || k.View.AssignedTo == in.From.Name || k.View.SubmittedBy == in.From.String())
	h.w.must(said.Context.ParentTaskID == "" && (may || q.Context.ParentTaskID == "") || said.Context.ParentTaskID == q.Context.ParentTaskID,
		"%s is part of %s", said.Document, q.Context.ParentTaskID)
	h.w.must(q.Observability.TraceID != "" && q.Observability.SpanID != "", "%s has no trace", q.Document)
	o, is := said.Observability, q.Observability
	h.w.must((o.TraceID == "" || o.TraceID == is.TraceID) && (o.SpanID == "" || o.SpanID == is.SpanID) && (o.Baggage == nil || string(o.Baggage) == string(is.Baggage)),
		"%s is asked, and %s is kept", said.Document, q.Document)
	if !may || k.Trace() == nil {
		return
	}
	up := k.Trace()
	h.w.must(o.TraceID != "" || is.TraceID == up.TraceID, "%s is part of the trace %s", q.Document, up.TraceID)
	h.w.must(o.Baggage != nil || o.TraceID != "" && o.TraceID != up.TraceID || string(is.Baggage) == string(up.Baggage), "%s has lost %s", q.Document, up.Baggage)
	if d := k.Delegation(); d != nil && d.Chain == nil {
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
	a := h.w.state.Agents.ByID[name]
	for _, e := range h.open {
		if e.holder != name || e.out != a.Run || !a.Listens() {
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
	if h.w.state.Stopping {
		return
	}
	for _, e := range h.open {
		k := h.w.task(e.id)
		a := h.w.state.Agents.ByID[e.holder]
		h.w.must(e.state != wire.TaskPending || !e.next.IsZero(), "%+v is nobody's", e)
		if a == nil || e.out != "" || h.w.state.Tasks.Graph.Open(k.Node) > 0 {
			continue
		}
		if e.state == wire.TaskAssigned && a.State == state.Up && !a.Stale && a.Listens() {
			h.w.must(h.used(a) >= a.Capacity, "%+v waits, and %s has room", e, a.ID)
		}
	}
}

// lookAtOwed checks that a source that reads receives the latest response.
func (h *handovers) lookAtOwed() {
	h.owing = slices.DeleteFunc(h.owing, func(e *handover) bool { return !e.owed })
	for _, e := range h.owing {
		a := h.w.state.Agents.ByID[state.AgentOf(e.source)]
		if a == nil || a.Remote != nil || !a.Reachable() || a.Unreachable {
			continue
		}
		h.w.must(e.sent == a.Run || e.failed == a.Run, "%+v is not brought to %s: %+v", e, a.Run, *h.w.task(e.id).Delegation())
	}
}

// look compares the handovers with the State.
func (h *handovers) look() {
	for _, e := range h.order {
		k := h.w.task(e.id)
		d := k.Delegation()
		h.w.must(d != nil && k.View.State == e.state && d.Owed == e.owed && (e.state.Final() || d.Out == e.out), "%+v is %+v", e, d)
		h.w.must(e.state == wire.TaskPending || e.state.Final() || k.View.AssignedTo == e.holder, "%+v is %+v", e, k.View)
		waits := 0
		if k.Extra != nil {
			waits = len(k.Extra.HandedOn)
		}
		h.w.must(len(h.parts[e.id]) == waits, "%+v waits for %d", e, waits)
	}
}

// lineOf returns the line of a letter.
func (h *handovers) lineOf(l *Letter) wire.Raw {
	if l.Kept == 0 {
		return l.Line
	}
	line, err := state.LineOf(h.words[l.Kept])
	if err != nil { // an input
		return nil
	}
	return line
}

// hearLine checks a line about a handover.
func (h *handovers) hearLine(in *Input, l *Letter) {
	h.w.voice.Write(h.lineOf(l))
	if l.Task == "" {
		if !h.hearPassing(l) {
			h.hearStanding(in, l)
		}
		return
	}
	v, a := h.w.bus.lives[l.To.Name], h.w.state.Agents.ByID[l.To.Name]
	h.w.must(l.To.Kind == Agent && v != nil && v.runs && v.run == l.To.Run && !v.remote && !a.Deaf, "%+v is for nobody", l)
	e := h.byID[l.Task]
	h.w.must(e != nil, "%+v is about nothing", l)
	h.lines = append(h.lines, *l)
	acts := slices.IndexFunc(h.turn.acts, func(o act) bool {
		return o.of == e && (o.seq == l.Said || l.Said == 0 && o.fact != nil && o.fact.Act == delegation.ActStatus)
	})
	switch {
	case l.Said != 0 && l.Said == e.latest:
		h.w.must(l.To.Name == state.AgentOf(e.source) && e.owed, "%+v is told to %v", e, l.To)
		e.sent, e.given = l.To.Run, time.Time{}
		h.w.saw["handed on: a response"]++
	case acts >= 0 && isAct(l, delegation.ActUpdate):
		h.w.must(l.To.Name == e.holder && l.To.Run == e.out, "what is said of %+v is told to %v", e, l.To)
		for _, i := range e.inputs {
			if i.seq == l.Said {
				h.w.must(!i.sent, "%d is told to %v twice", i.seq, l.To)
				i.sent = true
			}
		}
		h.turn.acts = slices.Delete(h.turn.acts, acts, acts+1)
	case l.Said != 0 && h.words[l.Said].Correlation == e.id: // a response that another one follows in the same turn
		h.w.must(l.To.Name == state.AgentOf(e.source), "%+v is told to %v", e, l.To)
	default:
		h.hearRequest(e, l)
	}
}

// hearPassing checks a letter to an agent that needs no receipt: a request for the status of its
// task, or to cancel it.
func (h *handovers) hearPassing(l *Letter) bool {
	if l.Kept != 0 || !isAct(l, delegation.ActStatus, delegation.ActCancel) {
		return false
	}
	said, err := wire.ReadTaskAct(l.Line, history.Deepest)
	h.w.must(err == nil, "%s: %v", l.Line, err)
	e, v := h.byID[said.ID], h.w.bus.lives[l.To.Name]
	h.w.must(e != nil && l.To.Name == e.holder && l.To.Run == e.out && v != nil && v.runs && v.run == l.To.Run, "%s of %+v is told to %v", l.Line, e, l.To)
	if said.Type == delegation.ActCancel {
		h.w.must(e.state.Final(), "%s of %+v", l.Line, e)
		return true
	}
	at := slices.IndexFunc(h.turn.acts, func(o act) bool { return o.of == e && o.fact != nil && o.fact.Act == said.Type })
	h.w.must(at >= 0, "nobody has said %s", l.Line)
	h.turn.acts = slices.Delete(h.turn.acts, at, at+1)
	return true
}

// isAct reports whether a letter is an act of these kinds. A letter with its line only in the log
// is one.
func isAct(l *Letter, kinds ...string) bool {
	if l.Kept != 0 {
		return true
	}
	var said struct{ Type string }
	_ = json.Unmarshal(l.Line, &said)
	return slices.Contains(kinds, said.Type)
}

// hearRequest checks that a request reaches the agent that it is assigned to, unchanged.
func (h *handovers) hearRequest(e *handover, l *Letter) {
	at := slices.Index(h.turn.forwards, e)
	h.w.must(at >= 0 && l.To.Name == e.holder && l.To.Run == e.out && l.Said == 0, "%+v is told to %v once more: %s", e, l.To, l.Line)
	h.turn.forwards = slices.Delete(h.turn.forwards, at, at+1)
	q, err := wire.ReadTaskRequest(l.Line, history.Deepest)
	h.w.must(err == nil, "%s: %v", l.Line, err)
	said := h.asked[e.id]
	if said == nil {
		said = h.turn.requests[slices.Index(h.turn.created, e)]
	}
	same := q.ID == e.id && q.Type == e.kind && string(q.Payload) == string(said.Payload) && slices.Equal(q.Routing.Chain, e.chain) && q.Routing.Target == e.holder
	h.w.must(same && q.Observability.TraceID == e.trace.TraceID && string(q.Observability.Baggage) == string(e.trace.Baggage) && q.Context.ParentTaskID == e.within, "%s of %+v", l.Line, e)
	h.w.must(!slices.Contains(q.Routing.Chain, q.Routing.Target), "%s has had it in hand: %s", e.holder, l.Line)
	h.w.saw["handed on: a request"]++
}

// hearStanding checks that only the caller hears the status of a task.
func (h *handovers) hearStanding(in *Input, l *Letter) {
	r, ok := in.Message.(*wire.Request)
	h.w.must(ok && (r.Form == dialect.TaskRequest || r.Form == dialect.TaskAct) && l.To == in.From, "nobody has asked for %+v", l)
	if l.Kept != 0 {
		e := h.byID[r.ID]
		h.w.must(e != nil && e.latest == l.Kept && e.status == e.state.Response(), "%+v is said of %+v", l, e)
		h.w.saw["handed on: the same words again"]++
		return
	}
	a, err := wire.ReadTaskResponse(l.Line, history.Deepest)
	h.w.must(err == nil && a.ID == r.ID && a.Status == h.w.task(r.ID).View.State.Response(), "%s is said of %+v: %v", l.Line, h.byID[r.ID], err)
	h.w.saw["handed on: how it stands"]++
}

// carry delivers or loses one line. The lines for one run keep their order.
func (h *handovers) carry() {
	if len(h.lines) == 0 {
		return
	}
	to := h.lines[h.w.chance.IntN(len(h.lines))].To.Run
	i := slices.IndexFunc(h.lines, func(l Letter) bool { return l.To.Run == to })
	lost := true
	for _, m := range h.w.members {
		if m.ID == h.lines[i].To.Name && m.run == to && m.up && !m.far {
			odds := 30
			if isAct(&h.lines[i], delegation.ActUpdate) {
				odds = 5
			}
			if h.w.chance.IntN(odds) == 0 {
				h.w.sessions.full[m.ID] = true
			}
			lost = h.w.sessions.full[m.ID]
			h.write(i, lost)
			return
		}
	}
	if h.w.chance.IntN(4) == 0 {
		h.lines = slices.Delete(h.lines, i, i+1) // lost with its run, without a report
		return
	}
	h.write(i, lost)
}

// write reports that a line was written or lost.
func (h *handovers) write(i int, lost bool) {
	l := h.lines[i]
	h.written = l
	h.lines = slices.Delete(h.lines, i, i+1)
	e := h.byID[l.Task]
	for _, o := range e.inputs { // of this try: its run may have lost the request before
		if o.seq == l.Said {
			o.sent, o.lost = false, lost
		}
	}
	if l.Said == 0 && e.out == l.To.Run && isRequest(&l) {
		e.brought = !lost
	}
	if lost {
		h.w.saw["handed on: a line is lost"]++
	}
	h.w.do(Actor{}, &wire.Delivered{Agent: l.To.Name, Run: l.To.Run, Task: l.Task, Said: l.Said, Lost: lost})
}

func isRequest(l *Letter) bool { return !isAct(l, delegation.ActUpdate) }
