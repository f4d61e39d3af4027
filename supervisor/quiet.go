package supervisor

import (
	"orchestrator/handlers"
	"orchestrator/wire"
)

// quiet reports whether what is said in a form is answered only when it is refused: a
// message of a session, delegated work, and what is said about it. What comes of it
// are lines of their own.
func quiet(form wire.Dialect) bool {
	return form == wire.DialectSession || form == wire.DialectTaskRequest || form == wire.DialectTaskAct
}

// unspoken is the answer to something like that which was granted. It is never given.
// But until what was decided is recorded, it may still have to be refused.
func unspoken(in *handlers.Input, r *wire.Request) handlers.Letter {
	return handlers.Letter{To: in.From, Request: r.ID, Form: r.Form}
}

// tacit reports whether a letter is such an answer, or another that spells nothing.
func tacit(l handlers.Letter) bool {
	return quiet(l.Form) && isAnswer(l) && l.Refusal == nil
}
