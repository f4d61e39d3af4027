package dispatch

import (
	"orchestrator/handlers"
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

// sayOperation is the operation of a session message that an agent prints.
const sayOperation = "send-session-message"

// saying reports whether an input is a session message, over any transport.
func saying(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	_, ok = r.Body.(*wire.SaySession)
	return ok
}

// quiet reports whether messages of a dialect are answered only if they are refused. This holds
// for session messages, delegated tasks and messages about them. Their results arrive as
// separate lines.
func quiet(form wire.Dialect) bool {
	return form == wire.DialectSession || form == wire.DialectTaskRequest || form == wire.DialectTaskAct
}

// unspoken returns the answer to a granted message of a quiet dialect. The answer is never
// sent, but it becomes a refusal if the decision cannot be recorded.
func unspoken(in *handlers.Input, r *wire.Request) handlers.Letter {
	return handlers.Letter{To: in.From, Request: r.ID, Form: r.Form}
}

// tacit reports whether a letter is an answer that is not sent.
func tacit(l handlers.Letter) bool {
	return quiet(l.Form) && isAnswer(l) && l.Refusal == nil
}
