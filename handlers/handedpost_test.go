package handlers

import (
	"encoding/json"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// lineOf returns the line of a letter.
func (h *handovers) lineOf(l *Letter) wire.Raw {
	if l.Kept == 0 {
		return l.Line
	}
	line, err := LineOf(h.words[l.Kept])
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
	v, a := h.w.bus.lives[l.To.Name], h.w.state.agents.byID[l.To.Name]
	h.w.must(l.To.Kind == Agent && v != nil && v.runs && v.run == l.To.Run && !v.remote && !a.Deaf, "%+v is for nobody", l)
	e := h.byID[l.Task]
	h.w.must(e != nil, "%+v is about nothing", l)
	h.lines = append(h.lines, *l)
	acts := slices.IndexFunc(h.turn.acts, func(o act) bool {
		return o.of == e && (o.seq == l.Said || l.Said == 0 && o.fact != nil && o.fact.Act == delegation.ActStatus)
	})
	switch {
	case l.Said != 0 && l.Said == e.latest:
		h.w.must(l.To.Name == agentOf(e.source) && e.owed, "%+v is told to %v", e, l.To)
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
		h.w.must(l.To.Name == agentOf(e.source), "%+v is told to %v", e, l.To)
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

// isAct reports whether a letter is an act of these kinds. A letter whose line is only in the
// log is one.
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

// hearStanding checks that only the caller is told the status of a task.
func (h *handovers) hearStanding(in *Input, l *Letter) {
	r, ok := in.Message.(*wire.Request)
	h.w.must(ok && (r.Form == wire.DialectTaskRequest || r.Form == wire.DialectTaskAct) && l.To == in.From, "nobody has asked for %+v", l)
	if l.Kept != 0 {
		e := h.byID[r.ID]
		h.w.must(e != nil && e.latest == l.Kept && e.status == e.state.Response(), "%+v is said of %+v", l, e)
		h.w.saw["handed on: the same words again"]++
		return
	}
	a, err := wire.ReadTaskResponse(l.Line, history.Deepest)
	h.w.must(err == nil && a.ID == r.ID && a.Status == h.w.state.tasks.byID[r.ID].view.State.Response(), "%s is said of %+v: %v", l.Line, h.byID[r.ID], err)
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
