package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// errStopping is the answer to requests that arrive while the supervisor stops.
var errStopping = &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator is stopping"}

// StartAgents starts agents by hand and reports for each whether it stayed up.
func (s *Supervisor) StartAgents(ctx context.Context, r control.AgentsRequest) ([]control.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(agents []*agent, expect func(*agent, expectation)) {
		for _, a := range agents {
			expect(a, expectation{up: true})
			s.life.startByHand(a, r.NoDeps)
		}
	})
}

// startByHand starts an agent and clears its restart history.
func (l *lifecycle) startByHand(a *agent, freely bool) {
	a.history.forget()
	switch {
	case a.halt != nil:
		a.halt.again, a.halt.crash, a.halt.fully = true, false, true
		a.wanted, a.freely = true, freely
	case a.exit != nil: // the leader has exited; its process tree is being cleared
		a.wanted, a.freely, a.afresh = true, freely, true
	case a.state == control.StateBackoff:
		l.deadlines.drop(a.due)
		a.set(control.StateStopped, "")
		l.want(a, freely)
	default:
		l.want(a, freely)
	}
}

// StopAgents stops agents by hand and keeps them stopped. Dependents stop before the agents
// that they depend on.
func (s *Supervisor) StopAgents(ctx context.Context, r control.AgentsRequest) ([]control.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(agents []*agent, expect func(*agent, expectation)) {
		for _, a := range agents {
			if !a.wanted && a.child == nil {
				a.lastStop = "is already stopped"
			}
			expect(a, expectation{})
		}
		s.life.halts(agents, "stopped by hand")
	})
}

// halts stops agents and keeps them stopped. Dependents stop before the agents that they depend
// on.
func (l *lifecycle) halts(agents []*agent, reason string) {
	for _, a := range agents {
		a.wanted = false
	}
	l.stops.begin(l.stops.of(agents, func(a *agent) { l.halt(a, stopRequest{reason: reason}) }), agents)
}

// RestartAgents stops agents and starts them again. Dependents stop before the agents that they
// depend on.
func (s *Supervisor) RestartAgents(ctx context.Context, r control.AgentsRequest) ([]control.AgentOutcome, error) {
	return s.each(ctx, r.Agents, func(agents []*agent, expect func(*agent, expectation)) {
		agents = slices.DeleteFunc(agents, func(a *agent) bool {
			if a.guest {
				expect(a, expectation{told: "has joined through a pipe and keeps running"})
			}
			return a.guest
		})
		for _, a := range agents {
			a.history.forget()
			a.wanted = true
			expect(a, expectation{up: true, run: a.run})
		}
		p := s.life.stops.of(agents, func(a *agent) { s.life.halt(a, stopRequest{reason: "restarted by hand", again: true, fully: true}) })
		s.life.stops.begin(p, agents)
	})
}

// each applies do to the named agents in one turn. It returns the outcomes in order.
func (s *Supervisor) each(ctx context.Context, names []string, do func([]*agent, func(*agent, expectation))) ([]control.AgentOutcome, error) {
	outcomes, err := ask(ctx, s, func() ([]<-chan control.AgentOutcome, error) {
		if s.life.stopping != nil {
			return nil, errStopping
		}
		chosen, err := s.life.choose(names)
		if err != nil {
			return nil, err
		}
		outcomes, expect := s.life.callers.gather()
		do(chosen, expect)
		return *outcomes, nil
	})
	if err != nil {
		return nil, err
	}
	return s.collect(ctx, outcomes)
}

// gather returns a list of outcome channels, and a function that adds an expectation and its
// channel to that list.
func (c *callers) gather() (*[]<-chan control.AgentOutcome, func(*agent, expectation)) {
	outcomes := new([]<-chan control.AgentOutcome)
	return outcomes, func(a *agent, e expectation) {
		outcome := make(chan control.AgentOutcome, 1)
		e.answer = func(o control.AgentOutcome) { outcome <- o }
		*outcomes = append(*outcomes, outcome)
		c.expect(a, e)
	}
}

// collect waits for the outcomes and returns them in order.
func (s *Supervisor) collect(ctx context.Context, from []<-chan control.AgentOutcome) ([]control.AgentOutcome, error) {
	outcomes := make([]control.AgentOutcome, 0, len(from))
	for _, outcome := range from {
		o, err := dispatch.Await(ctx, s.done, outcome)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// TellWaiting puts one complete line, with its line end, into an agent's mailbox. It waits while
// the mailbox is full.
func (s *Supervisor) TellWaiting(ctx context.Context, name string, line []byte) error {
	for {
		moved, err := s.tell(ctx, name, line)
		if !errors.Is(err, stdin.ErrFull) {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell is TellWaiting without the wait. If the mailbox is full, it also returns a channel that is
// closed when there may be room again.
func (s *Supervisor) tell(ctx context.Context, name string, line []byte) (<-chan struct{}, error) {
	return ask(ctx, s, func() (<-chan struct{}, error) {
		a := s.life.agents[name]
		switch {
		case a == nil:
			return nil, s.life.unknown(name)
		case a.mail == nil || a.Raw:
			return nil, stdin.ErrNoStdin
		}
		return a.mail.Put(stdin.OneLine(line))
	})
}

// EndInput closes an agent's stdin after everything in its mailbox is written.
func (s *Supervisor) EndInput(name string) {
	s.post(func() {
		if a := s.life.agents[name]; a != nil && a.mail != nil {
			a.mail.CloseWhenEmpty()
		}
	})
}

// An expectation is a caller that waits for a state of an agent. All expectations are checked
// after every turn, so each is answered exactly once, in whatever order events happen.
type expectation struct {
	up     bool   // expects the agent to run; otherwise, to have stopped
	run    string // for a restart: the run that must have been replaced
	told   string // the answer, if it is known already
	began  time.Time
	answer func(control.AgentOutcome)
}

// callers are the callers that wait for states of agents.
type callers struct {
	life    *lifecycle
	waiting map[*agent]bool // agents with an expectation
}

// expect adds an expectation.
func (c *callers) expect(a *agent, e expectation) {
	e.began = time.Now()
	a.expected = append(a.expected, e)
	c.waiting[a] = true
}

// settle answers the expectations that are fulfilled or can no longer be.
func (c *callers) settle() {
	for a := range c.waiting {
		left := a.expected[:0]
		for _, e := range a.expected {
			outcome, done := c.judge(a, e)
			if !done {
				left = append(left, e)
				continue
			}
			outcome.Name, outcome.TookMS = a.Name, time.Since(e.began).Milliseconds()
			e.answer(outcome)
		}
		clear(a.expected[len(left):])
		if a.expected = left; len(left) == 0 {
			delete(c.waiting, a)
		}
	}
}

// judge returns the outcome of an expectation, and whether it is known.
func (c *callers) judge(a *agent, e expectation) (control.AgentOutcome, bool) {
	switch {
	case e.told != "":
		return control.AgentOutcome{OK: true, Text: e.told}, true
	case e.up:
		return c.judgeUp(a, e)
	case a.halt != nil:
		return control.AgentOutcome{}, false
	case a.wanted:
		return control.AgentOutcome{Text: "was started again"}, true
	case a.child != nil || a.state == control.StateStarting:
		return control.AgentOutcome{}, false
	}
	return control.AgentOutcome{OK: a.survivors == 0, Text: a.lastStop}, true
}

// judgeUp is judge for expectations that the agent runs. The agent must have been up for
// minUptime, because a program that ends at once does not count as started.
func (c *callers) judgeUp(a *agent, e expectation) (control.AgentOutcome, bool) {
	no := func(text string) (control.AgentOutcome, bool) {
		return control.AgentOutcome{Text: text, LastWords: a.lastWords()}, true
	}
	fresh := a.run != e.run
	switch {
	case a.removed && a.guest:
		return no("had joined through a pipe and has left")
	case a.removed:
		return no("is no longer in the configuration")
	case a.child != nil && a.exit == nil && a.halt == nil:
		if !fresh || time.Since(a.child.StartedAt()) < minUptime {
			return control.AgentOutcome{}, false
		}
		return control.AgentOutcome{OK: true, PID: a.child.PID(), Text: "runs, " + origin(a.child)}, true
	case a.halt != nil && !a.halt.again:
		return no("is being stopped")
	case a.state == control.StateExited && fresh:
		return control.AgentOutcome{OK: true, Text: a.reason}, true
	case a.state == control.StateBackoff && fresh && a.endedRun == a.run:
		return no(a.lastExit)
	case a.state == control.StateFailed:
		return no(a.reason)
	case a.state == control.StateWaiting && strings.HasPrefix(a.reason, "for a host") && a.child == nil:
		return no("waits " + a.reason)
	case a.state == control.StateWaiting && c.life.hopeless(a):
		return no("waits for " + c.life.missing(a) + ", which will not run")
	case !a.wanted && a.halt == nil && a.child == nil && a.state != control.StateStarting:
		return no("was stopped")
	}
	return control.AgentOutcome{}, false
}

// lastWords returns the agent's own lines among the last 20 lines of its output.
func (a *agent) lastWords() []string {
	var words []string
	for _, line := range a.voice.Last(20) {
		if line.Stream != control.StreamOwn {
			words = append(words, line.Text)
		}
	}
	return words
}
