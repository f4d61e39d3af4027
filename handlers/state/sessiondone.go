package state

import (
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// WorkCompleted records that a developer has completed a work. Its task does not end now: it is
// reviewed first, or was done before.
type WorkCompleted struct {
	ID     string   `json:"task"`
	Result wire.Raw `json:"result"`
}

func (*WorkCompleted) kind() string { return events.SessionCompleted }

func (wc *WorkCompleted) apply(s *State, r *wire.Record) {
	w := s.Tasks.ByID[wc.ID].Work()
	w.Result = wc.Result
	if w.Phase != session.PhaseReviewing {
		s.enter(w, session.PhaseCompleted, r.At)
	}
}
