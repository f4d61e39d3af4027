package supervisor

import (
	"time"

	"orchestrator/wire/control"
)

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

// settle answers the expectations that are fulfilled or cannot be fulfilled any more.
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

// judgeUp is judge for expectations that the agent runs. The agent must have been up for the
// time good, because a program that ends at once does not count as started.
func (c *callers) judgeUp(a *agent, e expectation) (control.AgentOutcome, bool) {
	no := func(text string) (control.AgentOutcome, bool) {
		return control.AgentOutcome{Text: text, LastWords: a.lastWords()}, true
	}
	fresh := a.run != e.run
	switch {
	case a.removed && a.guest:
		return no("had joined by a pipe, and has left")
	case a.removed:
		return no("is no longer in the configuration")
	case a.child != nil && a.exit == nil && a.halt == nil:
		if !fresh || time.Since(a.child.StartedAt()) < good {
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
	case a.state == control.StateWaiting && c.life.hopeless(a):
		return no("waits for " + c.life.missing(a) + ", which is not going to run")
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
