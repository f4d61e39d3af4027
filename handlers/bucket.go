package handlers

import "time"

// A Bucket limits how many messages an actor may send: Burst at once, and then Rate a second. A
// new Bucket with both fields set is full.
type Bucket struct {
	Rate, Burst float64

	spent float64
	at    time.Time
}

// Take takes one message out. It reports false if the limit is reached.
func (b *Bucket) Take(now time.Time) bool {
	if past := now.Sub(b.at); past > 0 && !b.at.IsZero() { // clocks may be set back
		b.spent = max(0, b.spent-past.Seconds()*b.Rate)
	}
	b.at = now
	if b.spent+1 > b.Burst {
		return false
	}
	b.spent++
	return true
}
