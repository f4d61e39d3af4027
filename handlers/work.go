package handlers

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// work is what a session does about a task: who does it, how far it is, and what
// reviews have found. It outlives the end of the task where reviews come after it:
// the task stays done then, and what waited for it is not held back again.
type work struct {
	of        *session
	task      *task
	architect string
	developer string
	phase     string   // wire.Phase…
	chain     string   // the correlation_id of all that is said about it
	message   string   // message_id of the assignment
	document  wire.Raw // and the assignment itself, until it is over
	scope     []string
	tested    bool // the assignment requires tests
	tries     int
	loop      review.Loop
	revises   *work     // the one of which this is a revision under another id
	revision  *work     // and the one that is a revision of this
	result    wire.Raw  // of the latest completion, until it is approved
	open      *reviewOf // the review that is under way
	escalated string
	question  string // a person is asked what is to become of it
	trouble   *wire.TaskExecutionError

	limit   time.Duration // without a completion; 0: none
	wished  string        // its deadline, which is a wish; "": none
	begun   time.Time     // this try
	heard   time.Time     // its developer said something of it
	overdue bool          // it was said that it does not
	expired bool          // it was said that its deadline has passed
	due     time.Time     // something is to be looked at then
	number  int64         // of the record that made it
}

// reviewOf is a review of a work.
type reviewOf struct {
	named  string   // its task, as the request has it
	wanted []string // verifications that must have been made
	view   wire.ReviewView
	work   *work
}

// date implements dated.
func (w *work) date() (time.Time, int64) { return w.due, w.number }

// lead is the architect of a work, or who has come in its place; nil when there is
// none any more.
func (w *work) lead() *member {
	if m := w.of.member(w.architect); m != nil {
		return m
	}
	for _, m := range w.of.members {
		if m.AgentType == wire.AgentArchitect {
			return m
		}
	}
	return nil
}

// active reports whether the developer is expected to say something of it.
func (w *work) active() bool { return w.phase == wire.PhaseAssigned || w.phase == wire.PhaseWorking }

// over reports whether nothing more is said of it.
func (w *work) over() bool { return w.phase == wire.PhaseOver }

// how is how a work is, for people.
func (w *work) how() string {
	switch w.phase {
	case wire.PhaseHeld:
		return "held back"
	case wire.PhaseReviewing:
		return "being reviewed"
	case wire.PhaseRevise:
		if w.revision != nil {
			return "revised as " + w.last().task.view.ID
		}
		return "to be revised"
	case wire.PhaseRedesign:
		return "to be planned anew"
	case wire.PhaseHuman:
		return "for a person to decide about"
	}
	return w.phase
}

// planAnew lets the reviews of a work begin anew: what they found was in another one.
func (w *work) planAnew() { w.loop = review.Loop{Max: w.loop.Max, Policy: w.loop.Policy} }

// settled reports whether it is over as far as what has ended with its task goes: a
// review may come yet.
func (w *work) settled() bool {
	return w.over() || w.phase == wire.PhaseCompleted && w.task.view.State.Final()
}

// last is the latest revision of a work.
func (w *work) last() *work {
	for w.revision != nil {
		w = w.revision
	}
	return w
}

// enter puts a work into a phase, and its task into the state that goes with it,
// unless that has ended.
func (s *State) enter(w *work, phase string, at time.Time) {
	if w.phase != phase && (phase == wire.PhaseAssigned || phase == wire.PhaseWorking) {
		w.begun = at
	}
	w.phase, w.heard, w.overdue = phase, at, false
	if phase == wire.PhaseOver {
		if v := w.open; v != nil {
			v.view.DecidedAt, v.view.Verdict = wire.Timestamp(at), wire.VerdictNone
		}
		w.document, w.result, w.open = nil, nil, nil
		w.of.removeItems(s, w.task.view.ID, wire.TypeReviewRequest)
	}
	if phase != wire.PhaseAssigned && phase != wire.PhaseHeld {
		w.of.removeItems(s, w.task.view.ID, wire.TypeTaskAssignment)
	}
	if to := stateOf(phase); to != "" && !w.task.view.State.Final() && w.task.view.State != to {
		s.move(w.task, to)
		s.updateStanding(s.agents.byID[w.task.view.AssignedTo])
	}
	w.of.track(w)
	s.watchWork(w)
}

// track keeps a work among those that something is still said of, or not.
func (s *session) track(w *work) {
	place, there := slices.BinarySearchFunc(s.open, w, func(a, b *work) int { return cmp.Compare(a.number, b.number) })
	switch {
	case there == !w.settled():
	case there:
		s.open = slices.Delete(s.open, place, place+1)
	default:
		s.open = slices.Insert(s.open, place, w)
	}
}

// takeUp is what the start of its task is for a work. It may be that a person lets it
// go on who did not wait for what a person says: then it is reviewed once more.
func (s *State) takeUp(w *work, at time.Time) {
	switch w.phase {
	case wire.PhaseAssigned, wire.PhaseWorking:
	case wire.PhaseRedesign:
		w.planAnew()
	case wire.PhaseHuman:
		w.loop.Extend()
	default:
		return
	}
	s.enter(w, wire.PhaseWorking, at)
}

// endOf is what the end of its task is for a work. What is done as its developer said
// may be reviewed yet.
func (s *State) endOf(w *work, to wire.TaskState, at time.Time) {
	if to == wire.TaskDone && (w.active() || w.phase == wire.PhaseHeld) {
		s.enter(w, wire.PhaseCompleted, at)
		w.document = nil // it does not begin anew
		return
	}
	s.enter(w, wire.PhaseOver, at)
}

// stateOf is the state of a task whose work is in a phase; "" where a fact of the
// task itself says it.
func stateOf(phase string) wire.TaskState {
	switch phase {
	case wire.PhaseCompleted, wire.PhaseReviewing, wire.PhaseRevise:
		return wire.TaskInReview
	case wire.PhaseRedesign:
		return wire.TaskPlanning
	}
	return ""
}

// watchWork looks at a work again when its developer will have been silent for too
// long, or will have had it for too long.
func (s *State) watchWork(w *work) {
	s.sessions.watched.drop(w)
	w.due = time.Time{}
	if !w.active() {
		return
	}
	if !w.overdue && !s.pulls(w.developer) {
		w.due = w.silentAt()
	}
	if at, ok := w.deadlineAt(); ok && (w.due.IsZero() || at.Before(w.due)) {
		w.due = at
	}
	if w.limit > 0 && (w.due.IsZero() || w.begun.Add(w.limit).Before(w.due)) {
		w.due = w.begun.Add(w.limit)
	}
	if !w.due.IsZero() {
		s.sessions.watched.add(w)
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

// silentAt is when a developer will have said nothing of a work for too long: once
// it takes longer, it is heard of now and then.
func (w *work) silentAt() time.Time {
	every, after := w.of.every(), w.of.after()
	silent := w.begun.Add(after + every)
	if heard := w.heard.Add(every); heard.After(silent) {
		return heard
	}
	return silent
}

func (s *session) after() time.Duration {
	if s.spec.ProgressAfter > 0 {
		return time.Duration(s.spec.ProgressAfter) * time.Millisecond
	}
	return progressAfter
}

func (s *session) every() time.Duration {
	if s.spec.ProgressEvery > 0 {
		return time.Duration(s.spec.ProgressEvery) * time.Millisecond
	}
	return progressEvery
}

// worksOf are the works that an agent is at or has been given.
func (s *State) worksOf(agent string) (all []*work) {
	for _, m := range s.sessions.seats[agent] {
		for _, w := range m.of.open {
			if w.developer == agent && w.active() {
				all = append(all, w)
			}
		}
	}
	return all
}

// stirred notes that all developers have been heard of: the orchestrator did not listen meanwhile.
func (s *State) stirred(at time.Time) {
	for _, w := range slices.Clone(s.sessions.watched) {
		s.sessions.watched.drop(w)
		w.begun, w.heard = at, at
		s.watchWork(w)
	}
}
