package plain

import "orchestrator/wire"

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
