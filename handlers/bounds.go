package handlers

import (
	"slices"
	"time"
)

// keysKept is the number of recent idempotency keys that are kept here. Older ones are in the
// log.
const keysKept = 4096

// sentKeys holds the keys of the latest mail. Together with an earlier search of the log it
// knows every key, as long as no key was dropped here since that search.
type sentKeys struct {
	byKey map[sentKey]keyed
	ring  []sentKey
	next  int
	floor int64 // keys of records up to this number may have been dropped
}

type sentKey struct{ from, key string }

// A keyed is what was sent with a key: the number of its record, and a checksum if the same key
// with other content is refused.
type keyed struct {
	seq int64
	sum uint64
}

func newSentKeys() sentKeys { return sentKeys{byKey: make(map[sentKey]keyed)} }

func (k *sentKeys) keep(from, key string, what keyed) {
	if key == "" {
		return
	}
	fresh := sentKey{from, key}
	if len(k.ring) < keysKept {
		k.ring = append(k.ring, fresh)
	} else {
		old := k.ring[k.next]
		k.floor = k.byKey[old].seq
		delete(k.byKey, old)
		k.ring[k.next] = fresh
		k.next = (k.next + 1) % keysKept
	}
	k.byKey[fresh] = what
}

// find returns what was sent with a key, if anything. sure is false if the search of the log, up
// to record looked, is too old.
func (k *sentKeys) find(from, key string, looked int64) (what keyed, sure bool) {
	if what = k.byKey[sentKey{from, key}]; what.seq != 0 {
		return what, true
	}
	return keyed{}, looked >= k.floor
}

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
