package agents

// remembered is how many messages of a session a connection remembers. One that
// comes again comes soon: what is repeated is what may not have arrived.
const remembered = 4096

// recent is what was known latest, by its key.
type recent[V any] struct {
	byKey map[string]V
	order []string // of the keys; a ring when it is full
	next  int      // the oldest, then
}

// add remembers something, and forgets the oldest for it. It reports whether the key
// is new: what there is under a key stays.
func (r *recent[V]) add(key string, value V) bool {
	if _, there := r.byKey[key]; there {
		return false
	}
	if r.byKey == nil {
		r.byKey = make(map[string]V)
	}
	r.byKey[key] = value
	if len(r.order) < remembered {
		r.order = append(r.order, key)
		return true
	}
	delete(r.byKey, r.order[r.next])
	r.order[r.next] = key
	r.next = (r.next + 1) % remembered
	return true
}

// take is what there is under a key, which is forgotten.
func (r *recent[V]) take(key string) (V, bool) {
	value, there := r.byKey[key]
	delete(r.byKey, key)
	return value, there
}
