package agents

// remembered is how many session messages a connection remembers. Duplicates arrive soon,
// because only messages that may not have arrived are repeated.
const remembered = 4096

// recent holds the latest values by key.
type recent[V any] struct {
	byKey map[string]V
	order []string // keys; a ring buffer once full
	next  int      // index of the oldest key, once full
}

// add adds a value and drops the oldest one if full. It reports whether the key is new; the
// value of a known key stays.
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

// take removes and returns the value of a key.
func (r *recent[V]) take(key string) (V, bool) {
	value, there := r.byKey[key]
	delete(r.byKey, key)
	return value, there
}
