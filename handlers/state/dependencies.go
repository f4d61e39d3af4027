package state

import (
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// Promises reports whether the spec of a task declares a contract.
func (t *Task) Promises(key string) bool {
	return t.Extra != nil && slices.ContainsFunc(t.Extra.Promises, func(p hub.Promise) bool { return p.Key == key })
}

// IsUnmeetable reports whether a dependency would hold a task back forever, because the other task
// failed or was cancelled.
func (t *tasks) IsUnmeetable(d hub.Dependency) bool {
	on := t.ByID[d.On].View.State
	return Gates(KindOf(d.Type)) && on.Final() && on != wire.TaskDone
}

// StaysBlocked reports whether a task stays pending after a dependency has failed, and waits for
// a person. The configuration decides, or else the protocol of its submission.
func (r *Rules) StaysBlocked(patient bool) bool {
	switch r.OnDependencyFailure {
	case "block":
		return true
	case "cancel":
		return false
	}
	return patient
}

// FindLink returns a dependency of a task, given by its id or by the id of the other task. Of
// several it prefers an unresolved one.
func (t *tasks) FindLink(k *Task, id string) (found graph.Edge, ok bool) {
	for e := range t.Graph.Needs(k.Node) {
		v := t.Graph.Edge(e)
		if linkID(v.Number) == id {
			return e, true
		}
		if t.Nodes[v.Up].View.ID == id && (!ok || t.Graph.Edge(found).Resolved && !v.Resolved) {
			found, ok = e, true
		}
	}
	return found, ok
}
