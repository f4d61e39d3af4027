package state

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A work is the state of a task in a session: its developer, its phase, and the findings of its
// reviews. It outlives the end of the task if reviews follow. The task then stays done, and its
// dependents are not held back again.
type Work struct {
	StoredWork
	Of       *SessionState
	Task     *Task
	Revises  *Work         // the work that this one revises under another id
	Revision *Work         // the work that revises this one
	Open     *ReviewOf     // the review that is under way
	Limit    time.Duration // time limit until the completion; 0: none
	Due      time.Time     // when it must be checked
}

// A StoredWork is the part of a Work that a snapshot copies.
type StoredWork struct {
	Number    int64                   `json:"number"` // of the record that made it
	Architect string                  `json:"architect"`
	Developer string                  `json:"developer"`
	Phase     string                  `json:"phase"`             // session.Phase…
	Chain     string                  `json:"chain"`             // the correlation_id of all its messages
	Message   string                  `json:"message"`           // message_id of the assignment
	Document  wire.Raw                `json:"document,omitzero"` // and the assignment itself, until it is over
	Scope     []string                `json:"scope"`
	Tested    bool                    `json:"testing_required,omitzero"` // the assignment requires tests
	Tries     int                     `json:"tries"`
	Loop      review.Loop             `json:"loop"`
	Result    wire.Raw                `json:"result,omitzero"` // of the latest completion, until it is approved
	Escalated string                  `json:"escalated,omitzero"`
	Question  string                  `json:"question,omitzero"` // the open question to a person about it
	Trouble   *session.ExecutionError `json:"trouble,omitzero"`
	Wished    string                  `json:"wished,omitzero"`  // its deadline, which is advisory; "": none
	Begun     time.Time               `json:"begun,omitzero"`   // start of this attempt
	Heard     time.Time               `json:"heard,omitzero"`   // last message of its developer about it
	Overdue   bool                    `json:"overdue,omitzero"` // the silence of its developer is recorded
	Expired   bool                    `json:"expired,omitzero"` // the end of its deadline is recorded
}

// A ReviewOf is a review of a work.
type ReviewOf struct {
	StoredReview
	Work *Work
}

// A StoredReview is the part of a ReviewOf that a snapshot copies.
type StoredReview struct {
	View   session.ReviewView `json:"view"`
	Named  string             `json:"named"`           // its task, as in the request
	Wanted []string           `json:"wanted,omitzero"` // verifications that must have been made
}

// Date implements byTime.
func (w *Work) Date() (time.Time, int64) { return w.Due, w.Number }

// Lead returns the architect of a work, or another architect of the session if that one is gone.
// It may return nil.
func (w *Work) Lead() *Member {
	if m := w.Of.Member(w.Architect); m != nil {
		return m
	}
	for _, m := range w.Of.Members {
		if m.AgentType == session.AgentArchitect {
			return m
		}
	}
	return nil
}

// Active reports whether the developer must still report on the work.
func (w *Work) Active() bool {
	return w.Phase == session.PhaseAssigned || w.Phase == session.PhaseWorking
}

// Over reports whether the work has ended.
func (w *Work) Over() bool { return w.Phase == session.PhaseOver }

// How returns the state of a work, for people.
func (w *Work) How() string {
	switch w.Phase {
	case session.PhaseHeld:
		return "blocked"
	case session.PhaseReviewing:
		return "being reviewed"
	case session.PhaseRevise:
		if w.Revision != nil {
			return "revised as " + w.Last().Task.View.ID
		}
		return "to be revised"
	case session.PhaseRedesign:
		return "to be planned anew"
	case session.PhaseHuman:
		return "for a person to decide about"
	}
	return w.Phase
}

// planAnew resets the reviews of a work, since their findings were about another plan.
func (w *Work) planAnew() { w.Loop = review.Loop{Max: w.Loop.Max, Policy: w.Loop.Policy} }

// Settled reports whether the work is over, or completed with its task. In the latter case a
// review may follow.
func (w *Work) Settled() bool {
	return w.Over() || w.Phase == session.PhaseCompleted && w.Task.View.State.Final()
}

// Last returns the latest revision of a work.
func (w *Work) Last() *Work {
	for w.Revision != nil {
		w = w.Revision
	}
	return w
}

// enter moves a work to a phase, and its task to the corresponding state unless the task has
// ended.
func (s *State) enter(w *Work, phase string, at time.Time) {
	if w.Phase != phase && (phase == session.PhaseAssigned || phase == session.PhaseWorking) {
		w.Begun = at
	}
	w.Phase, w.Heard, w.Overdue = phase, at, false
	if phase == session.PhaseOver {
		if v := w.Open; v != nil {
			v.View.DecidedAt, v.View.Verdict = object.Timestamp(at), session.VerdictNone
		}
		w.Document, w.Result, w.Open = nil, nil, nil
		w.Of.removeItems(s, w.Task.View.ID, session.TypeReviewRequest)
	}
	if phase != session.PhaseAssigned && phase != session.PhaseHeld {
		w.Of.removeItems(s, w.Task.View.ID, session.TypeTaskAssignment)
	}
	if to := stateOf(phase); to != "" && !w.Task.View.State.Final() && w.Task.View.State != to {
		s.move(w.Task, to)
		s.updateStanding(s.Agents.ByID[w.Task.View.AssignedTo])
	}
	w.Of.Track(w)
	s.WatchWork(w)
}

// Track adds a work to the open works of its session, or removes it when it is settled.
func (s *SessionState) Track(w *Work) {
	place, there := slices.BinarySearchFunc(s.Open, w, func(a, b *Work) int { return cmp.Compare(a.Number, b.Number) })
	switch {
	case there == !w.Settled():
	case there:
		s.Open = slices.Delete(s.Open, place, place+1)
	default:
		s.Open = slices.Insert(s.Open, place, w)
	}
}

// takeUp applies the start of a task to its work. If the work was waiting for a person or a new
// plan, its reviews are extended or reset.
func (s *State) takeUp(w *Work, at time.Time) {
	switch w.Phase {
	case session.PhaseAssigned, session.PhaseWorking:
	case session.PhaseRedesign:
		w.planAnew()
	case session.PhaseHuman:
		w.Loop.Extend()
	default:
		return
	}
	s.enter(w, session.PhaseWorking, at)
}

// endOf applies the end of a task to its work. A work that its developer completed may still be
// reviewed.
func (s *State) endOf(w *Work, to wire.TaskState, at time.Time) {
	if to == wire.TaskDone && (w.Active() || w.Phase == session.PhaseHeld) {
		s.enter(w, session.PhaseCompleted, at)
		w.Document = nil // it is not retried
		return
	}
	s.enter(w, session.PhaseOver, at)
}

// stateOf returns the state of a task for a phase of its work, or "" if a fact of the task sets
// it.
func stateOf(phase string) wire.TaskState {
	switch phase {
	case session.PhaseCompleted, session.PhaseReviewing, session.PhaseRevise:
		return wire.TaskInReview
	case session.PhaseRedesign:
		return wire.TaskPlanning
	}
	return ""
}

// WatchWork sets the time at which a work must be checked: for the silence of its developer, its
// deadline or its time limit.
func (s *State) WatchWork(w *Work) {
	s.Sessions.Watched.Drop(w)
	w.Due = time.Time{}
	if !w.Active() {
		return
	}
	if !w.Overdue && !s.Agents.Pulls(w.Developer) {
		w.Due = w.SilentAt()
	}
	if at, ok := w.DeadlineAt(); ok && (w.Due.IsZero() || at.Before(w.Due)) {
		w.Due = at
	}
	if w.Limit > 0 && (w.Due.IsZero() || w.Begun.Add(w.Limit).Before(w.Due)) {
		w.Due = w.Begun.Add(w.Limit)
	}
	if !w.Due.IsZero() {
		s.Sessions.Watched.Add(w)
	}
}

// DeadlineAt returns when the deadline of a work passes, unless that was reported. A deadline from
// before this try passes with the beginning of the try.
func (w *Work) DeadlineAt() (time.Time, bool) {
	at, ok := object.ParseTime(w.Wished)
	if ok && at.Before(w.Begun) {
		at = w.Begun
	}
	return at, ok && !w.Expired
}

// SilentAt returns when a developer has been silent about a work for too long. A work that takes
// long must be reported on regularly.
func (w *Work) SilentAt() time.Time {
	every := cmp.Or(time.Duration(w.Of.Spec.ProgressEvery)*time.Millisecond, progressEvery)
	after := cmp.Or(time.Duration(w.Of.Spec.ProgressAfter)*time.Millisecond, progressAfter)
	silent := w.Begun.Add(after + every)
	if heard := w.Heard.Add(every); heard.After(silent) {
		return heard
	}
	return silent
}

// WorksOf returns the works that an agent is assigned or works on.
func (x *sessions) WorksOf(agent string) (all []*Work) {
	for _, m := range x.Seats[agent] {
		for _, w := range m.Of.Open {
			if w.Developer == agent && w.Active() {
				all = append(all, w)
			}
		}
	}
	return all
}

// resetSilence resets the silence of all developers, because the orchestrator received no messages
// for a time.
func (s *State) resetSilence(at time.Time) {
	for _, w := range slices.Clone(s.Sessions.Watched) {
		s.Sessions.Watched.Drop(w)
		w.Begun, w.Heard = at, at
		s.WatchWork(w)
	}
}

// WorkAssigned records that a task of a session is assigned to its developer, for the first time
// or again.
type WorkAssigned struct {
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

func (*WorkAssigned) kind() string { return events.SessionAssigned }

func (wa *WorkAssigned) apply(st *State, r *wire.Record) {
	s, t := st.Sessions.ByID[wa.Session], st.Tasks.ByID[wa.ID]
	w := t.Work()
	if w == nil {
		w = &Work{Of: s, Task: t, StoredWork: StoredWork{Number: r.Seq}}
		w.Loop.Max, w.Loop.Policy = int(s.Spec.MaxIterations), review.Policy(s.Spec.OnMax)
		t.EnsureExtra().Work = w
		s.Works = append(s.Works, w)
		if before := st.Tasks.ByID[wa.Revises]; before != nil && before.Work() != nil {
			w.Revises, before.Work().Revision, w.Loop = before.Work(), w, before.Work().Loop
			if w.Revises.Phase == session.PhaseRedesign {
				w.planAnew()
			}
		}
	}
	if wa.MaxIterations > 0 {
		w.Loop.Max = int(wa.MaxIterations)
	}
	w.Architect, w.Developer, w.Chain, w.Message, w.Scope, w.Tries = wa.Architect, wa.Developer, wa.Chain, wa.Message, wa.Scope, 1
	w.Tested = wa.Tested
	if w.Wished != wa.Deadline {
		w.Wished, w.Expired = wa.Deadline, false
	}
	if wished, ok := object.ParseTime(wa.Deadline); ok && wished.Before(r.At) {
		w.Expired = true // the answer to the assignment warns its architect
	}
	w.Document, w.Limit, w.Overdue = s.latest.Document, time.Duration(s.Spec.TaskTimeout)*time.Millisecond, false
	phase := session.PhaseAssigned
	if wa.Held {
		phase = session.PhaseHeld
	}
	st.enter(w, phase, r.At)
}

// WorkMoved records that a work is in another phase, if no other fact implies it.
type WorkMoved struct {
	ID    string `json:"task"`
	Phase string `json:"phase"`
	Why   string `json:"why,omitzero"`
}

func (*WorkMoved) kind() string { return events.SessionMoved }

func (wm *WorkMoved) apply(s *State, r *wire.Record) {
	w := s.Tasks.ByID[wm.ID].Work()
	from := w.Phase
	s.enter(w, wm.Phase, r.At)
	if from == session.PhaseHeld && wm.Phase == session.PhaseAssigned {
		s.letGo(w, r.At)
	}
}

// letGo sends an assignment that was held back, unless its developer polls.
func (s *State) letGo(w *Work, at time.Time) {
	m := w.Of.Member(w.Developer)
	if m == nil {
		return // the developer has left the session
	}
	for _, p := range slices.Clone(m.Outbox) {
		switch {
		case !p.Held || p.Task != w.Task.View.ID:
		case s.Agents.Pulls(w.Developer):
			s.Sessions.RemoveItem(p)
		default:
			p.Held = false
			s.post(p, at)
		}
	}
}
