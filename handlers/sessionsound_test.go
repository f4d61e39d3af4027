package handlers

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// requireSoundSessions requires that every session is known once and its members have their
// seats. Its tasks are where their phases say, and nothing waits unwatched.
func requireSoundSessions(t testing.TB, s *State) {
	x := &s.sessions
	require.Equal(t, len(x.byID), len(x.order))
	seats, posted, watched := 0, 0, 0
	for _, one := range x.order {
		require.Same(t, one, x.byID[one.spec.ID])
		require.Equal(t, len(one.spec.Members), len(one.members))
		for i, m := range one.members {
			seats++
			require.Equal(t, one.spec.Members[i], m.SessionMember)
			require.Same(t, one, m.of)
			require.Contains(t, x.seats[m.AgentID], m)
			posted += requireSoundParcels(t, s, m)
		}
		requireSoundReviews(t, one)
		var open []*work
		for _, w := range one.works {
			requireSoundWork(t, s, w)
			if !w.settled() {
				open = append(open, w)
			}
			if !w.due.IsZero() {
				watched++
				require.Contains(t, x.watched, w)
			}
		}
		require.True(t, slices.Equal(open, one.open), "%d of the tasks of %s go on", len(open), one.spec.ID)
	}
	for name, theirs := range x.seats {
		require.NotEmpty(t, theirs, name)
		seats -= len(theirs)
	}
	require.Zero(t, seats, "anyRecipient has a seat in no session")
	require.Equal(t, posted, len(x.posted))
	require.Equal(t, watched, len(x.watched))
	require.True(t, slices.IsSortedFunc(x.posted, queue.CompareTimes[*outboxItem]))
	require.True(t, slices.IsSortedFunc(x.watched, queue.CompareTimes[*work]))
	require.Empty(t, x.fresh, "all of them have been sent")
}

// requireSoundParcels requires that an undelivered message waits for a deadline or a task, or is
// on its way to a current run. It returns how many wait for a deadline.
func requireSoundParcels(t testing.TB, s *State, m *member) (posted int) {
	seq := int64(0)
	for _, p := range m.outbox {
		require.False(t, m.of.closed(), "%+v waits in a session that is closed", p)
		require.Same(t, m, p.to)
		require.Greater(t, p.seq, seq)
		require.LessOrEqual(t, p.retries, len(deliveryRetries))
		seq = p.seq
		w := s.tasks.workOn(m.of, p.task)
		switch p.kind {
		case session.TypeTaskAssignment:
			require.True(t, w.phase == wire.PhaseAssigned || w.phase == wire.PhaseHeld, "%+v is of a task that is %s", p, w.phase)
		case session.TypeReviewRequest:
			require.True(t, w.open != nil && w.open.view.Reviewer == m.AgentID, "%+v is of a task that is %s", p, w.phase)
		}
		switch a := s.agents.byID[m.AgentID]; {
		case p.held:
			require.True(t, p.out == "" && !p.taken && w.phase == wire.PhaseHeld, "%+v is held", p)
		case p.repeat && p.out == "":
			require.False(t, p.taken)
		case p.out == "":
			posted++
			require.Contains(t, s.sessions.posted, p)
			require.False(t, p.taken)
		default:
			require.True(t, a != nil && a.alive() && a.run == p.out, "%+v is on the way to a run that has ended", p)
			if p.unread() {
				posted++
				require.Contains(t, s.sessions.posted, p)
			}
		}
	}
	return posted
}

// requireSoundReviews requires that a review is open exactly while its task is being reviewed.
func requireSoundReviews(t testing.TB, x *sessionState) {
	require.Equal(t, len(x.byReview), len(x.reviews))
	for _, v := range x.reviews {
		require.Same(t, v, x.byReview[v.view.ReviewID])
		require.Equal(t, v.view.Verdict == "", v.work.open == v, "%+v", v.view)
		require.Equal(t, v.view.Verdict == "", v.view.DecidedAt == "", "%+v", v.view)
	}
}

// requireSoundWork requires that a work and its task agree.
func requireSoundWork(t testing.TB, s *State, w *work) {
	k := w.task
	require.Same(t, w, k.work())
	require.Equal(t, w.open != nil, w.phase == wire.PhaseReviewing, "%s is %s", k.view.ID, w.phase)
	require.LessOrEqual(t, w.tries, maxTries)
	require.True(t, w.revises == nil || w.revises.revision == w)
	require.True(t, w.revision == nil || w.revision.revises == w)
	require.True(t, !w.of.closed() || w.over(), "%s goes on in a session that is closed", k.view.ID)
	if asked := s.questions.byID[w.question] != nil; asked != (w.phase == wire.PhaseHuman) {
		require.Fail(t, "a person is asked, or is not", "%s is %s", k.view.ID, w.phase)
	}
	if !k.view.State.Final() {
		require.Contains(t, statesIn[w.phase], k.view.State, "%s is %s", k.view.ID, w.phase)
		require.Equal(t, w.phase != wire.PhaseHeld, k.way == inSession, "%s is %s", k.view.ID, w.phase)
	}
	if w.phase == wire.PhaseAssigned || w.phase == wire.PhaseWorking {
		require.NotNil(t, w.of.member(w.developer), "%s is with %s, who is no member", k.view.ID, w.developer)
		require.NotNil(t, s.agents.byID[w.developer], "%s is with %s, whom nobody knows", k.view.ID, w.developer)
	}
	due := time.Time{}
	if w.active() {
		if !w.overdue && !s.agents.pulls(w.developer) {
			due = w.silentAt()
		}
		if at, ok := w.deadlineAt(); ok && (due.IsZero() || at.Before(due)) {
			due = at
		}
		if out := w.begun.Add(w.limit); w.limit > 0 && (due.IsZero() || out.Before(due)) {
			due = out
		}
	}
	require.Equal(t, due, w.due, "%s is %s", k.view.ID, w.phase)
}

// statesIn maps each phase to the possible states of an open task.
var statesIn = map[string][]wire.TaskState{
	wire.PhaseHeld:      {wire.TaskPending},
	wire.PhaseAssigned:  {wire.TaskAssigned},
	wire.PhaseWorking:   {wire.TaskRunning, wire.TaskNeedsHuman},
	wire.PhaseCompleted: {wire.TaskInReview},
	wire.PhaseReviewing: {wire.TaskInReview},
	wire.PhaseRevise:    {wire.TaskInReview},
	wire.PhaseRedesign:  {wire.TaskPlanning, wire.TaskPlanReview},
	wire.PhaseHuman:     {wire.TaskNeedsHuman},
}
