package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// afterKill is how long a stop waits for killed process trees before it ends without them.
const afterKill = 10 * time.Second

// stoppingNotice is the reason in the notice to agents when the orchestrator stops.
const stoppingNotice = "Orchestrator stopping"

// A stopRequest is the stop of one agent.
type stopRequest struct {
	reason    string
	at        time.Time
	begun     bool // the stop sequence has begun
	signalled bool // the signal was sent
	forced    bool // the agent was killed
	again     bool // start the agent again afterwards
	crash     bool // count the start as a restart
	fully     bool // start its dependencies as well
}

// halt stops an agent that should no longer run, or that is to run with other settings.
func (l *lifecycle) halt(a *agent, h stopRequest) {
	h.at = time.Now()
	a.wanted, a.afresh = h.again, false
	if a.halt != nil { // being stopped already: only the next step changes
		a.halt.again, a.halt.crash, a.halt.fully = h.again, h.crash, h.fully
		return
	}
	switch a.state {
	case control.StateBackoff, control.StateWaiting, control.StateStopped, control.StateExited, control.StateFailed:
		l.deadlines.drop(a.due)
		a.halt = &h
		l.stopped(a, child.Ending{})
	case control.StateStarting:
		a.halt = &h // started continues the stop
		a.cancel()
	default:
		a.halt = &h
		l.beginHalt(a)
	}
}

// beginHalt begins the stop sequence: it sends the notice and ends stdin.
func (l *lifecycle) beginHalt(a *agent) {
	if a.halt == nil {
		a.halt = &stopRequest{reason: stoppingNotice, at: time.Now()}
	}
	if a.exit != nil {
		l.stopWork(a)
	}
	if a.halt.begun || a.exit != nil {
		return // dead already: ended continues when the tree is empty
	}
	a.halt.begun = true
	l.deadlines.drop(a.watch)
	l.deadlines.drop(a.proof)
	a.set(control.StateStopping, a.halt.reason)
	l.event(a, wire.Event{Kind: events.AgentStopping, Text: "asked to stop: " + a.halt.reason, Figures: wire.Figures{PID: a.child.PID()}})
	if a.NoStdin || l.stopping != nil && l.stopping.killed {
		l.signalRung(a)
		return
	}
	grace := l.within(a.patience())
	if !a.Raw {
		notice := &wire.ShutdownNotice{GracePeriod: roundUp(grace).Milliseconds(), Reason: a.halt.reason}
		line := stdio.Envelope{ID: uuid.NewString(), At: time.Now()}.AppendNotice(nil, wire.NoticeShutdown, notice)
		_, _ = a.mail.Put(stdin.OneLine(line)) // an agent that does not read gets the signal anyway
	}
	a.mail.CloseWhenEmpty()
	a.due = l.deadlines.add(time.Now().Add(grace), func() { l.signalRung(a) })
}

// roundUp rounds a duration up to a tenth of a second, because 29.999 s instead of 30 s would
// not help an agent.
func roundUp(d time.Duration) time.Duration {
	const tenth = 100 * time.Millisecond
	return (d + tenth - 1).Truncate(tenth)
}

// signalRung is the second step of the stop sequence: it signals the process group.
func (l *lifecycle) signalRung(a *agent) {
	l.deadlines.drop(a.due)
	a.halt.signalled = true
	l.stopWork(a)
	a.child.Signal(a.Stop.Signal)
	a.due = l.deadlines.add(time.Now().Add(l.within(a.Stop.Grace)), func() { killRung(a) })
}

// stopWork ends work before decisions about messages of an agent. That work may take longer than the time that the
// agent has to stop.
func (l *lifecycle) stopWork(a *agent) {
	if l.options.Workshop != nil {
		l.options.Workshop.Stop(a.Name)
	}
}

// killRung is the last step of the stop sequence: it kills the process tree.
func killRung(a *agent) {
	a.halt.forced = true
	a.child.Kill()
}

// within limits a duration to the rest of the budget of the whole stop.
func (l *lifecycle) within(d time.Duration) time.Duration {
	if l.stopping != nil {
		return max(0, min(d, time.Until(l.stopping.until)))
	}
	return d
}

// stopped completes the stop of an agent.
func (l *lifecycle) stopped(a *agent, ending child.Ending) {
	h := a.halt
	a.halt = nil
	l.deadlines.drop(a.due)
	if h == nil { // it ended by itself during the stop of all agents
		h = &stopRequest{at: time.Now()}
	}
	ran := h.begun || a.state == control.StateStopping
	hoped := a.state == control.StateBackoff || a.state == control.StateWaiting || a.state == control.StateStarting
	a.set(control.StateStopped, "")
	a.lastStop = "stopped"
	if !ran && hoped && !h.again && l.stopping == nil {
		l.dispatcher.Note(&wire.AgentGone{Agent: a.Name}) // no event reports that it will not start
	}
	if ran {
		a.lastStop = stoppedText(a, h, ending)
		l.event(a, wire.Event{
			Kind: events.AgentStopped,
			Text: a.lastStop,
			Figures: wire.Figures{
				TookMS:   time.Since(h.at).Milliseconds(),
				LeftOver: views(ending.LeftOver),
				Count:    int64(len(ending.LeftOver)),
			},
		})
	}
	if l.stopping != nil {
		l.stopping.count(ran, h.forced, ending)
	}
	if a.next != nil {
		l.adopt(a, a.next)
		l.enlist()
	}
	if a.removed {
		l.leave(a)
	}
	l.stops.gone(a)
	l.afterStop(a, h)
}

// afterStop starts a stopped agent again if that was requested.
func (l *lifecycle) afterStop(a *agent, h *stopRequest) {
	switch {
	case l.stopping != nil, a.removed:
	case h.again && h.crash:
		l.again(a)
	case h.again && h.fully:
		l.want(a, a.freely)
	case h.again:
		l.tryStart(a)
	default:
		l.idle.check()
	}
}

// stoppedText describes a stop in one line.
func stoppedText(a *agent, h *stopRequest, ending child.Ending) string {
	text := a.lastExit
	if h.forced {
		text += ", had to be killed"
	}
	if len(ending.LeftOver) > 0 {
		text += ", ended " + leftOvers(ending.LeftOver)
	}
	return fmt.Sprintf("%s (%s)", text, short(time.Since(h.at)))
}

// stopping is the ordered stop of all agents.
type stopping struct {
	*orderedStop
	at        time.Time
	until     time.Time // end of the time budget
	killed    bool      // after a second signal, or at the end of the budget
	over      bool
	forced    int
	leftOvers int
	stopped   int
	unsure    int // trees that could not be verified to be empty
	survivors []child.Process
}

// Stop begins the ordered stop. It returns at once; Run returns at its end.
func (s *Supervisor) Stop(reason string) { s.post(func() { s.life.stop(reason) }) }

// Kill stops the supervisor and kills every process tree at once.
func (s *Supervisor) Kill(reason string) {
	s.post(func() {
		s.life.stop(reason)
		s.life.killAll()
	})
}

// stop begins the ordered stop: agents without dependents are asked first.
func (l *lifecycle) stop(reason string) {
	if l.stopping != nil {
		return
	}
	now := time.Now()
	t := &stopping{at: now, until: now.Add(l.options.Shutdown)}
	for _, a := range l.order {
		l.failed = l.failed || a.state == control.StateFailed || a.state == control.StateWaiting && l.hopeless(a)
	}
	l.stopping = t
	l.event(nil, wire.Event{
		Kind:    events.OrchestratorStopping,
		Text:    fmt.Sprintf("stopping, up to %s: %s", l.options.Shutdown, reason),
		Figures: wire.Figures{DelayMS: l.options.Shutdown.Milliseconds()},
	})
	l.deadlines.add(t.until, l.killAll)
	agents := slices.Clone(l.order)
	t.orderedStop = l.stops.of(agents, func(a *agent) { l.halt(a, stopRequest{reason: stoppingNotice}) })
	l.stops.begin(t.orderedStop, agents)
}

// checkOver marks the stop as complete when all agents have stopped.
func (l *lifecycle) checkOver() {
	if t := l.stopping; t != nil && len(t.left) == 0 {
		t.over = true
	}
}

// count adds an agent that has stopped to the summary.
func (t *stopping) count(ran, forced bool, ending child.Ending) {
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

// killAll kills all agents, at the end of the budget or on request.
func (l *lifecycle) killAll() {
	t := l.stopping
	if t.killed || t.over {
		return
	}
	t.killed, t.until = true, time.Now()
	l.deadlines.add(time.Now().Add(afterKill), func() { t.over = true })
	for _, a := range slices.Clone(l.order) {
		t.ask(a)
		if a.child == nil {
			continue
		}
		if a.halt != nil {
			a.halt.forced = a.exit == nil
		}
		l.deadlines.drop(a.due)
		a.child.Kill()
	}
}

// summary records the last event: the number of stopped agents, and the outcome.
func (t *stopping) summary(l *lifecycle) {
	text := fmt.Sprintf("stopped %s in %s", count(t.stopped, "agent"), short(time.Since(t.at)))
	if t.leftOvers > 0 {
		text += ", ended " + count(t.leftOvers, "left-over process")
	}
	if t.forced > 0 {
		text += fmt.Sprintf(", %d had to be killed", t.forced)
	}
	if t.unsure > 0 {
		text += fmt.Sprintf(", %s could not be fully inspected", count(t.unsure, "tree"))
	} else if len(t.left) > 0 || len(t.survivors) > 0 {
		text += fmt.Sprintf(", %s and %s could not be ended", count(len(t.left), "agent"), count(len(t.survivors), "process"))
	} else {
		text += ", nothing left running"
	}
	l.event(nil, wire.Event{
		Kind:    events.OrchestratorStopped,
		Text:    text,
		Figures: wire.Figures{TookMS: time.Since(t.at).Milliseconds(), Count: int64(t.stopped), LeftOver: views(t.survivors), Ordered: len(t.left)+len(t.survivors)+t.unsure == 0},
	})
}

// An orderedStop stops agents in order: each one after its dependents. Agents that are to start again do so when all
// have stopped.
type orderedStop struct {
	stop  func(*agent) // asks an agent to stop
	left  map[*agent]bool
	asked map[*agent]bool
	above map[*agent]int      // number of running dependents among left
	below map[*agent][]*agent // its dependencies among left
}

// orderedStops are the ordered stops that are not complete.
type orderedStops struct {
	life    *lifecycle
	running []*orderedStop
}

// of returns an orderedStop of the agents. The caller starts it with begin.
func (o *orderedStops) of(agents []*agent, stop func(*agent)) *orderedStop {
	p := &orderedStop{
		stop: stop, left: make(map[*agent]bool), asked: make(map[*agent]bool),
		above: make(map[*agent]int), below: make(map[*agent][]*agent),
	}
	for _, a := range agents {
		p.left[a] = true
	}
	for _, a := range agents {
		for _, name := range a.DependsOn {
			if d := o.life.agents[name]; d != nil && d != a && p.left[d] {
				p.above[d]++
				p.below[a] = append(p.below[a], d)
			}
		}
	}
	return p
}

// begin starts an ordered stop with the agents that have no dependents.
func (o *orderedStops) begin(p *orderedStop, agents []*agent) {
	o.running = append(o.running, p)
	for _, a := range agents {
		if p.above[a] == 0 {
			p.ask(a)
		}
	}
	o.removeFinished()
}

// ask asks an agent to stop, once.
func (o *orderedStop) ask(a *agent) {
	if o.left[a] && !o.asked[a] {
		o.asked[a] = true
		o.stop(a)
	}
}

// gone removes an agent that has stopped from every ordered stop, and asks the agents that
// waited for it. An agent that ended by itself is removed as well.
func (o *orderedStops) gone(a *agent) {
	for _, p := range o.running {
		if !p.left[a] {
			continue
		}
		delete(p.left, a)
		p.asked[a] = true
		for _, d := range p.below[a] {
			if p.above[d]--; p.above[d] == 0 {
				p.ask(d)
			}
		}
	}
	o.removeFinished()
}

// removeFinished removes the ordered stops that are complete, and starts their agents that should run.
func (o *orderedStops) removeFinished() {
	rest := o.running[:0]
	through := false
	for _, p := range o.running {
		if len(p.left) > 0 {
			rest = append(rest, p)
		} else {
			through = true
		}
	}
	clear(o.running[len(rest):])
	o.running = rest
	o.life.checkOver()
	if through {
		for _, a := range o.life.order {
			o.life.tryStart(a)
		}
	}
}

// held reports whether an agent must not start yet because its ordered stop still runs.
func (o *orderedStops) held(a *agent) bool {
	for _, p := range o.running {
		if p.asked[a] {
			return true
		}
	}
	return false
}

// RecordBroke stops the team after recording has failed for good. Agents on hosts belong to the hub that is at work
// instead, so this hub sends them no more messages.
func (l *lifecycle) RecordBroke(err error) {
	l.post(func() {
		l.broken = err
		if l.options.Hosts != nil && l.options.Check != nil && l.options.Check.Deposed(err) != nil {
			l.options.Hosts.Leave()
		}
		l.stop("the record can no longer be written")
	})
}

// SessionClosed stops the agents that are to end with their session. Some of them may run
// elsewhere.
func (l *lifecycle) SessionClosed(r *wire.Record) {
	var over struct {
		Reason string   `json:"reason"`
		Stop   []string `json:"stop"`
	}
	if err := object.DecodeOwn(r.Payload, &over); err != nil {
		l.options.Log.Error("it cannot be read which agents end with a session", "seq", r.Seq, "error", err)
		return
	}
	if len(over.Stop) == 0 {
		return
	}
	l.post(func() {
		if l.stopping != nil {
			return // all agents are being stopped
		}
		var agents []*agent
		for _, name := range over.Stop {
			if a := l.agents[name]; a != nil && !a.removed && !slices.Contains(agents, a) {
				agents = append(agents, a)
			}
		}
		l.halts(agents, "its session was aborted: "+over.Reason)
	})
}
