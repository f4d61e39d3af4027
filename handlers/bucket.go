package handlers

import "time"

// Bucket limits how many messages an actor may send: Burst at once, and Rate a
// second after that. The zero Bucket with both set is full.
type Bucket struct {
	Rate, Burst float64

	spent float64
	at    time.Time
}

// Take takes one message out, or says that it is one too many.
func (b *Bucket) Take(now time.Time) bool {
	if past := now.Sub(b.at); past > 0 && !b.at.IsZero() { // clocks are set back, too
		b.spent = max(0, b.spent-past.Seconds()*b.Rate)
	}
	b.at = now
	if b.spent+1 > b.Burst {
		return false
	}
	b.spent++
	return true
}
