package handlers

// keysKept is how many of the latest keys with which mail was sent, and session
// messages were said, are known here. Older ones are in the record.
const keysKept = 4096

// sentKeys are the keys of the latest mail that had one. The caller has
// looked into the record before: the two together know every key as long as
// nothing has been forgotten here since that look.
type sentKeys struct {
	byKey map[sentKey]keyed
	ring  []sentKey
	next  int
	floor int64 // what was sent up to this number may have been forgotten
}

type sentKey struct{ from, key string }

// keyed is what was sent with a key: the number of its record, and a sum of what it
// says where the same key with other words is refused.
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

// find is what was sent with a key, nothing when none was. It says false when a
// look into the record up to a number is too old to tell.
func (k *sentKeys) find(from, key string, looked int64) (what keyed, sure bool) {
	if what = k.byKey[sentKey{from, key}]; what.seq != 0 {
		return what, true
	}
	return keyed{}, looked >= k.floor
}
