package serve

import (
	"strings"

	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// session shows what is said in sessions, and what comes of it: "~" for what one
// member says to another. What follows from a message and is told of its task as
// well is not shown twice. It says false for what is no matter of sessions, and for
// trouble, which looks as all trouble does.
func (c *console) session(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventSessionSaid:
		if !strings.Contains(text, wire.TypeTaskProgress) { // its task says the same
			c.put(l.At, e.Agent, p.Dim("~"), p.Dim(text))
		}
	case wire.EventSessionOpened:
		c.put(l.At, e.Agent, p.Dim("."), p.Dim(text))
	case wire.EventReviewDecided:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case wire.EventSessionDelivered, wire.EventSessionAssigned, wire.EventSessionRepeated, wire.EventSessionMoved,
		wire.EventSessionCompleted, wire.EventReviewRequested:
	default:
		return false
	}
	return true
}

// calmSession reports whether what happened in a session is as it should be, and needs
// no agent.
func calmSession(kind string) bool {
	switch kind {
	case wire.EventSessionSaid, wire.EventSessionOpened, wire.EventReviewDecided, wire.EventSessionDelivered, wire.EventSessionAssigned,
		wire.EventSessionRepeated, wire.EventSessionMoved, wire.EventSessionCompleted, wire.EventReviewRequested, wire.EventReviewExtended:
		return true
	}
	return false
}
