package handlers

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
