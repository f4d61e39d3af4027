package term

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// OwnMark returns the mark of a line that the orchestrator writes about an agent.
func OwnMark(l *control.LogLine) string {
	if l.Trouble {
		return "!"
	}
	return "."
}

// Redundant reports whether another line already tells people the same. Each exit is
// followed by an end, and each session message by its delivery.
func Redundant(l *control.LogLine) bool {
	return l.Kind == events.AgentEnded || l.Kind == events.SessionDelivered
}

// OfMail reports whether a kind of event is about messages and actors. There are too many of
// them to print them all; "bus tail" does.
func OfMail(kind string) bool {
	switch kind {
	case events.MessageSent, events.MessageAcked, events.ActorSeen, events.ActorStale:
		return true
	}
	return false
}

// Mark returns the mark of a task's state, one or two columns wide.
func Mark(s wire.TaskState) string {
	switch s {
	case wire.TaskRunning:
		return ">"
	case wire.TaskInReview:
		return "r"
	case wire.TaskNeedsHuman:
		return "?"
	case wire.TaskPlanning, wire.TaskPlanReview:
		return "p"
	case wire.TaskDone:
		return "ok"
	case wire.TaskFailed:
		return "x"
	case wire.TaskCancelled:
		return "-"
	}
	return "."
}
