package supervisor

import (
	"time"

	"orchestrator/wire"
)

// expectation is a caller that waits for what becomes of an agent. All of them
// are looked at after every turn, so that whatever happens in whatever order,
// each is answered once and none is forgotten.
type expectation struct {
	up     bool   // that it runs; else that it has stopped
	run    string // a restart: that it runs, and not as this run any more
	told   string // nothing more is to come: this is the answer
	began  time.Time
	answer func(wire.AgentOutcome)
}

// expect enters an expectation.
func (s *Supervisor) expect(a *agent, e expectation) {
	e.began = time.Now()
	a.expected = append(a.expected, e)
	s.expecting[a] = true
}

// settle answers the expectations that have come true, or cannot any more.
func (s *Supervisor) settle() {
	for a := range s.expecting {
		left := a.expected[:0]
		for _, e := range a.expected {
			outcome, done := s.judge(a, e)
			if !done {
				left = append(left, e)
				continue
			}
			outcome.Name, outcome.TookMS = a.Name, time.Since(e.began).Milliseconds()
			e.answer(outcome)
		}
		clear(a.expected[len(left):])
		if a.expected = left; len(left) == 0 {
			delete(s.expecting, a)
		}
	}
}

// judge returns what an expectation has come to, if it has.
func (s *Supervisor) judge(a *agent, e expectation) (wire.AgentOutcome, bool) {
	switch {
	case e.told != "":
		return wire.AgentOutcome{OK: true, Text: e.told}, true
	case e.up:
		return s.judgeUp(a, e)
	case a.halt != nil:
		return wire.AgentOutcome{}, false
	case a.wanted:
		return wire.AgentOutcome{Text: "was started again"}, true
	case a.child != nil || a.state == wire.StateStarting:
		return wire.AgentOutcome{}, false
	}
	return wire.AgentOutcome{OK: a.survivors == 0, Text: a.lastStop}, true
}

// judgeUp is judge for those who want the agent to run. It does when it has
// been up for a moment: a program that ends at once has not been started.
func (s *Supervisor) judgeUp(a *agent, e expectation) (wire.AgentOutcome, bool) {
	no := func(text string) (wire.AgentOutcome, bool) {
		return wire.AgentOutcome{Text: text, LastWords: a.lastWords()}, true
	}
	fresh := a.run != e.run
	switch {
	case a.removed && a.guest:
		return no("had joined by a pipe, and has left")
	case a.removed:
		return no("is no longer in the configuration")
	case a.child != nil && a.exit == nil && a.halt == nil:
		if !fresh || time.Since(a.child.StartedAt()) < good {
			return wire.AgentOutcome{}, false
		}
		return wire.AgentOutcome{OK: true, PID: a.child.PID(), Text: "runs, " + origin(a.child)}, true
	case a.halt != nil && !a.halt.again:
		return no("is being stopped")
	case a.state == wire.StateExited && fresh:
		return wire.AgentOutcome{OK: true, Text: a.reason}, true
	case a.state == wire.StateBackoff && fresh && a.endedRun == a.run:
		return no(a.lastExit)
	case a.state == wire.StateFailed:
		return no(a.reason)
	case a.state == wire.StateWaiting && s.hopeless(a):
		return no("waits for " + s.missing(a) + ", which is not going to run")
	case !a.wanted && a.halt == nil && a.child == nil && a.state != wire.StateStarting:
		return no("was stopped")
	}
	return wire.AgentOutcome{}, false
}

// lastWords are the agent's lines among the last 20, without the orchestrator's.
func (a *agent) lastWords() []string {
	var words []string
	for _, line := range a.voice.Last(20) {
		if line.Stream != wire.StreamOwn {
			words = append(words, line.Text)
		}
	}
	return words
}
