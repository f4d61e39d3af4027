package state

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// StoodStill records that the orchestrator, or its machine, was suspended. Silence in that time
// does not count.
type StoodStill struct{}

func (*StoodStill) kind() string { return events.OrchestratorStoodStill }

func (*StoodStill) apply(s *State, r *wire.Record) {
	s.StartedAt = r.At
	s.resetSilence(r.At)
}

func (*StoodStill) tell(e *wire.Event) { e.Text = "the orchestrator has stood still for a while" }

// ClockSet records that the clock of the machine was set. Every deadline that counts from a moment
// moves with the clock, so its remaining time stays the same. A moment that somebody named as a
// date stays: the time of a postponed task, the end of a limit, the deadline of an assignment.
type ClockSet struct {
	By int64 `json:"by_ms"` // negative: it was set back
}

func (*ClockSet) kind() string { return events.OrchestratorClockSet }

func (c *ClockSet) apply(s *State, _ *wire.Record) {
	by := time.Duration(c.By) * time.Millisecond
	s.StartedAt = s.StartedAt.Add(by)
	for _, q := range s.Questions.Deadlines {
		q.Deadline, q.Until = shifted(q.Deadline, by), shifted(q.Until, by)
		q.View.Deadline = Stamped(q.Deadline)
	}
	for _, t := range s.Tasks.List {
		if at, ok := object.ParseTime(t.View.StartedAt); ok && !t.View.State.Final() { // its time is limited
			s.Tasks.beforeChange(t)
			t.View.StartedAt = object.Timestamp(at.Add(by))
		}
	}
	for _, a := range s.Agents.Online {
		a.Remote.Seen = a.Remote.Seen.Add(by)
	}
	for _, a := range s.Bus.Expected() {
		a.Beat = a.Beat.Add(by)
	}
	for _, p := range s.Sessions.Posted {
		p.Next = p.Next.Add(by)
	}
	for _, w := range slices.Clone(s.Sessions.Watched) {
		s.Sessions.Watched.Drop(w)
		w.Begun, w.Heard = shifted(w.Begun, by), shifted(w.Heard, by)
		s.WatchWork(w)
	}
	for _, d := range s.Delegations.Due {
		s.Tasks.beforeChange(d.Task)
		d.Next, d.Asked, d.Due = shifted(d.Next, by), shifted(d.Asked, by), d.Due.Add(by)
	}
}

func (c *ClockSet) tell(e *wire.Event) {
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
