package state

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// WorkTroubled records an error in the work on a task, and its consequence.
type WorkTroubled struct {
	session.ExecutionError
	Tries int   `json:"tries"`             // including one that begins now
	Limit int64 `json:"limit_ms,omitzero"` // the new limit
}

func (*WorkTroubled) kind() string { return events.SessionTrouble }

func (wt *WorkTroubled) apply(s *State, r *wire.Record) {
	w := s.Tasks.ByID[wt.TaskID].Work()
	e := wt.ExecutionError
	w.Trouble = &e
	if wt.Tries > w.Tries && w.Active() {
		w.Begun, w.Heard, w.Overdue = r.At, r.At, false
	}
	s.Sessions.Watched.Drop(w)
	w.Tries, w.Limit = wt.Tries, time.Duration(wt.Limit)*time.Millisecond
	s.WatchWork(w)
}

// Stands reports whether a work waits for its architect. A work that was revised under another
// id does not.
func (w *Work) Stands() bool {
	return !w.Settled() && w.Revision == nil && (w.Phase == session.PhaseCompleted || w.Phase == session.PhaseRevise || w.Phase == session.PhaseRedesign)
}

// DeadlinePassed records that a work has not been completed by its deadline.
type DeadlinePassed struct {
	ID       string `json:"task"`
	Name     string `json:"name"`
	Agent    string `json:"agent"`
	Deadline string `json:"deadline"`
}

func (*DeadlinePassed) kind() string { return events.TaskDeadlinePassed }

func (d *DeadlinePassed) apply(s *State, _ *wire.Record) {
	w := s.Tasks.ByID[d.ID].Work()
	w.Expired = true
	s.WatchWork(w)
}

// ProgressOverdue records that a task has had no progress report for too long.
type ProgressOverdue struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Since string `json:"since"`
}

func (*ProgressOverdue) kind() string { return events.TaskProgressOverdue }

func (p *ProgressOverdue) apply(s *State, _ *wire.Record) {
	w := s.Tasks.ByID[p.ID].Work()
	w.Overdue = true
	s.WatchWork(w)
}

// WorkRepeated records that a work was assigned again by a new message, after an interruption or
// an error.
type WorkRepeated struct {
	ID      string `json:"task"`
	Message string `json:"message_id"`
}

func (*WorkRepeated) kind() string { return events.SessionReassigned }

func (wr *WorkRepeated) apply(s *State, _ *wire.Record) {
	w := s.Tasks.ByID[wr.ID].Work()
	w.Message, w.Document = wr.Message, w.Of.latest.Document
}
