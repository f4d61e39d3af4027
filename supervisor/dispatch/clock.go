package dispatch

import (
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// clockStep is the least jump of the date that counts as a clock that was set.
const clockStep = time.Second

// A clock notices that the date was set. It compares the date with a clock that cannot be set.
type clock struct {
	steady func() time.Duration
	date   time.Time     // when both were compared
	at     time.Duration // steady, at that date
	seen   time.Time     // the date of the latest look
}

func newClock(steady func() time.Duration, now time.Time) clock {
	if steady == nil {
		steady = func() time.Duration { return time.Since(now) }
	}
	return clock{steady: steady, date: now.Round(0), at: steady(), seen: now.Round(0)}
}

// jump returns by how much the date was set since the two clocks were compared. Reading the steady
// clock takes a microsecond, as long as a decision. So jump does not read it within a step of its last
// look.
func (c *clock) jump(now time.Time) time.Duration {
	now = now.Round(0)
	if since := now.Sub(c.seen); since >= 0 && since < clockStep {
		return 0
	}
	by := (now.Sub(c.date) - (c.steady() - c.at)).Truncate(time.Millisecond)
	if by.Abs() >= clockStep {
		return by
	}
	c.seen = now
	return 0
}

// heedClock lets the State move its deadlines if the date was set. It must be called before any
// decision, because new deadlines count from the new date. d.mu must be held.
func (d *Dispatcher) heedClock(w *work) {
	now := time.Now()
	by := d.clock.jump(now)
	if by == 0 || d.options.ReadOnly {
		return
	}
	d.clock.date, d.clock.seen = d.clock.date.Add(by), now.Round(0)
	d.due = time.Time{} // makes rearm set the timer again: the date of a deadline may be nearer now
	d.take(d.state.Handle(handlers.Input{At: now, Message: wire.ClockSet{By: by}}), w)
	w.verdicts = w.verdicts[:len(w.verdicts)-1] // of no input
}
