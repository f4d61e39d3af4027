package handlers

import (
	"slices"
	"time"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// workAssigned records that a task of a session is assigned to its developer, for the first time
// or again.
type workAssigned struct {
	Session       string   `json:"session_id"`
	ID            string   `json:"task"`
	Architect     string   `json:"architect"`
	Developer     string   `json:"developer"`
	Chain         string   `json:"correlation_id"`
	Message       string   `json:"message_id"`
	Scope         []string `json:"scope"`
	Tested        bool     `json:"testing_required,omitzero"`
	MaxIterations int64    `json:"max_iterations,omitzero"` // 0: as many as before, or as the session has
	Deadline      string   `json:"deadline,omitzero"`
	Revises       string   `json:"revises,omitzero"`
	Held          bool     `json:"held,omitzero"`
}

func (*workAssigned) kind() string { return events.SessionAssigned }

func (wa *workAssigned) apply(st *State, r *wire.Record) {
	s, k := st.sessions.byID[wa.Session], st.tasks.byID[wa.ID]
	w := k.work()
	if w == nil {
		w = &work{of: s, task: k, number: r.Seq}
		w.loop.Max, w.loop.Policy = int(s.spec.MaxIterations), review.Policy(s.spec.OnMax)
		k.needsMore().work = w
		s.works = append(s.works, w)
		if before := st.tasks.byID[wa.Revises]; before != nil && before.work() != nil {
			w.revises, before.work().revision, w.loop = before.work(), w, before.work().loop
			if w.revises.phase == wire.PhaseRedesign {
				w.planAnew()
			}
		}
	}
	if wa.MaxIterations > 0 {
		w.loop.Max = int(wa.MaxIterations)
	}
	w.architect, w.developer, w.chain, w.message, w.scope, w.tries = wa.Architect, wa.Developer, wa.Chain, wa.Message, wa.Scope, 1
	w.tested = wa.Tested
	if w.wished != wa.Deadline {
		w.wished, w.expired = wa.Deadline, false
	}
	if wished, ok := object.ParseTime(wa.Deadline); ok && wished.Before(r.At) {
		w.expired = true // the answer to the assignment warns its architect
	}
	w.document, w.limit, w.overdue = s.latest.Document, time.Duration(s.spec.TaskTimeout)*time.Millisecond, false
	phase := wire.PhaseAssigned
	if wa.Held {
		phase = wire.PhaseHeld
	}
	st.enter(w, phase, r.At)
}

// workMoved records that a work is in another phase, if no other fact implies it.
type workMoved struct {
	ID    string `json:"task"`
	Phase string `json:"phase"`
	Why   string `json:"why,omitzero"`
}

func (*workMoved) kind() string { return events.SessionMoved }

func (wm *workMoved) apply(s *State, r *wire.Record) {
	w := s.tasks.byID[wm.ID].work()
	from := w.phase
	s.enter(w, wm.Phase, r.At)
	if from == wire.PhaseHeld && wm.Phase == wire.PhaseAssigned {
		s.letGo(w, r.At)
	}
}

// letGo sends an assignment that was held back, unless its developer polls.
func (s *State) letGo(w *work, at time.Time) {
	m := w.of.member(w.developer)
	if m == nil {
		return // the developer has left the session
	}
	for _, p := range slices.Clone(m.outbox) {
		switch {
		case !p.held || p.task != w.task.view.ID:
		case s.agents.pulls(w.developer):
			s.sessions.removeItem(p)
		default:
			p.held = false
			s.post(p, at)
		}
	}
}

func (wd workDecision) moveWork(w *work, phase, why string) {
	wd.fact("", w.task.view.ID, &workMoved{ID: w.task.view.ID, Phase: phase, Why: why})
}

// release assigns a work to its developer when it waits for nothing any more.
func (wd workDecision) release(w *work) {
	if w.phase == wire.PhaseHeld {
		wd.moveWork(w, wire.PhaseAssigned, "it waits for nothing any more")
		wd.startWorkTask(w)
	}
}
