package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// enter adds an agent that does not run yet.
func (l *lifecycle) enter(spec *settings.Agent) *agent {
	a := &agent{Agent: spec, state: control.StateStopped}
	a.voice = output.NewAgent(spec.Name, spec.Output, func(e wire.Event) {
		l.post(func() { l.event(a, e) })
	})
	l.audience.AddAgent(a.voice)
	l.agents[spec.Name] = a
	l.order = append(l.order, a)
	return a
}

// event records an event, which is then also shown to followers.
func (l *lifecycle) event(a *agent, e wire.Event) {
	if a != nil {
		e.Agent = a.Name
		if e.Run == "" {
			e.Run = a.run
		}
	}
	l.dispatcher.Note(&e)
}

// choose returns the agents with the given names or blocks, in order. No names means all.
func (l *lifecycle) choose(names []string) ([]*agent, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(l.order), func(a *agent) bool { return a.removed }), nil
	}
	var chosen []*agent
	for _, name := range names {
		found := false
		for _, a := range l.order {
			if (a.Name == name || a.Block == name) && !a.removed {
				found = true
				if !slices.Contains(chosen, a) {
					chosen = append(chosen, a)
				}
			}
		}
		if !found {
			return nil, l.unknown(name)
		}
	}
	return chosen, nil
}

func (l *lifecycle) unknown(name string) error {
	var names []string
	for _, a := range l.order {
		names = append(names, a.Name)
	}
	known := strings.Join(names[:min(len(names), 20)], ", ")
	if len(names) > 20 {
		known += fmt.Sprintf(" and %d more", len(names)-20)
	}
	return &wire.Error{
		Code:    wire.CodeNotFound,
		Message: fmt.Sprintf("agent %q does not exist", name),
		Details: map[string]any{"agent": name, "agents": names},
		Hint:    "The agents are " + known,
	}
}

// open returns the number of open tasks.
func (l *lifecycle) open() (tasks int) {
	l.dispatcher.Look(func(state *handlers.State) { tasks = state.Open() })
	return tasks
}

// enlist submits the present agents and sessions to the dispatcher.
func (l *lifecycle) enlist() {
	roster := &wire.AgentSet{Sessions: l.sessions}
	stored := make(map[string]int64)
	for _, a := range l.order {
		stored[a.Name] = a.Stored
		roster.Agents = append(roster.Agents, a.Member())
	}
	l.dispatcher.SetStored(stored)
	l.dispatcher.Note(roster)
}

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

// A named actor belongs to one run at a time. If the configuration gives the name to another
// agent, that agent starts only after the run that holds the name has ended. Otherwise two
// agents would send as the same actor and read the same mail.

// takeActor records which actor the new run of a uses for its mail.
func (l *lifecycle) takeActor(a *agent) {
	a.as = a.Actor
	if a.as != "" && !mail.PerRun(a.as) {
		l.actors[a.as] = a
	}
}

// actorHolder returns the agent that still holds the actor that a needs, or nil.
func (l *lifecycle) actorHolder(a *agent) *agent {
	actor := a.Actor
	if a.next != nil {
		actor = a.next.Actor
	}
	holder := l.actors[actor]
	if holder == nil || holder == a || holder.as != actor || holder.child == nil && holder.state != control.StateStarting {
		return nil
	}
	return holder
}

// vacateActor releases the actor of an ended run and wakes the agents that waited for it.
func (l *lifecycle) vacateActor(a *agent) {
	if l.actors[a.as] == a {
		delete(l.actors, a.as)
		l.wakeWaiting()
	}
}
