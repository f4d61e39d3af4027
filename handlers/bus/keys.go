package bus

import (
	"fmt"

	"orchestrator/wire"
)

// MaxKeys is the number of recent idempotency keys that are kept here. Older ones are in the
// log.
const MaxKeys = 4096

// Keys holds the keys of the latest mail. Together with an earlier search of the log it knows
// every key, as long as no key was dropped here since that search.
type Keys struct {
	byKey map[sentKey]Sent
	ring  []sentKey
	next  int
	floor int64 // keys of records up to this number may have been dropped
}

type sentKey struct{ from, key string }

// Sent is the message that was sent with a key: the number of its record, and a checksum if the
// same key with other content is refused.
type Sent struct {
	Seq int64
	Sum uint64
}

// NewKeys returns Keys that may lack the keys of records up to a number.
func NewKeys(floor int64) Keys { return Keys{byKey: make(map[sentKey]Sent), floor: floor} }

// Keep keeps a key, unless it is "".
func (k *Keys) Keep(from, key string, what Sent) {
	if key == "" {
		return
	}
	fresh := sentKey{from, key}
	if len(k.ring) < MaxKeys {
		k.ring = append(k.ring, fresh)
	} else {
		old := k.ring[k.next]
		k.floor = k.byKey[old].Seq
		delete(k.byKey, old)
		k.ring[k.next] = fresh
		k.next = (k.next + 1) % MaxKeys
	}
	k.byKey[fresh] = what
}

// find returns the message that was sent with a key, or a zero Sent. sure is false if the search of
// the log, up to record looked, is too old.
func (k *Keys) find(from, key string, looked int64) (what Sent, sure bool) {
	if what = k.byKey[sentKey{from, key}]; what.Seq != 0 {
		return what, true
	}
	return Sent{}, looked >= k.floor
}

// Before returns the message that an actor has sent with a key. sure is false if the Lookup does
// not suffice.
func (k *Keys) Before(l *wire.Lookup, from, key string) (what Sent, sure bool) {
	if key == "" {
		return Sent{}, true
	}
	if l.Sender != from {
		return Sent{}, false // the agent was another actor when it was looked up
	}
	if l.Before != 0 {
		return Sent{Seq: l.Before, Sum: l.Sum}, true
	}
	return k.find(from, key, l.Looked)
}

// Check returns an error unless each kept key occurs once and all dropped ones are older. It is for
// tests.
func (k *Keys) Check() error {
	if len(k.ring) > MaxKeys || len(k.ring) != len(k.byKey) {
		return fmt.Errorf("%d keys are in the ring, %d are known", len(k.ring), len(k.byKey))
	}
	for _, key := range k.ring {
		if k.byKey[key].Seq <= k.floor {
			return fmt.Errorf("the key of record %d is kept, and later ones were dropped", k.byKey[key].Seq)
		}
	}
	return nil
}
