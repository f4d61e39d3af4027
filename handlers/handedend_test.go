package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// settle brings a world to rest: all agents run and read, tasks that are not delegated are
// cancelled, and time passes. Then all handovers end, and every source that can be told knows.
func (w *world) settle() {
	if w.state.stopping {
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	}
	for _, m := range w.members {
		w.revive(m)
	}
	person := Actor{Kind: Operator}
	for _, k := range slices.Clone(w.state.tasks.list) {
		if !k.view.State.Final() && w.handovers.byID[k.view.ID] == nil {
			w.request(person, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, k.view.ID))
		}
	}
	for _, e := range slices.Clone(w.handovers.open) {
		for w.state.tasks.graph.Open(w.state.tasks.byID[e.id].node) > 0 {
			w.cutLoose(e)
		}
	}
	for range 200 {
		w.at = w.at.Add(time.Second)
		if due, some := w.state.Due(); some && !due.After(w.at) {
			w.do(Actor{}, wire.Tick{})
		}
		for len(w.handovers.lines) > 0 {
			w.handovers.write(0, !w.runsNow(w.handovers.lines[0].To))
		}
		if len(w.handovers.open) == 0 {
			break
		}
		for _, e := range slices.Clone(w.handovers.open) {
			w.finish(e)
		}
	}
	for _, e := range w.handovers.order {
		w.must(e.state.Final() && e.final != 0, "%+v has not ended: %+v", e, w.state.agents.byID[e.holder])
		w.must(!e.owed || !e.given.IsZero() || !w.reads(agentOf(e.source)), "the source of %+v does not know", e)
	}
}

func (w *world) runsNow(to Actor) bool {
	return slices.ContainsFunc(w.members, func(m *inhabitant) bool { return m.up && !m.far && m.says(to) })
}

func (w *world) reads(name string) bool {
	return slices.ContainsFunc(w.members, func(m *inhabitant) bool { return m.ID == name && m.up && !m.far && !m.Deaf })
}

// revive makes an agent run and read.
func (w *world) revive(m *inhabitant) {
	if m.far || !m.listed {
		return
	}
	if m.dying {
		m.dying = false
		w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run})
		w.yield(m)
	}
	if !m.up {
		w.launch(m)
	}
	delete(w.sessions.full, m.ID)
	w.do(Actor{}, &wire.Event{Kind: events.AgentRecovered, Agent: m.ID, Run: m.run})
	w.request(m.actor(), "update-capabilities", fmt.Sprintf(`{"capabilities":%s}`, w.abilities(2))) // it may have advertised nothing
}

// cutLoose removes a dependency of a handover.
func (w *world) cutLoose(e *handover) {
	k := w.state.tasks.byID[e.id]
	for edge := range w.state.tasks.graph.Needs(k.node) {
		if v := w.state.tasks.graph.Edge(edge); !v.Resolved && gates(v.Kind) {
			l := w.state.tasks.shownLink(edge)
			out := w.request(Actor{Kind: Operator}, "remove-dependency", fmt.Sprintf(`{"taskId":%q,"dependencyId":%q}`, e.id, l.ID))
			w.must(out.Refused == nil, "%v", out.Refused)
			return
		}
	}
}

// finish has the agent of a handover report that it is done. For a server a person does so.
func (w *world) finish(e *handover) {
	for _, m := range w.members {
		switch {
		case m.ID != e.holder || e.state.Final():
		case m.far || !m.up:
			out := w.request(Actor{Kind: Operator}, "complete-task", fmt.Sprintf(`{"taskId":%q}`, e.id))
			w.must(out.Refused == nil, "%+v cannot be completed: %v", e, out.Refused)
		case e.brought && e.out == m.run:
			w.utter(m, m.actor(), fmt.Sprintf(`{"id":%q,"status":"completed"}`, e.id))
		}
	}
}
