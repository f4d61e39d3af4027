package supervisor

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// afterKill is how long a stop waits for trees that were killed before it
// ends without them.
const afterKill = 10 * time.Second

// stoppingNotice is the reason that agents are given when everything stops.
const stoppingNotice = "Orchestrator stopping"

// stopRequest is the ordered stop of one agent.
type stopRequest struct {
	reason    string
	at        time.Time
	begun     bool // the ladder has been entered
	signalled bool // the second rung has
	forced    bool // it had to be killed
	again     bool // it starts again afterwards
	crash     bool // and that counts as a restart
	fully     bool // and so do those it depends on
}

// halt stops an agent that should no longer run, or not as it does.
func (s *Supervisor) halt(a *agent, h stopRequest) {
	h.at = time.Now()
	a.wanted, a.afresh = h.again, false
	if a.halt != nil { // being stopped already: only what follows may change
		a.halt.again, a.halt.crash, a.halt.fully = h.again, h.crash, h.fully
		return
	}
	switch a.state {
	case wire.StateBackoff, wire.StateWaiting, wire.StateStopped, wire.StateExited, wire.StateFailed:
		s.deadlines.drop(a.due)
		a.halt = &h
		s.stopped(a, child.Ending{})
	case wire.StateStarting:
		a.halt = &h // started goes on from here
		a.cancel()
	default:
		a.halt = &h
		s.beginHalt(a)
	}
}

// beginHalt enters the ladder: the notice, and the end of stdin.
func (s *Supervisor) beginHalt(a *agent) {
	if a.halt == nil {
		a.halt = &stopRequest{reason: stoppingNotice, at: time.Now()}
	}
	if a.halt.begun || a.exit != nil {
		return // dead already: what follows is told when its tree is empty
	}
	a.halt.begun = true
	s.deadlines.drop(a.watch)
	s.deadlines.drop(a.proof)
	a.set(wire.StateStopping, a.halt.reason)
	s.event(a, wire.Event{Kind: wire.EventStopAsked, Text: "asked to stop: " + a.halt.reason, Figures: wire.Figures{PID: a.child.PID()}})
	if a.NoStdin || s.stopping != nil && s.stopping.killed {
		s.signalRung(a)
		return
	}
	grace := s.within(a.patience())
	if !a.Raw {
		notice := &wire.ShutdownNotice{GracePeriod: roundUp(grace).Milliseconds(), Reason: a.halt.reason}
		line := wire.Envelope{ID: messageID(), At: time.Now()}.AppendNotice(nil, wire.NoticeShutdown, notice)
		_, _ = a.mail.Put(stdin.OneLine(line)) // one that takes nothing is signalled all the same
	}
	a.mail.CloseWhenEmpty()
	a.due = s.deadlines.add(time.Now().Add(grace), func() { s.signalRung(a) })
}

// roundUp spells a time to the tenth of a second: an agent that is told 29.999 s
// of 30 learns nothing from it.
func roundUp(d time.Duration) time.Duration {
	const tenth = 100 * time.Millisecond
	return (d + tenth - 1).Truncate(tenth)
}

// signalRung is the second rung: the signal to the group.
func (s *Supervisor) signalRung(a *agent) {
	s.deadlines.drop(a.due)
	a.halt.signalled = true
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
	s.deadlines.drop(a.due)
	if h == nil { // it ended by itself while everything was being stopped
		h = &stopRequest{at: time.Now()}
	}
	ran := h.begun || a.state == wire.StateStopping
	hoped := a.state == wire.StateBackoff || a.state == wire.StateWaiting || a.state == wire.StateStarting
	a.set(wire.StateStopped, "")
	a.lastStop = "stopped"
	if !ran && hoped && !h.again && s.stopping == nil {
		s.dispatcher.note(&wire.AgentGone{Agent: a.Name}) // it was to start, and no event tells that it does not
	}
	if ran {
		a.lastStop = s.stoppedText(a, h, ending)
		s.event(a, wire.Event{
			Kind: wire.EventStopped,
			Text: a.lastStop,
			Figures: wire.Figures{
				TookMS:   time.Since(h.at).Milliseconds(),
				LeftOver: views(ending.LeftOver),
				Count:    int64(len(ending.LeftOver)),
			},
		})
	}
	if s.stopping != nil {
		s.stopping.count(a, ran, h.forced, ending)
	}
	if a.next != nil {
		s.adopt(a, *a.next)
		s.enlist()
	}
	if a.removed {
		s.leave(a)
	}
	s.gone(a)
	s.afterStop(a, h)
}

// afterStop does what comes after a stop: a start, or nothing.
func (s *Supervisor) afterStop(a *agent, h *stopRequest) {
	switch {
	case s.stopping != nil, a.removed:
	case h.again && h.crash:
		s.again(a)
	case h.again && h.fully:
		s.want(a, a.freely)
	case h.again:
		s.tryStart(a)
	default:
		s.checkIdle()
	}
}

// stoppedText tells a stop in one line.
func (s *Supervisor) stoppedText(a *agent, h *stopRequest, ending child.Ending) string {
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
	*orderedStop
	at        time.Time
	until     time.Time // the end of the one budget
	killed    bool      // by a second signal, or because the budget was used up
	over      bool
	forced    int
	leftOvers int
	stopped   int
	unsure    int // trees that could not be looked at to the end
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
	t := &stopping{at: now, until: now.Add(s.options.Shutdown)}
	for _, a := range s.order {
		s.failed = s.failed || a.state == wire.StateFailed || a.state == wire.StateWaiting && s.hopeless(a)
	}
	s.stopping = t
	s.event(nil, wire.Event{
		Kind:    wire.EventStopping,
		Text:    fmt.Sprintf("stopping, up to %s: %s", s.options.Shutdown, reason),
		Figures: wire.Figures{DelayMS: s.options.Shutdown.Milliseconds()},
	})
	s.deadlines.add(t.until, s.killAll)
	agents := slices.Clone(s.order)
	t.orderedStop = s.newProcession(agents, func(a *agent) { s.halt(a, stopRequest{reason: stoppingNotice}) })
	s.begin(t.orderedStop, agents)
}

// checkOver notices that everything has been stopped.
func (s *Supervisor) checkOver() {
	if t := s.stopping; t != nil && len(t.left) == 0 {
		t.over = true
	}
}

// count adds an agent that has stopped to the summary.
func (t *stopping) count(a *agent, ran, forced bool, ending child.Ending) {
	t.leftOvers += len(ending.LeftOver)
	t.survivors = append(t.survivors, ending.Survivors...)
	if ran {
		t.stopped++
	}
	if ending.Unverified {
		t.unsure++
	}
	if forced {
		t.forced++
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
	for _, a := range slices.Clone(s.order) {
		t.ask(a)
		if a.child == nil {
			continue
		}
		if a.halt != nil {
			a.halt.forced = a.exit == nil
		}
		s.deadlines.drop(a.due)
		a.child.Kill()
	}
}

// summary is the last event: what was stopped and how.
func (t *stopping) summary(s *Supervisor) {
	text := fmt.Sprintf("stopped %s in %s", count(t.stopped, "agent"), short(time.Since(t.at)))
	if t.leftOvers > 0 {
		text += ", ended " + count(t.leftOvers, "left-over process")
	}
	if t.forced > 0 {
		text += fmt.Sprintf(", %d had to be killed", t.forced)
	}
	if t.unsure > 0 {
		text += fmt.Sprintf(", %s could not be looked at to the end", count(t.unsure, "tree"))
	} else if len(t.left) > 0 || len(t.survivors) > 0 {
		text += fmt.Sprintf(", %s and %s could not be ended", count(len(t.left), "agent"), count(len(t.survivors), "process"))
	} else {
		text += ", nothing left running"
	}
	s.event(nil, wire.Event{
		Kind:    wire.EventDown,
		Text:    text,
		Figures: wire.Figures{TookMS: time.Since(t.at).Milliseconds(), Count: int64(t.stopped), LeftOver: views(t.survivors)},
	})
}
