package handlers

import "orchestrator/wire"

// The checks of the tasks of sessions at the end of a turn.

// lookAtEnds checks that a task makes one completion if it ends without a word of its developer
// or of a caller that decides about it. Any other task makes none.
func (m *minutes) lookAtEnds() {
	for _, j := range m.turn.ended {
		spoken, settled := 0, m.turn.closed[j.sitting.spec.ID]
		for o := j; o != nil; o = o.revision {
			spoken += m.turn.spoken[o.id]
			settled = settled || m.turn.words[o.id]
		}
		switch {
		case settled || j.alone:
			m.w.must(m.turn.spoken[j.id] == 0, "%s has ended as was said, and %d completions of it are said", j.id, m.turn.spoken[j.id])
		default:
			m.w.must(spoken >= 1 && m.turn.spoken[j.id] <= 1, "%s has ended, and %d completions of it are said", j.id, m.turn.spoken[j.id])
		}
	}
	for _, j := range m.turn.over {
		m.w.must(m.w.ended[j.id] != "", "%s is over, and its task has not ended", j.id)
	}
}

// stateIn returns the state of an open task of a session, if its phase determines it.
func stateIn(phase string) wire.TaskState {
	switch phase {
	case wire.PhaseCompleted, wire.PhaseReviewing, wire.PhaseRevise:
		return wire.TaskInReview
	case wire.PhaseRedesign:
		return wire.TaskPlanning
	case wire.PhaseHuman:
		return wire.TaskNeedsHuman
	}
	return ""
}

// sessionMoves maps states to next states that only tasks of sessions have.
var sessionMoves = map[wire.TaskState][]wire.TaskState{
	wire.TaskAssigned:   {wire.TaskAssigned, wire.TaskFailed},
	wire.TaskRunning:    {wire.TaskAssigned, wire.TaskInReview},
	wire.TaskInReview:   {wire.TaskAssigned, wire.TaskPlanning, wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskNeedsHuman: {wire.TaskAssigned, wire.TaskInReview, wire.TaskDone, wire.TaskFailed},
	wire.TaskPlanning:   {wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed},
	wire.TaskPlanReview: {wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed},
	wire.TaskPending:    {wire.TaskFailed},
}

// lookAtJobs compares the progress of tasks with the State.
func (m *minutes) lookAtJobs() {
	for _, s := range m.order {
		x := m.w.state.sessions.byID[s.spec.ID]
		m.w.must(x != nil && x.closed() != s.open && x.messages == s.messages && x.refused == s.refused, "%s is %+v", s.spec.ID, x)
		for _, v := range s.reviews {
			have := x.byReview[v.id]
			m.w.must(have.view.Verdict == v.verdict && have.view.TaskID == v.job.id && have.view.Reviewer == v.reviewer, "%+v is %+v", v, have.view)
		}
	}
	for id, j := range m.jobs {
		w := m.w.state.tasks.byID[id].work()
		m.w.must(w != nil && w.phase == j.phase && w.developer == j.developer && w.architect == j.architect && w.tries == j.tries && w.message == j.message,
			"%+v is %+v", j, w)
		m.w.must(w.loop.Iteration == j.reviews && w.loop.Limit() == j.limit() && (w.open == nil) == (j.open == nil), "%+v has had %d reviews of %d", j, w.loop.Iteration, w.loop.Limit())
		m.w.must((w.revises == nil) == (j.revises == nil) && (w.revision == nil) == (j.revision == nil), "%+v is %+v", j, w)
	}
}
