package supervisor

import (
	"orchestrator/wire"
)

// called is what a message is called in the audit, and by those who count: the name
// of its kind on the line that it came on, in its two parts.
type called struct{ class, name string }

func (c called) String() string { return c.class + c.name }

// The classes of messages.
const (
	classRequest = "request:"
	classEvent   = "event:"
	classSession = "session:"
	classTask    = "task:" // delegated work, and what is said about it
)

// acts are the operations of what is said about a task by who has asked for it.
var acts = map[string]string{"get-task-response": "status", "update-task-request": "update", "cancel-task": "cancel"}

// calledOf is what a request is called.
func calledOf(r *wire.Request) called {
	switch r.Form {
	case wire.DialectSession:
		if said, ok := r.Body.(*wire.SaySession); ok {
			return called{class: classSession, name: said.Type}
		}
	case wire.DialectTaskRequest:
		return called{class: classTask, name: "request"}
	case wire.DialectTaskAct:
		return called{class: classTask, name: acts[r.Operation]}
	}
	return called{class: classRequest, name: r.Operation}
}

// calledIn is what something is called that is told.
func calledIn(r *wire.AgentEvent) called {
	if r.Name == wire.ReportTaskResponse {
		return called{class: classTask, name: "response"}
	}
	return called{class: classEvent, name: r.Name}
}
