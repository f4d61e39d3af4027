package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// enter adds an agent that does not run yet.
func (l *lifecycle) enter(spec settings.Agent) *agent {
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
	stored := make(map[string]int64)
	for _, a := range l.order {
		stored[a.Name] = a.Stored
		roster.Agents = append(roster.Agents, a.Member())
	}
	dispatch.SetStored(l.dispatcher, stored)
	l.dispatcher.Note(roster)
}

// An Action is what a configuration change requires.
type Action string

// The actions.
const (
	ActionStart   Action = "start"   // a new agent
	ActionStop    Action = "stop"    // the agent was removed
	ActionRestart Action = "restart" // stop the agent and start it with the new settings
	ActionLive    Action = "live"    // apply the change while it runs
)

// A Change is a configuration change of one agent.
type Change struct {
	Action Action
	Name   string
	Agent  settings.Agent // the new settings; unused for ActionStop
}

// Apply applies changes to agents and replaces the list of sessions, all in one turn. Agents
// that no change names are not touched. If Apply returns an error, nothing was changed. wait
// returns the outcomes in the order of changes.
func (s *Supervisor) Apply(ctx context.Context, changes []Change, sessions []session.Spec) (wait func(context.Context) ([]control.AgentOutcome, error), err error) {
	outcomes, err := ask(ctx, s, func() ([]<-chan control.AgentOutcome, error) {
		if s.life.stopping != nil {
			return nil, errStopping
		}
		s.life.sessions = sessions // before anything starts
		return s.life.apply(changes), nil
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]control.AgentOutcome, error) { return s.collect(ctx, outcomes) }, nil
}

// apply applies the changes, whatever state the agents are in. It does not start an existing
// agent a second time, and ignores the removal of an unknown one.
func (l *lifecycle) apply(changes []Change) []<-chan control.AgentOutcome {
	outcomes, expect := l.callers.gather()
	var leaving []*agent
	for _, c := range changes {
		a := l.agents[c.Name]
		if a == nil {
			a = l.enter(c.Agent)
		}
		if a.guest {
			expect(a, a.setSuccessor(c))
			continue
		}
		switch c.Action {
		case ActionLive:
			l.amend(a, c.Agent)
			expect(a, expectation{told: "goes on"})
		case ActionStop:
			a.removed, a.wanted = true, false
			expect(a, expectation{})
			leaving = append(leaving, a)
		case ActionStart:
			a.removed = false
			l.adopt(a, c.Agent)
			if !c.Agent.Autostart {
				expect(a, expectation{told: "waits to be started"})
				continue
			}
			a.wanted = true
			expect(a, expectation{up: true})
		case ActionRestart:
			e, stops := l.renew(a, c.Agent)
			expect(a, e)
			if stops {
				leaving = append(leaving, a)
			}
		}
	}
	l.enlist()
	l.event(nil, wire.Event{
		Kind: events.OrchestratorReloaded, Text: "the configuration was applied, " + count(len(changes), "change"),
		Figures: wire.Figures{Count: int64(len(changes))},
	})
	l.stops.begin(l.stops.of(leaving, func(a *agent) {
		if a.removed {
			l.halt(a, stopRequest{reason: "no longer in the configuration"})
		} else {
			l.halt(a, stopRequest{reason: "its configuration changed", again: true})
		}
	}), leaving)
	for _, a := range slices.Clone(l.order) {
		if a.wanted && !a.state.Live() {
			l.tryStart(a)
		}
	}
	return *outcomes
}

// renew applies settings that need a start of the agent. It reports whether the agent must be
// stopped for them.
func (l *lifecycle) renew(a *agent, spec settings.Agent) (expectation, bool) {
	switch {
	case a.joined != nil:
		a.next = &spec
		return expectation{told: "is joined by a pipe, heeds it when that has ended"}, false
	case !a.wanted:
		l.adopt(a, spec)
		return expectation{told: "is not running, heeds it at its next start"}, false
	}
	a.next = &spec
	a.history.forget()
	return expectation{up: true, run: a.run}, true
}

// adopt applies the settings that the configuration has now.
func (l *lifecycle) adopt(a *agent, spec settings.Agent) {
	a.Agent, a.next = spec, nil
	a.voice.Adopt(spec.Output)
	if a.mail != nil {
		a.mail.Adopt(spec.Mailbox, spec.Health.WriteTimeout)
	}
	if a.child != nil && a.exit == nil && a.halt == nil && a.silent == "" {
		l.deadlines.drop(a.watch)
		l.watchSilence(a)
	}
}

// leave removes an agent that is no longer in the configuration.
func (l *lifecycle) leave(a *agent) {
	l.audience.RemoveAgent(a.voice)
	a.voice.Close()
	delete(l.agents, a.Name)
	l.order = slices.DeleteFunc(l.order, func(o *agent) bool { return o == a })
	l.enlist()
	l.wakeWaiting()
	l.idle.check()
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
