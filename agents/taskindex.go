package agents

import "weak"

// taskIndex knows the tasks of an architect by their ids: the latest few thousand,
// and each that a caller holds, for it may be waited for. The others are
// forgotten, with what was said about them.
type taskIndex struct {
	byID   map[string]weak.Pointer[SessionTask]
	latest []*SessionTask // a ring when it is full
	next   int            // the oldest, then
	sweep  int            // how many entries are looked through for those that are forgotten
}

// find is a task, nil when it is not known.
func (b *taskIndex) find(id string) *SessionTask { return b.byID[id].Value() }

// enter knows a task by an id from now on. It may have others.
func (b *taskIndex) enter(id string, t *SessionTask) {
	if b.byID == nil {
		b.byID, b.sweep = make(map[string]weak.Pointer[SessionTask]), 2*remembered
	}
	b.byID[id] = weak.Make(t)
	if len(b.latest) < remembered {
		b.latest = append(b.latest, t)
	} else {
		b.latest[b.next] = t
		b.next = (b.next + 1) % remembered
	}
	if len(b.byID) < b.sweep {
		return
	}
	for id, task := range b.byID {
		if task.Value() == nil {
			delete(b.byID, id)
		}
	}
	b.sweep = max(2*remembered, 2*len(b.byID))
}
