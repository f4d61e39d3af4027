package supervisor

import (
	"context"
	"slices"

	"orchestrator/wire"
)

// Action is what a change of the configuration needs.
type Action string

// The actions.
const (
	ActionStart   Action = "start"   // a new agent
	ActionStop    Action = "stop"    // it is no longer there
	ActionRestart Action = "restart" // it must be stopped and started as it is now
	ActionLive    Action = "live"    // it goes on and heeds the change
)

// Change is one change of one agent.
type Change struct {
	Action Action
	Name   string
	Agent  Agent // as it is to be; not for ActionStop
}

// Apply brings the agents to what they should be, all in one turn, and the
// sessions, which are all there are to be. Agents that no change names are not
// touched. An error means that nothing was done; what becomes of the changes, in
// their order, is what wait returns.
func (s *Supervisor) Apply(ctx context.Context, changes []Change, sessions []wire.SessionSpec) (wait func(context.Context) ([]wire.AgentOutcome, error), err error) {
	outcomes, err := ask(ctx, s, func() ([]<-chan wire.AgentOutcome, error) {
		if s.stopping != nil {
			return nil, errStopping
		}
		s.sessions = sessions // before anything starts
		return s.apply(changes), nil
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]wire.AgentOutcome, error) { return s.collect(ctx, outcomes) }, nil
}

// apply makes the changes. Whatever an agent is doing, each of them is fine:
// one that is there already is started no second time, one that is gone is no
// mistake.
func (s *Supervisor) apply(changes []Change) []<-chan wire.AgentOutcome {
	outcomes, expect := s.gather()
	var leaving []*agent
	for _, c := range changes {
		a := s.agents[c.Name]
		if a == nil {
			a = s.enter(c.Agent)
		}
		if a.guest {
			expect(a, a.bequeath(c))
			continue
		}
		switch c.Action {
		case ActionLive:
			s.amend(a, c.Agent)
			expect(a, expectation{told: "goes on"})
		case ActionStop:
			a.removed, a.wanted = true, false
			expect(a, expectation{})
			leaving = append(leaving, a)
		case ActionStart:
			a.removed = false
			s.adopt(a, c.Agent)
			if !c.Agent.Autostart {
				expect(a, expectation{told: "waits to be started"})
				continue
			}
			a.wanted = true
			expect(a, expectation{up: true})
		case ActionRestart:
			e, stops := s.renew(a, c.Agent)
			expect(a, e)
			if stops {
				leaving = append(leaving, a)
			}
		}
	}
	s.enlist()
	s.event(nil, wire.Event{
		Kind: wire.EventReloaded, Text: "the configuration was applied, " + count(len(changes), "change"),
		Figures: wire.Figures{Count: int64(len(changes))},
	})
	s.begin(s.newProcession(leaving, func(a *agent) {
		if a.removed {
			s.halt(a, stopRequest{reason: "no longer in the configuration"})
		} else {
			s.halt(a, stopRequest{reason: "its configuration changed", again: true})
		}
	}), leaving)
	for _, a := range slices.Clone(s.order) {
		if a.wanted && !a.state.Live() {
			s.tryStart(a)
		}
	}
	return *outcomes
}

// renew has an agent be what needs a start of it, and reports whether it is to be
// stopped for that.
func (s *Supervisor) renew(a *agent, spec Agent) (expectation, bool) {
	switch {
	case a.joined != nil:
		a.next = &spec
		return expectation{told: "is joined by a pipe, heeds it when that has ended"}, false
	case !a.wanted:
		s.adopt(a, spec)
		return expectation{told: "is not running, heeds it at its next start"}, false
	}
	a.next = &spec
	a.history.forget()
	return expectation{up: true, run: a.run}, true
}

// adopt makes an agent what the configuration now says.
func (s *Supervisor) adopt(a *agent, spec Agent) {
	a.Agent, a.next = spec, nil
	a.voice.Adopt(spec.Output)
	if a.mail != nil {
		a.mail.Adopt(spec.Mailbox, spec.Health.WriteTimeout)
	}
	if a.child != nil && a.exit == nil && a.halt == nil && a.silent == "" {
		s.deadlines.drop(a.watch)
		s.watchSilence(a)
	}
}

// leave forgets an agent that has been taken out of the configuration.
func (s *Supervisor) leave(a *agent) {
	s.audience.RemoveAgent(a.voice)
	a.voice.Close()
	delete(s.agents, a.Name)
	s.order = slices.DeleteFunc(s.order, func(o *agent) bool { return o == a })
	s.enlist()
	s.wakeWaiting()
	s.checkIdle()
}
