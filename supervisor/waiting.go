package supervisor

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// An agent waits for its dependencies, and for its actor, before it starts.

// missing returns the first dependency that a waits for, or "".
func (s *Supervisor) missing(a *agent) string {
	if a.freely {
		return ""
	}
	for _, name := range a.DependsOn {
		d := s.agents[name]
		if d != nil && d.state != control.StateRunning && d.state != control.StateStalled && d.state != control.StateExited {
			return name
		}
	}
	return ""
}

// wait marks an agent as waiting and records an event with the reason.
func (s *Supervisor) wait(a *agent, what string) {
	if a.state != control.StateWaiting {
		a.set(control.StateWaiting, "for "+what)
		s.event(a, wire.Event{Kind: events.AgentWaiting, Text: "waits for " + what})
	}
	a.reason = "for " + what
}

// wakeWaiting tries to start the waiting agents.
func (s *Supervisor) wakeWaiting() {
	for _, a := range s.order {
		if a.state == control.StateWaiting {
			s.tryStart(a)
		}
	}
}

// hopeless reports whether a waits for an agent that is not going to run.
func (s *Supervisor) hopeless(a *agent) bool {
	d := s.agents[s.missing(a)]
	return d != nil && (!d.wanted || d.state == control.StateWaiting && s.hopeless(d))
}
