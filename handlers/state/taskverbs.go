package state

import (
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// TooManyOpen refuses another task of an agent that has as many open ones as it may.
func (as *agents) TooManyOpen(from Actor) *wire.Error {
	if from.Kind != Agent {
		return nil
	}
	a := as.ByID[from.Name]
	if a == nil || a.OpenTasks == 0 || a.submitted < a.OpenTasks {
		return nil
	}
	return Errorf(wire.CodeLimited, Details{"reason": "too_many_tasks", "open": a.submitted, "limit": a.OpenTasks},
		"%s that you submitted are open, which is the limit: submit more when some have ended", Counted(a.submitted, "task"))
}

func (as *agents) ParentOf(agent string) string {
	a := as.ByID[agent]
	if a == nil {
		return ""
	}
	for _, t := range a.Holds {
		if t.Busy() {
			return t.View.ID
		}
	}
	return ""
}

// IsDown reports whether an agent of this team has no process. A task that starts before the next
// run would have no agent: only assigned tasks are announced to the next run.
func (as *agents) IsDown(name string) bool {
	a := as.ByID[name]
	return a != nil && a.Remote == nil && !a.Online()
}

// Waits returns the refusal to start a task that waits for other tasks.
func (ts *tasks) Waits(t *Task) *wire.Error {
	return Errorf(wire.CodeConflict, Details{"taskId": t.View.ID, "reason": "blocked", "waitsFor": ts.WaitsFor(t)}, "task %s waits for other tasks", t.Label())
}

// Wrapped returns a result in its stored form. A text becomes a document with its author.
func (a *Actor) Wrapped(r *hub.Result) *hub.Result {
	if r.Document[0] != '"' {
		return r
	}
	document := append([]byte(`{"summary":`), r.Document...)
	document = append(document, `,"completed_by":`...)
	return &hub.Result{Document: append(object.AppendText(document, a.String()), '}')}
}

// ClassWords returns the class of a failure in parentheses, or "".
func ClassWords(class string) string {
	if class == "" {
		return ""
	}
	return " (" + class + ")"
}
