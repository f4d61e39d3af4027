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
func (ti *taskIndex) find(id string) *SessionTask { return ti.byID[id].Value() }

// enter registers a task under an id. A task may have several ids.
func (ti *taskIndex) enter(id string, t *SessionTask) {
	if ti.byID == nil {
		ti.byID, ti.sweep = make(map[string]weak.Pointer[SessionTask]), 2*remembered
	}
	ti.byID[id] = weak.Make(t)
	if len(ti.latest) < remembered {
		ti.latest = append(ti.latest, t)
	} else {
		ti.latest[ti.next] = t
		ti.next = (ti.next + 1) % remembered
	}
	if len(ti.byID) < ti.sweep {
		return
	}
	for id, task := range ti.byID {
		if task.Value() == nil {
			delete(ti.byID, id)
		}
	}
	ti.sweep = max(2*remembered, 2*len(ti.byID))
}
