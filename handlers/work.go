package handlers

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
type work struct {
	of        *sessionState
	task      *task
	architect string
	developer string
	phase     string   // session.Phase…
	chain     string   // the correlation_id of all its messages
	message   string   // message_id of the assignment
	document  wire.Raw // and the assignment itself, until it is over
	scope     []string
	tested    bool // the assignment requires tests
	tries     int
	loop      review.Loop
	revises   *work     // the work that this one revises under another id
	revision  *work     // the work that revises this one
	result    wire.Raw  // of the latest completion, until it is approved
	open      *reviewOf // the review that is under way
	escalated string
	question  string // the open question to a person about it
	trouble   *session.ExecutionError

	limit   time.Duration // time limit until the completion; 0: none
	wished  string        // its deadline, which is advisory; "": none
	begun   time.Time     // start of this attempt
	heard   time.Time     // last message of its developer about it
	overdue bool          // the silence of its developer is recorded
	expired bool          // the end of its deadline is recorded
	due     time.Time     // when it must be checked
	number  int64         // of the record that made it
}

// A reviewOf is a review of a work.
type reviewOf struct {
	named  string   // its task, as in the request
	wanted []string // verifications that must have been made
	view   session.ReviewView
	work   *work
}

// Date implements byTime.
func (w *work) Date() (time.Time, int64) { return w.due, w.number }

// lead returns the architect of a work, or another architect of the session if that one is gone.
// It may return nil.
func (w *work) lead() *member {
	if m := w.of.member(w.architect); m != nil {
		return m
	}
	for _, m := range w.of.members {
		if m.AgentType == session.AgentArchitect {
			return m
		}
	}
	return nil
}

// active reports whether the developer must still report on the work.
func (w *work) active() bool {
	return w.phase == session.PhaseAssigned || w.phase == session.PhaseWorking
}

// over reports whether the work has ended.
func (w *work) over() bool { return w.phase == session.PhaseOver }

// how returns the state of a work, for people.
func (w *work) how() string {
	switch w.phase {
	case session.PhaseHeld:
		return "blocked"
	case session.PhaseReviewing:
		return "being reviewed"
	case session.PhaseRevise:
		if w.revision != nil {
			return "revised as " + w.last().task.view.ID
		}
		return "to be revised"
	case session.PhaseRedesign:
		return "to be planned anew"
	case session.PhaseHuman:
		return "for a person to decide about"
	}
	return w.phase
}

// planAnew resets the reviews of a work, since their findings were about another plan.
func (w *work) planAnew() { w.loop = review.Loop{Max: w.loop.Max, Policy: w.loop.Policy} }

// settled reports whether the work is over, or completed with its task. In the latter case a
// review may follow.
func (w *work) settled() bool {
	return w.over() || w.phase == session.PhaseCompleted && w.task.view.State.Final()
}

// last returns the latest revision of a work.
func (w *work) last() *work {
	for w.revision != nil {
		w = w.revision
	}
	return w
}

// enter moves a work to a phase, and its task to the corresponding state unless the task has
// ended.
func (s *core) enter(w *work, phase string, at time.Time) {
	if w.phase != phase && (phase == session.PhaseAssigned || phase == session.PhaseWorking) {
		w.begun = at
	}
	w.phase, w.heard, w.overdue = phase, at, false
	if phase == session.PhaseOver {
		if v := w.open; v != nil {
			v.view.DecidedAt, v.view.Verdict = object.Timestamp(at), session.VerdictNone
		}
		w.document, w.result, w.open = nil, nil, nil
		w.of.removeItems(s, w.task.view.ID, session.TypeReviewRequest)
	}
	if phase != session.PhaseAssigned && phase != session.PhaseHeld {
		w.of.removeItems(s, w.task.view.ID, session.TypeTaskAssignment)
	}
	if to := stateOf(phase); to != "" && !w.task.view.State.Final() && w.task.view.State != to {
		s.move(w.task, to)
		s.updateStanding(s.agents.byID[w.task.view.AssignedTo])
	}
	w.of.track(w)
	s.watchWork(w)
}

// track adds a work to the open works of its session, or removes it when it is settled.
func (s *sessionState) track(w *work) {
	place, there := slices.BinarySearchFunc(s.open, w, func(a, b *work) int { return cmp.Compare(a.number, b.number) })
	switch {
	case there == !w.settled():
	case there:
		s.open = slices.Delete(s.open, place, place+1)
	default:
		s.open = slices.Insert(s.open, place, w)
	}
}

// takeUp applies the start of a task to its work. If the work was waiting for a person or a new
// plan, its reviews are extended or reset.
func (s *core) takeUp(w *work, at time.Time) {
	switch w.phase {
	case session.PhaseAssigned, session.PhaseWorking:
	case session.PhaseRedesign:
		w.planAnew()
	case session.PhaseHuman:
		w.loop.Extend()
	default:
		return
	}
	s.enter(w, session.PhaseWorking, at)
}

// endOf applies the end of a task to its work. A work that its developer completed may still be
// reviewed.
func (s *core) endOf(w *work, to wire.TaskState, at time.Time) {
	if to == wire.TaskDone && (w.active() || w.phase == session.PhaseHeld) {
		s.enter(w, session.PhaseCompleted, at)
		w.document = nil // it is not retried
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

// watchWork sets the time at which a work must be checked: for the silence of its developer, its
// deadline or its time limit.
func (s *core) watchWork(w *work) {
	s.sessions.watched.Drop(w)
	w.due = time.Time{}
	if !w.active() {
		return
	}
	if !w.overdue && !s.agents.pulls(w.developer) {
		w.due = w.silentAt()
	}
	if at, ok := w.deadlineAt(); ok && (w.due.IsZero() || at.Before(w.due)) {
		w.due = at
	}
	if w.limit > 0 && (w.due.IsZero() || w.begun.Add(w.limit).Before(w.due)) {
		w.due = w.begun.Add(w.limit)
	}
	if !w.due.IsZero() {
		s.sessions.watched.Add(w)
	}
}

// deadlineAt returns when the deadline of a work passes, if that has not been told. One that
// passed before this try began passes with its beginning.
func (w *work) deadlineAt() (time.Time, bool) {
	at, ok := object.ParseTime(w.wished)
	if ok && at.Before(w.begun) {
		at = w.begun
	}
	return at, ok && !w.expired
}

// silentAt returns when a developer has been silent about a work for too long. A work that takes
// long must be reported on regularly.
func (w *work) silentAt() time.Time {
	every := cmp.Or(time.Duration(w.of.spec.ProgressEvery)*time.Millisecond, progressEvery)
	after := cmp.Or(time.Duration(w.of.spec.ProgressAfter)*time.Millisecond, progressAfter)
	silent := w.begun.Add(after + every)
	if heard := w.heard.Add(every); heard.After(silent) {
		return heard
	}
	return silent
}

// worksOf returns the works that an agent is assigned or works on.
func (x *sessions) worksOf(agent string) (all []*work) {
	for _, m := range x.seats[agent] {
		for _, w := range m.of.open {
			if w.developer == agent && w.active() {
				all = append(all, w)
			}
		}
	}
	return all
}

// stirred resets the silence of all developers, because the orchestrator did not receive
// messages meanwhile.
func stirred(s *core, at time.Time) {
	for _, w := range slices.Clone(s.sessions.watched) {
		s.sessions.watched.Drop(w)
		w.begun, w.heard = at, at
		s.watchWork(w)
	}
}

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

func (wa *workAssigned) apply(st *core, r *wire.Record) {
	s, k := st.sessions.byID[wa.Session], st.tasks.byID[wa.ID]
	w := k.work()
	if w == nil {
		w = &work{of: s, task: k, number: r.Seq}
		w.loop.Max, w.loop.Policy = int(s.spec.MaxIterations), review.Policy(s.spec.OnMax)
		k.needsMore().work = w
		s.works = append(s.works, w)
		if before := st.tasks.byID[wa.Revises]; before != nil && before.work() != nil {
			w.revises, before.work().revision, w.loop = before.work(), w, before.work().loop
			if w.revises.phase == session.PhaseRedesign {
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
	phase := session.PhaseAssigned
	if wa.Held {
		phase = session.PhaseHeld
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

func (wm *workMoved) apply(s *core, r *wire.Record) {
	w := s.tasks.byID[wm.ID].work()
	from := w.phase
	s.enter(w, wm.Phase, r.At)
	if from == session.PhaseHeld && wm.Phase == session.PhaseAssigned {
		s.letGo(w, r.At)
	}
}

// letGo sends an assignment that was held back, unless its developer polls.
func (s *core) letGo(w *work, at time.Time) {
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

// release assigns a work to its developer when it is unblocked.
func (wd workDecision) release(w *work) {
	if w.phase == session.PhaseHeld {
		wd.moveWork(w, session.PhaseAssigned, "it is unblocked")
		wd.startWorkTask(w)
	}
}
