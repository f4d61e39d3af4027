package handlers

import (
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// accident makes something happen to a process.
func (w *world) accident(m *inhabitant) {
	happen := func(kind string, figures wire.Figures) {
		w.do(Actor{}, &wire.Event{Kind: kind, Agent: m.ID, Run: m.run, Text: kind, Figures: figures})
	}
	code := w.chance.IntN(2)
	figures := wire.Figures{ExitCode: &code}
	if w.chance.IntN(4) == 0 {
		figures = wire.Figures{Signal: "SIGKILL"}
	}
	switch n := w.chance.IntN(10); {
	case m.far:
		m.up = n < 6 // a server reports again, or stays silent
	case m.dying:
		m.dying = false
		happen(events.AgentEnded, figures)
		w.yield(m)
		if w.chance.IntN(8) == 0 {
			happen(events.AgentRecovered, wire.Figures{}) // reported late
		}
		w.giveUp(m, figures)
	case !m.up && m.listed:
		w.launch(m)
	case !m.up:
	case n < 3:
		m.up, m.dying = false, true
		w.forget(func(run string) bool { return run == m.run })
		happen(events.AgentExited, figures)
	case n < 5:
		w.stop(m, figures)
	case n < 6:
		happen(events.AgentStalled, wire.Figures{})
	case n < 7:
		happen(events.AgentStdinClosed, wire.Figures{})
	case n < 8: // of a run long ago
		w.do(Actor{}, &wire.Event{Kind: events.AgentStalled, Agent: m.ID, Run: "a.0"})
	default:
		happen(events.AgentRecovered, wire.Figures{})
	}
	w.drain(m)
}

// giveUp sometimes reports that an ended agent is not restarted: after a clean exit, or because
// it is given up.
func (w *world) giveUp(m *inhabitant, figures wire.Figures) {
	switch {
	case w.chance.IntN(4) > 0:
	case figures.ExitCode != nil && *figures.ExitCode == 0:
		w.do(Actor{}, &wire.AgentGone{Agent: m.ID})
	default:
		w.do(Actor{}, &wire.Event{Kind: events.AgentGaveUp, Agent: m.ID, Run: m.run, Text: events.AgentGaveUp})
	}
}

// reconfigure changes, removes or adds an agent.
func (w *world) reconfigure(m *inhabitant) {
	switch {
	case w.chance.IntN(3) == 0:
		w.reseat()
		return
	case !m.listed && !m.far && w.chance.IntN(2) == 0:
		w.enroll(m)
		return
	case !m.listed:
		if m.far { // it runs here from now on
			m.far, m.up, m.run = false, false, ""
		}
		m.listed = true
	case w.chance.IntN(4) == 0:
		m.listed = false
		w.sent = slices.DeleteFunc(w.sent, func(s sent) bool { return s.from.Name == m.ID }) // its requests are forgotten too
		w.forget(func(run string) bool { return run == m.run })
	default:
		w.retrain(m)
		m.Capacity = 1 + w.chance.IntN(3)
		if w.chance.IntN(2) == 0 {
			w.rename(m)
		}
	}
	w.enlist()
	if !m.listed && m.up {
		m.up = false
		w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run, Figures: wire.Figures{Ordered: true}})
	}
	m.dying = m.dying && m.listed
}

// catastrophe ends the orchestrator, orderly or not, and starts it again from the records.
func (w *world) catastrophe() {
	if w.chance.IntN(2) == 0 {
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStopping})
		for range 20 {
			w.submit(w.members[0])
			w.work()
			w.deliver()
			w.confer()
			w.carry()
		}
		for _, m := range w.members {
			if m.up && !m.far {
				m.up = false
				w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run, Figures: wire.Figures{Ordered: true}})
			}
		}
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStopped})
	}
	w.mail, w.sessions.lines = nil, nil
	w.forget(func(string) bool { return true })
	w.sent = slices.DeleteFunc(w.sent, func(s sent) bool { return strings.HasPrefix(s.from.Run, "door:") }) // each makes one request
	for _, m := range w.members {
		if !m.far {
			m.up, m.dying = false, false
		}
		if m.yields {
			m.yields, m.Actor = false, ""
		}
	}
	w.enlist()
	w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	for _, m := range w.members {
		if m.listed && w.chance.IntN(3) > 0 {
			w.launch(m)
		}
	}
}
