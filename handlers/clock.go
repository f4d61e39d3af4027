package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// stoodStill records that the orchestrator, or its machine, was suspended. Silence in that time
// does not count.
type stoodStill struct{}

func (*stoodStill) kind() string { return events.OrchestratorStoodStill }

func (*stoodStill) apply(s *core, r *wire.Record) {
	s.since = r.At
	stirred(s, r.At)
}

func (*stoodStill) tell(e *wire.Event) { e.Text = "the orchestrator has stood still for a while" }

// clockSet records that the clock of the machine was set. Every deadline that counts from a moment
// moves with the clock, so its remaining time stays the same. A moment that somebody named as a
// date stays: the time of a postponed task, the end of a limit, the deadline of an assignment.
type clockSet struct {
	By int64 `json:"by_ms"` // negative: it was set back
}

func (*clockSet) kind() string { return events.OrchestratorClockSet }

func (c *clockSet) apply(s *core, _ *wire.Record) {
	by := time.Duration(c.By) * time.Millisecond
	s.since = s.since.Add(by)
	for _, q := range s.questions.deadlines {
		q.deadline, q.until = shifted(q.deadline, by), shifted(q.until, by)
		q.view.Deadline = stamped(q.deadline)
	}
	for _, k := range s.tasks.list {
		if at, ok := object.ParseTime(k.view.StartedAt); ok && !k.view.State.Final() { // its time is limited
			s.tasks.beforeChange(k)
			k.view.StartedAt = object.Timestamp(at.Add(by))
		}
	}
	for _, a := range s.agents.online {
		a.remote.seen = a.remote.seen.Add(by)
	}
	for _, a := range s.bus.Expected() {
		a.Beat = a.Beat.Add(by)
	}
	for _, p := range s.sessions.posted {
		p.next = p.next.Add(by)
	}
	for _, w := range slices.Clone(s.sessions.watched) {
		s.sessions.watched.Drop(w)
		w.begun, w.heard = shifted(w.begun, by), shifted(w.heard, by)
		s.watchWork(w)
	}
	for _, d := range s.delegations.due {
		s.tasks.beforeChange(d.task)
		d.next, d.asked, d.due = shifted(d.next, by), shifted(d.asked, by), d.due.Add(by)
	}
}

func (c *clockSet) tell(e *wire.Event) {
	by, way := time.Duration(c.By)*time.Millisecond, "forward"
	if by < 0 {
		by, way = -by, "back"
	}
	e.Text = fmt.Sprintf("the clock of the machine was set %s by %s: deadlines keep their remaining time", way, by)
}

// shifted returns a time moved by a duration. The zero time means never, and stays.
func shifted(at time.Time, by time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(by)
}
