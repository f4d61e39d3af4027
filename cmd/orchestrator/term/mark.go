package term

import "orchestrator/wire"

// OwnMark is the sign of a line in which the orchestrator speaks of an agent.
func OwnMark(l *wire.LogLine) string {
	if l.Trouble {
		return "!"
	}
	return "."
}

// Redundant reports whether a line of the orchestrator tells people nothing that another line
// does not: that a run has ended follows each exit, and each session message is delivered.
func Redundant(l *wire.LogLine) bool {
	return l.Kind == wire.EventEnded || l.Kind == wire.EventSessionDelivered
}

// Mark is the sign of a task's state, one or two columns wide.
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
