package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// enter adds an agent that does not run yet.
func (l *lifecycle) enter(spec Agent) *agent {
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
		Message: fmt.Sprintf("there is no agent %q", name),
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
	for _, a := range l.order {
		roster.Agents = append(roster.Agents, wire.Member{
			ID: a.Name, Role: a.Role, Capabilities: a.Offers, Capacity: a.Capacity, OnExit: a.OnExit, Deaf: a.Raw || a.NoStdin,
			Names: a.Names, Abilities: a.Abilities, Actor: a.Actor,
		})
	}
	l.dispatcher.Note(roster)
}
