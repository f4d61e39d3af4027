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

// Apply brings the agents to what they should be, all at once. Agents that no
// change names are not touched. It returns what became of each change.
func (s *Supervisor) Apply(ctx context.Context, changes []Change) ([]wire.AgentOutcome, error) {
	byName := make(map[string]Change, len(changes))
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		byName[c.Name] = c
		names = append(names, c.Name)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	if _, err := ask(ctx, s, func() any {
		for _, c := range changes {
			if c.Action == ActionStart && s.agents[c.Name] == nil {
				s.enter(c.Agent)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	outcomes, err := s.each(ctx, names, func(a *agent, answer func(wire.AgentOutcome)) {
		s.apply(a, byName[a.Name], answer)
	})
	s.post(func() {
		s.event(nil, wire.Event{Kind: wire.EventReloaded, Text: "the configuration was applied", Facts: wire.Facts{Count: int64(len(changes))}})
	})
	return outcomes, err
}

// apply makes one change.
func (s *Supervisor) apply(a *agent, c Change, answer func(wire.AgentOutcome)) {
	switch c.Action {
	case ActionLive:
		s.adopt(a, c.Agent)
		answer(wire.AgentOutcome{Name: a.Name, OK: true, Text: "goes on"})
	case ActionStop:
		a.removed = true
		a.onStop = append(a.onStop, answer)
		s.halt(a, halt{reason: "no longer in the configuration"})
	case ActionStart:
		s.adopt(a, c.Agent)
		if !a.Autostart {
			answer(wire.AgentOutcome{Name: a.Name, OK: true, Text: "waits to be started"})
			return
		}
		a.onStart = append(a.onStart, answer)
		s.startByHand(a, false)
	case ActionRestart:
		a.next = &c.Agent
		a.history.forget()
		if !a.wanted {
			s.adopt(a, c.Agent)
			answer(wire.AgentOutcome{Name: a.Name, OK: true, Text: "is not running, heeds it at its next start"})
			return
		}
		a.onStop = append(a.onStop, func(wire.AgentOutcome) { a.onStart = append(a.onStart, answer) })
		s.halt(a, halt{reason: "its configuration changed", again: true})
	}
}

// adopt makes an agent what the configuration now says.
func (s *Supervisor) adopt(a *agent, spec Agent) {
	a.Agent, a.next = spec, nil
	a.voice.adopt(spec.Output)
	if a.mail != nil {
		a.mail.adopt(spec.Mailbox, spec.Health.WriteTimeout)
	}
	if a.state == wire.StateRunning {
		s.deadlines.drop(a.watch)
		s.watchSilence(a)
	}
}

// leave forgets an agent that has been taken out of the configuration.
func (s *Supervisor) leave(a *agent) {
	a.voice.close()
	delete(s.agents, a.Name)
	s.order = slices.DeleteFunc(s.order, func(o *agent) bool { return o == a })
	s.checkIdle()
}
