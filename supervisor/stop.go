package supervisor

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// afterKill is how long a stop waits for trees that were killed before it
// ends without them.
const afterKill = 10 * time.Second

// stoppingNotice is the reason that agents are given when everything stops.
const stoppingNotice = "Orchestrator stopping"

// halt is the ordered stop of one agent.
type halt struct {
	reason string
	at     time.Time
	begun  bool // the ladder has been entered
	forced bool // it had to be killed
	again  bool // it starts again afterwards
	crash  bool // and that counts as a restart
}

// halt stops an agent that should no longer run, or not as it does.
func (s *Supervisor) halt(a *agent, h halt) {
	h.at = time.Now()
	a.wanted = h.again
	if a.halt != nil { // being stopped already: only what follows may change
		a.halt.again, a.halt.crash = h.again, h.crash
		return
	}
	switch a.state {
	case wire.StateBackoff, wire.StateWaiting, wire.StateStopped, wire.StateExited, wire.StateFailed:
		s.deadlines.drop(a.due)
		a.halt = &h
		s.stopped(a, child.Ending{})
	case wire.StateStarting:
		a.halt = &h // started goes on from here
	default:
		a.halt = &h
		s.beginHalt(a)
	}
}

// beginHalt enters the ladder: the notice, and the end of stdin.
func (s *Supervisor) beginHalt(a *agent) {
	if a.halt == nil {
		a.halt = &halt{reason: stoppingNotice, at: time.Now()}
	}
	if a.halt.begun || a.exit != nil {
		return // dead already: what follows is told when its tree is empty
	}
	a.halt.begun = true
	s.deadlines.drop(a.watch)
	s.deadlines.drop(a.proof)
	a.set(wire.StateStopping, a.halt.reason)
	s.event(a, wire.Event{Kind: wire.EventStopAsked, Text: "asked to stop: " + a.halt.reason, Facts: wire.Facts{PID: a.child.PID()}})
	if a.NoStdin || s.stopping != nil && s.stopping.killed {
		s.signalRung(a)
		return
	}
	if !a.Raw {
		grace := s.within(a.Stop.CloseStdin + a.Stop.Grace)
		notice := wire.Shutdown(uuid.NewString(), time.Now(), grace, a.halt.reason)
		if line, err := wire.Encode(notice); err == nil {
			_, _ = a.mail.put(append(line, '\n')) // one that takes nothing is signalled all the same
		}
	}
	a.mail.end()
	a.due = s.deadlines.add(time.Now().Add(s.within(a.Stop.CloseStdin)), func() { s.signalRung(a) })
}

// signalRung is the second rung: the signal to the group.
func (s *Supervisor) signalRung(a *agent) {
	a.child.Signal(a.Stop.Signal)
	a.due = s.deadlines.add(time.Now().Add(s.within(a.Stop.Grace)), func() { s.killRung(a) })
}

// killRung is the last one: the whole tree, without asking.
func (s *Supervisor) killRung(a *agent) {
	a.halt.forced = true
	a.child.Kill()
}

// within cuts a time short where the budget of the whole stop ends before it.
func (s *Supervisor) within(d time.Duration) time.Duration {
	if s.stopping != nil {
		return max(0, min(d, time.Until(s.stopping.until)))
	}
	return d
}

// stopped is the end of an ordered stop.
func (s *Supervisor) stopped(a *agent, ending child.Ending) {
	h := a.halt
	a.halt = nil
	if h == nil { // it ended by itself while everything was being stopped
		h = &halt{at: time.Now()}
	}
	ran := h.begun || a.state == wire.StateStopping
	a.set(wire.StateStopped, "")
	text := "stopped"
	if ran {
		text = s.stoppedText(a, h, ending)
		s.event(a, wire.Event{
			Kind: wire.EventStopped,
			Text: text,
			Facts: wire.Facts{
				TookMS:   time.Since(h.at).Milliseconds(),
				LeftOver: views(ending.LeftOver),
				Count:    int64(len(ending.LeftOver)),
			},
		})
	}
	a.answerStart(false, "was stopped")
	a.answerStop(len(ending.Survivors) == 0, text) // a restart asks for the start now
	switch {
	case s.stopping != nil:
		s.stopping.ended(s, a, ran, h.forced, ending)
	case a.removed:
		s.leave(a)
	case h.again && h.crash:
		s.again(a)
	case h.again:
		s.want(a, a.freely)
	default:
		s.checkIdle()
	}
}

// stoppedText tells a stop in one line.
func (s *Supervisor) stoppedText(a *agent, h *halt, ending child.Ending) string {
	text := a.lastExit
	if h.forced {
		text += ", had to be killed"
	}
	if len(ending.LeftOver) > 0 {
		text += ", ended " + leftOvers(ending.LeftOver)
	}
	return fmt.Sprintf("%s (%s)", text, short(time.Since(h.at)))
}

// stopping is the ordered stop of everything.
type stopping struct {
	reason    string
	at        time.Time
	until     time.Time // the end of the one budget
	killed    bool      // by a second signal, or because the budget was used up
	over      bool
	left      int            // agents that are not stopped yet
	above     map[*agent]int // how many of those that depend on it still run
	below     map[*agent][]*agent
	asked     map[*agent]bool
	forced    []string
	leftOvers int
	stopped   int
	survivors []child.Process
}

// Stop begins the ordered stop. It returns at once; Run returns at its end.
func (s *Supervisor) Stop(reason string) { s.post(func() { s.stop(reason) }) }

// Kill ends every tree now.
func (s *Supervisor) Kill(reason string) {
	s.post(func() {
		s.stop(reason)
		s.killAll()
	})
}

// stop asks the agents that nothing depends on to end, and so on downwards.
func (s *Supervisor) stop(reason string) {
	if s.stopping != nil {
		return
	}
	now := time.Now()
	t := &stopping{
		reason: reason, at: now, until: now.Add(s.options.Shutdown), left: len(s.order),
		above: make(map[*agent]int), below: make(map[*agent][]*agent), asked: make(map[*agent]bool),
	}
	s.stopping = t
	s.event(nil, wire.Event{
		Kind:  wire.EventStopping,
		Text:  fmt.Sprintf("stopping, up to %s: %s", s.options.Shutdown, reason),
		Facts: wire.Facts{DelayMS: s.options.Shutdown.Milliseconds()},
	})
	for _, a := range s.order {
		for _, name := range a.DependsOn {
			if d := s.agents[name]; d != nil && d != a {
				t.above[d]++
				t.below[a] = append(t.below[a], d)
			}
		}
	}
	s.deadlines.add(t.until, s.killAll)
	if t.left == 0 {
		t.over = true
	}
	for _, a := range s.order {
		if t.above[a] == 0 {
			s.haltFor(a)
		}
	}
}

// haltFor stops an agent, once, as part of the stop of everything.
func (s *Supervisor) haltFor(a *agent) {
	if t := s.stopping; !t.asked[a] {
		t.asked[a] = true
		s.halt(a, halt{reason: stoppingNotice})
	}
}

// ended counts an agent down and goes on to those that it depended on.
func (t *stopping) ended(s *Supervisor, a *agent, ran, forced bool, ending child.Ending) {
	t.left--
	t.leftOvers += len(ending.LeftOver)
	t.survivors = append(t.survivors, ending.Survivors...)
	if ran {
		t.stopped++
	}
	if forced {
		t.forced = append(t.forced, a.Name)
	}
	if t.left == 0 {
		t.over = true
		return
	}
	for _, d := range t.below[a] {
		if t.above[d]--; t.above[d] == 0 {
			s.haltFor(d)
		}
	}
}

// killAll is the end of the budget, or of a person's patience.
func (s *Supervisor) killAll() {
	t := s.stopping
	if t.killed || t.over {
		return
	}
	t.killed, t.until = true, time.Now()
	s.deadlines.add(time.Now().Add(afterKill), func() { t.over = true })
	for _, a := range s.order {
		s.haltFor(a)
		if a.child != nil {
			a.halt.forced = a.exit == nil
			s.deadlines.drop(a.due)
			a.child.Kill()
		}
	}
}

// summary is the last event: what was stopped and how.
func (t *stopping) summary(s *Supervisor) {
	text := fmt.Sprintf("stopped %s in %s", count(t.stopped, "agent"), short(time.Since(t.at)))
	if t.leftOvers > 0 {
		text += ", ended " + count(t.leftOvers, "left-over process")
	}
	if len(t.forced) > 0 {
		text += fmt.Sprintf(", %d had to be killed", len(t.forced))
	}
	if t.left > 0 || len(t.survivors) > 0 {
		text += fmt.Sprintf(", %s and %s could not be ended", count(t.left, "agent"), count(len(t.survivors), "process"))
	} else {
		text += ", nothing left running"
	}
	s.event(nil, wire.Event{
		Kind:  wire.EventDown,
		Text:  text,
		Facts: wire.Facts{TookMS: time.Since(t.at).Milliseconds(), Count: int64(t.stopped), LeftOver: views(t.survivors)},
	})
}
