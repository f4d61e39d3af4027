package supervisor

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// An agent waits for its dependencies, and for its actor, before it starts.

// missing returns the first dependency that a waits for, or "".
func (l *lifecycle) missing(a *agent) string {
	if a.freely {
		return ""
	}
	for _, name := range a.DependsOn {
		d := l.agents[name]
		if d != nil && d.state != control.StateRunning && d.state != control.StateStalled && d.state != control.StateExited {
			return name
		}
	}
	return ""
}

// wait marks an agent as waiting and records an event with the reason.
func (l *lifecycle) wait(a *agent, what string) {
	if a.state != control.StateWaiting {
		a.set(control.StateWaiting, "for "+what)
		l.event(a, wire.Event{Kind: events.AgentWaiting, Text: "waits for " + what})
	}
	a.reason = "for " + what
}

// wakeWaiting tries to start the waiting agents.
func (l *lifecycle) wakeWaiting() {
	for _, a := range l.order {
		if a.state == control.StateWaiting {
			l.tryStart(a)
		}
	}
}

// hopeless reports whether a waits for an agent that is not going to run.
func (l *lifecycle) hopeless(a *agent) bool {
	d := l.agents[l.missing(a)]
	return d != nil && (!d.wanted || d.state == control.StateWaiting && l.hopeless(d))
}
