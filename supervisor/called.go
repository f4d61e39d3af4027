package supervisor

import (
	"orchestrator/wire"
)

// called is the name of a message's kind in the audit and in counters, in two parts.
type called struct{ class, name string }

func (c called) String() string { return c.class + c.name }

// The classes of messages.
const (
	classRequest = "request:"
	classEvent   = "event:"
	classSession = "session:"
	classTask    = "task:" // delegated tasks and messages about them
)

// acts maps each operation that a requester uses on its delegated task to its name.
var acts = map[string]string{"get-task-response": "status", "update-task-request": "update", "cancel-task": "cancel"}

// calledOf returns the name of a request.
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

// calledIn returns the name of an agent's event.
func calledIn(r *wire.AgentEvent) called {
	if r.Name == wire.ReportTaskResponse {
		return called{class: classTask, name: "response"}
	}
	return called{class: classEvent, name: r.Name}
}
