package supervisor

import (
	"orchestrator/handlers"
	"orchestrator/wire"
)

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
