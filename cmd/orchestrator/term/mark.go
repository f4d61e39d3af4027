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
