package handlers

// keysKept is how many of the latest keys with which mail was sent are known
// here. Older ones are in the record.
const keysKept = 4096

// sentKeys are the keys of the latest mail that had one. Whoever asks here has
// looked into the record before: the two together know every key as long as
// nothing has been forgotten here since that look.
type sentKeys struct {
	byKey map[sentKey]int64 // the number of the mail
	ring  []sentKey
	next  int
	floor int64 // what was sent up to this number may have been forgotten
}

type sentKey struct{ from, key string }

func newSentKeys() sentKeys { return sentKeys{byKey: make(map[sentKey]int64)} }

func (k *sentKeys) keep(from, key string, seq int64) {
	if key == "" {
		return
	}
	fresh := sentKey{from, key}
	if len(k.ring) < keysKept {
		k.ring = append(k.ring, fresh)
	} else {
		old := k.ring[k.next]
		k.floor = k.byKey[old]
		delete(k.byKey, old)
		k.ring[k.next] = fresh
		k.next = (k.next + 1) % keysKept
	}
	k.byKey[fresh] = seq
}

// find is the number of the mail that was sent with a key, 0 when none was. It
// says false when a look into the record up to a number is too old to tell.
func (k *sentKeys) find(from, key string, looked int64) (seq int64, sure bool) {
	if seq = k.byKey[sentKey{from, key}]; seq != 0 {
		return seq, true
	}
	return 0, looked >= k.floor
}
