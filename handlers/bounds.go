package handlers

import (
	"slices"
	"time"
)

// An orderedSet is a list of texts without duplicates, in the order of insertion. It may be as
// long as a line, so a long one has a map.
type orderedSet struct {
	texts []string
	known map[string]struct{} // nil while they are few
}

const few = 16

func (o *orderedSet) add(text string) {
	if o.known == nil && len(o.texts) < few {
		if !slices.Contains(o.texts, text) {
			o.texts = append(o.texts, text)
		}
		return
	}
	if o.known == nil {
		o.known = make(map[string]struct{})
		for _, t := range o.texts {
			o.known[t] = struct{}{}
		}
	}
	if _, known := o.known[text]; !known {
		o.known[text] = struct{}{}
		o.texts = append(o.texts, text)
	}
}

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
