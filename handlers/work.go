package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire/session"
)

func (wd workDecision) moveWork(w *state.Work, phase, why string) {
	wd.fact("", w.Task.View.ID, &state.WorkMoved{ID: w.Task.View.ID, Phase: phase, Why: why})
}

// release assigns a work to its developer when it is unblocked.
func (wd workDecision) release(w *state.Work) {
	if w.Phase == session.PhaseHeld {
		wd.moveWork(w, session.PhaseAssigned, "it is unblocked")
		wd.startWorkTask(w)
	}
}
