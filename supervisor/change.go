package supervisor

import (
	"context"
	"slices"

	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// A Change is a configuration change of one agent.
type Change struct {
	Action settings.Action
	Name   string
	Agent  settings.Agent // the new settings; unused for settings.ActionStop
}

// Apply applies changes to agents and replaces the list of sessions, all in one turn. Agents that no change names are
// not touched. If Apply returns an error, it has made no change. wait returns the outcomes in the order of changes.
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
			a = l.enter(&c.Agent)
		}
		if a.guest {
			expect(a, a.setSuccessor(c))
			continue
		}
		switch c.Action {
		case settings.ActionLive:
			l.amend(a, &c.Agent)
			expect(a, expectation{told: "keeps running"})
		case settings.ActionStop:
			a.removed, a.wanted = true, false
			expect(a, expectation{})
			leaving = append(leaving, a)
		case settings.ActionStart:
			a.removed = false
			l.adopt(a, &c.Agent)
			if !c.Agent.Autostart {
				expect(a, expectation{told: "waits to be started"})
				continue
			}
			a.wanted = true
			expect(a, expectation{up: true})
		case settings.ActionRestart:
			e, stops := l.renew(a, &c.Agent)
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
func (l *lifecycle) renew(a *agent, spec *settings.Agent) (expectation, bool) {
	switch {
	case a.joined != nil:
		a.next = spec
		return expectation{told: "is joined through a pipe: the change applies when the pipe ends"}, false
	case !a.wanted:
		l.adopt(a, spec)
		return expectation{told: "is not running: the change applies at its next start"}, false
	}
	a.next = spec
	a.history.forget()
	return expectation{up: true, run: a.run}, true
}

// adopt applies the settings that the configuration has now.
func (l *lifecycle) adopt(a *agent, spec *settings.Agent) {
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
