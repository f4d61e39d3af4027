package console

import (
	"strings"

	"orchestrator/supervisor/output"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// session prints an event of a session, with "~" for messages between members. It omits
// events that repeat one of the task. It returns false for other events, and for failures,
// which the caller prints.
func (c *Console) session(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case events.SessionMessage:
		if !strings.Contains(text, session.TypeTaskProgress) { // the event of the task tells the same
			c.put(l.At, e.Agent, p.Dim("~"), p.Dim(text))
		}
	case events.SessionOpened:
		c.put(l.At, e.Agent, p.Dim("."), p.Dim(text))
	case events.ReviewDecided:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case events.SessionDelivered, events.SessionAssigned, events.SessionReassigned, events.SessionMoved,
		events.SessionCompleted, events.ReviewRequested:
	default:
		return false
	}
	return true
}

// calmSession reports whether a kind of session event is routine.
func calmSession(kind string) bool {
	switch kind {
	case events.SessionMessage, events.SessionOpened, events.ReviewDecided, events.SessionDelivered, events.SessionAssigned,
		events.SessionReassigned, events.SessionMoved, events.SessionCompleted, events.ReviewRequested, events.ReviewExtended:
		return true
	}
	return false
}
