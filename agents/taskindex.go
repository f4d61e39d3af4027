package agents

import "weak"

// taskIndex finds the tasks of an architect by id. It keeps the latest few thousand, and every
// task that a caller still refers to. Others are dropped with their updates.
type taskIndex struct {
	byID   map[string]weak.Pointer[SessionTask]
	latest []*SessionTask // a ring buffer once full
	next   int            // index of the oldest task, once full
	sweep  int            // the size of byID that starts a search for dropped tasks
}

// find returns the task with an id, or nil.
func (b *taskIndex) find(id string) *SessionTask { return b.byID[id].Value() }

// enter registers a task under an id. A task may have several ids.
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
