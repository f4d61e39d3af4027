package supervisor

import (
	"context"
	"errors"
	"time"

	"orchestrator/wire"
)

// Start starts agents by hand and tells of each whether it stayed up.
func (s *Supervisor) Start(ctx context.Context, r wire.AgentsRequest) ([]wire.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(a *agent, answer func(wire.AgentOutcome)) {
		if a.state == wire.StateRunning || a.state == wire.StateStalled {
			answer(wire.AgentOutcome{Name: a.Name, OK: true, PID: a.child.PID(), Text: "runs already"})
			return
		}
		a.onStart = append(a.onStart, answer)
		s.startByHand(a, r.NoDeps)
	})
}

// startByHand starts an agent as if nothing had happened before.
func (s *Supervisor) startByHand(a *agent, freely bool) {
	a.history.forget()
	switch {
	case a.halt != nil:
		a.halt.again, a.halt.crash = true, false
		a.wanted, a.freely = true, freely
	case a.state == wire.StateBackoff:
		s.deadlines.drop(a.due)
		a.set(wire.StateStopped, "")
		s.want(a, freely)
	default:
		s.want(a, freely)
	}
}

// StopAgents stops agents by hand. They stay stopped.
func (s *Supervisor) StopAgents(ctx context.Context, r wire.AgentsRequest) ([]wire.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(a *agent, answer func(wire.AgentOutcome)) {
		if a.state == wire.StateStopped && a.halt == nil {
			answer(wire.AgentOutcome{Name: a.Name, OK: true, Text: "is stopped already"})
			return
		}
		a.onStop = append(a.onStop, answer)
		s.halt(a, halt{reason: "stopped by hand"})
	})
}

// Restart stops agents and starts them again.
func (s *Supervisor) Restart(ctx context.Context, r wire.AgentsRequest) ([]wire.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(a *agent, answer func(wire.AgentOutcome)) {
		a.history.forget()
		a.onStop = append(a.onStop, func(wire.AgentOutcome) { a.onStart = append(a.onStart, answer) })
		s.halt(a, halt{reason: "restarted by hand", again: true})
	})
}

// each does something to agents and gathers what became of them, in order.
func (s *Supervisor) each(ctx context.Context, names []string, do func(*agent, func(wire.AgentOutcome))) ([]wire.AgentOutcome, error) {
	type asked struct {
		outcomes []<-chan wire.AgentOutcome
		err      error
	}
	began := time.Now()
	a, err := ask(ctx, s, func() asked {
		if s.stopping != nil {
			return asked{err: &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator is stopping"}}
		}
		chosen, err := s.choose(names)
		if err != nil {
			return asked{err: err}
		}
		var outcomes []<-chan wire.AgentOutcome
		for _, one := range chosen {
			outcome := make(chan wire.AgentOutcome, 1)
			outcomes = append(outcomes, outcome)
			do(one, func(o wire.AgentOutcome) {
				o.TookMS = time.Since(began).Milliseconds()
				outcome <- o
			})
		}
		return asked{outcomes: outcomes}
	})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return nil, err
	}
	outcomes := make([]wire.AgentOutcome, 0, len(a.outcomes))
	for _, outcome := range a.outcomes {
		o, err := await(ctx, s, outcome)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// Tell puts a message into an agent's mailbox: one whole line, with its end.
func (s *Supervisor) Tell(ctx context.Context, name string, line []byte) error {
	_, err := s.tell(ctx, name, line)
	return err
}

// TellWaiting is Tell for those who would rather wait than be refused because
// the mailbox is full.
func (s *Supervisor) TellWaiting(ctx context.Context, name string, line []byte) error {
	for {
		moved, err := s.tell(ctx, name, line)
		if !errors.Is(err, ErrMailboxFull) {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell is Tell; when the mailbox is full it also returns what says that there
// may be room again.
func (s *Supervisor) tell(ctx context.Context, name string, line []byte) (<-chan struct{}, error) {
	type told struct {
		moved <-chan struct{}
		err   error
	}
	got, err := ask(ctx, s, func() told {
		a := s.agents[name]
		switch {
		case a == nil:
			return told{err: s.unknown(name)}
		case a.mail == nil || a.Raw:
			return told{err: ErrNoStdin}
		}
		moved, err := a.mail.put(line)
		return told{moved, err}
	})
	if err != nil {
		return nil, err
	}
	return got.moved, got.err
}

// EndInput closes an agent's stdin when all that waits for it is written.
func (s *Supervisor) EndInput(name string) {
	s.post(func() {
		if a := s.agents[name]; a != nil && a.mail != nil {
			a.mail.end()
		}
	})
}
