package serve

import (
	"strings"

	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// session prints an event of a session, with "~" for messages between members. It omits
// events that repeat one of the task. It returns false for other events, and for failures,
// which the caller prints.
func (c *console) session(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventSessionSaid:
		if !strings.Contains(text, session.TypeTaskProgress) { // the event of the task tells the same
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

// calmSession reports whether a kind of session event is routine.
func calmSession(kind string) bool {
	switch kind {
	case wire.EventSessionSaid, wire.EventSessionOpened, wire.EventReviewDecided, wire.EventSessionDelivered, wire.EventSessionAssigned,
		wire.EventSessionRepeated, wire.EventSessionMoved, wire.EventSessionCompleted, wire.EventReviewRequested, wire.EventReviewExtended:
		return true
	}
	return false
}
