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
func (ts *tasks) IsUnmeetable(d hub.Dependency) bool {
	on := ts.ByID[d.On].View.State
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
func (ts *tasks) FindLink(t *Task, id string) (found graph.Edge, ok bool) {
	for e := range ts.Graph.Needs(t.Node) {
		v := ts.Graph.Edge(e)
		if linkID(v.Number) == id {
			return e, true
		}
		if ts.Nodes[v.Up].View.ID == id && (!ok || ts.Graph.Edge(found).Resolved && !v.Resolved) {
			found, ok = e, true
		}
	}
	return found, ok
}
