package handlers

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// job is a task of a session.
type job struct {
	id        string
	sitting   *sitting
	architect string
	developer string
	phase     string
	tries     int
	time      int64 // milliseconds allowed; 0: unlimited
	reviews   int   // that were decided
	most      int   // their limit
	extra     int   // allowed by a person beyond most
	open      *judged
	revises   *job
	revision  *job
	message   string
	chain     string
	done      bool // its developer has reported it since the assignment
	alone     bool // no agent could send or receive a completion when it ended
	question  string
}

// edges maps each phase of a task of a session to its next phases.
var edges = map[string][]string{
	"":                     {session.PhaseHeld, session.PhaseAssigned},
	session.PhaseHeld:      {session.PhaseAssigned, session.PhaseOver},
	session.PhaseAssigned:  {session.PhaseWorking, session.PhaseOver},
	session.PhaseWorking:   {session.PhaseWorking, session.PhaseAssigned, session.PhaseCompleted, session.PhaseReviewing, session.PhaseOver},
	session.PhaseCompleted: {session.PhaseReviewing, session.PhaseAssigned, session.PhaseHuman, session.PhaseOver},
	session.PhaseReviewing: {session.PhaseCompleted, session.PhaseRevise, session.PhaseRedesign, session.PhaseHuman, session.PhaseOver},
	session.PhaseRevise:    {session.PhaseAssigned, session.PhaseHuman, session.PhaseOver},
	session.PhaseRedesign:  {session.PhaseWorking, session.PhaseHuman, session.PhaseOver},
	session.PhaseHuman:     {session.PhaseRevise, session.PhaseWorking, session.PhaseOver},
	session.PhaseOver:      {},
}

// enter moves a task to a phase.
func (m *minutes) enter(j *job, phase string) {
	m.w.must(slices.Contains(edges[j.phase], phase), "%s of %s is %s and becomes %s", j.id, j.sitting.spec.ID, j.phase, phase)
	j.phase = phase
	m.w.saw["phase "+phase]++
	if phase != session.PhaseAssigned && phase != session.PhaseHeld {
		m.overtake(j.id, session.TypeTaskAssignment)
	}
	if phase == session.PhaseOver {
		m.decide(j, session.VerdictNone)
		m.overtake(j.id, session.TypeReviewRequest)
		j.sitting.live = slices.DeleteFunc(j.sitting.live, func(o *job) bool { return o == j })
		m.turn.over = append(m.turn.over, j)
	}
}

// decide ends the open review of a task, if there is one.
func (m *minutes) decide(j *job, verdict string) {
	if j.open == nil {
		return
	}
	s := j.sitting
	s.asked = slices.DeleteFunc(s.asked, func(v *judged) bool { return v == j.open })
	j.open.verdict, j.open = verdict, nil
}

// limit returns how many reviews are allowed.
func (j *job) limit() int { return j.most + j.extra }

// extend allows at least one more review, even if the limit is exceeded.
func (j *job) extend() { j.extra += 1 + max(0, j.reviews-j.limit()) }

// hearDone checks a developer's report on a task: the developer has the task, and no file
// outside its scope was changed.
func (m *minutes) hearDone(f *state.SessionSaid) {
	j := m.jobs[f.Task]
	m.w.must(j != nil && j.developer == f.From, "%s of %s is taken from %s", f.Type, f.Task, f.From)
	early := j.phase == session.PhaseReviewing && !j.done && f.Type == session.TypeTaskCompletion
	m.w.must(early || j.phase == session.PhaseAssigned || j.phase == session.PhaseWorking, "%s of %s is taken, which is %s", f.Type, f.Task, j.phase)
	m.w.must(f.Type == session.TypeTaskProgress || bytes.Contains(f.Document, []byte(`"path":"src/a.go"`)), "%s is within its scope", f.Document)
}

// hearJob follows the tasks of sessions.
func (m *minutes) hearJob(f state.Fact, r *wire.Record) {
	if f, ok := f.(*state.WorkAssigned); ok {
		m.assign(f)
		return
	}
	j := m.jobs[r.Correlation]
	m.w.must(j != nil, "%s of %q, which is no task of a session", r.Kind, r.Correlation)
	switch f := f.(type) {
	case *state.WorkMoved:
		m.hearMoved(j, f)
	case *state.WorkRepeated:
		j.message = f.Message
		m.w.must(j.phase == session.PhaseAssigned, "%s is assigned again, and %s", j.id, j.phase)
	case *state.WorkCompleted:
		j.done = true
		if j.phase != session.PhaseReviewing {
			m.enter(j, session.PhaseCompleted)
		}
	case *state.WorkTroubled:
		m.w.must(f.Tries >= j.tries && f.Tries <= 2, "%s is tried for the %d. time", j.id, f.Tries)
		if f.Tries > j.tries && f.ErrorType == session.ExecutionTimeout {
			j.time *= 2
		}
		m.w.must(f.Limit == j.time, "%s has %d milliseconds, not %d", j.id, f.Limit, j.time)
		j.tries = f.Tries
		m.turn.troubles++
		m.w.saw["trouble: "+f.ErrorType+", "+f.SuggestedAction]++
	case *state.ProgressOverdue:
		m.w.must(j.phase == session.PhaseWorking || j.phase == session.PhaseAssigned, "%s is overdue, and %s", j.id, j.phase)
	case *state.QuestionAnswered:
		if f.ID == j.question {
			m.turn.words[j.id] = true
			m.w.saw["judged: "+f.Answer]++
		}
	case *state.TaskStarted:
		switch j.phase {
		case session.PhaseRedesign: // a redesign starts again
			j.reviews, j.extra = 0, 0
		case session.PhaseHuman: // decided by another operation
			j.extend()
			m.w.saw["begun while a person was asked"]++
		}
		m.enter(j, session.PhaseWorking)
	case *state.TaskDone, *state.TaskFailed, *state.TaskCancelled:
		m.turn.ended = append(m.turn.ended, j)
		planners := slices.ContainsFunc(j.sitting.spec.Members, func(o session.Member) bool {
			return o.AgentID == j.architect || o.AgentType == session.AgentArchitect
		})
		j.alone = j.sitting.typeOf(j.developer) == "" || !planners
		switch {
		case j.phase == session.PhaseOver:
			m.w.must(false, "%s has ended, and is over already", j.id)
		case r.Kind == events.TaskDone && (j.phase == session.PhaseAssigned || j.phase == session.PhaseWorking || j.phase == session.PhaseHeld):
			m.enter(j, session.PhaseCompleted)
		default:
			m.enter(j, session.PhaseOver)
		}
	default:
		m.hearReview(j, f)
	}
}

// assign follows the assignment of a task to a developer: a new task, or a task after a review that
// requests changes.
func (m *minutes) assign(f *state.WorkAssigned) {
	s, j := m.sittings[f.Session], m.jobs[f.ID]
	if j == nil {
		j = &job{id: f.ID, sitting: s, most: int(s.spec.MaxIterations)}
		m.jobs[f.ID] = j
		s.live = append(s.live, j)
		if before := m.jobs[f.Revises]; before != nil {
			m.w.must(before.sitting == s && before.revision == nil, "%s revises %s", f.ID, f.Revises)
			if j.revises, before.revision, j.most = before, j, before.most; before.phase == session.PhaseRevise {
				j.reviews, j.extra = before.reviews, before.extra
			} else {
				m.w.must(before.phase == session.PhaseRedesign, "%s revises %s, which is %s", f.ID, f.Revises, before.phase)
			}
			m.w.saw["revised by another name, "+before.phase]++
		}
	} else {
		m.w.must(j.sitting == s && j.phase == session.PhaseRevise && j.revision == nil, "%s is assigned again, and is %s", f.ID, j.phase)
		m.w.saw["revised by the same name"]++
	}
	if f.MaxIterations > 0 {
		j.most = int(f.MaxIterations)
	}
	m.w.must(s.typeOf(f.Developer) == session.AgentDeveloper && s.typeOf(f.Architect) == session.AgentArchitect, "%s assigns to %s", f.Architect, f.Developer)
	j.architect, j.developer, j.message, j.chain, j.tries, j.done, j.time = f.Architect, f.Developer, f.Message, f.Chain, 1, false, s.spec.TaskTimeout
	phase := session.PhaseAssigned
	if f.Held {
		phase = session.PhaseHeld
	}
	m.enter(j, phase)
}

func (m *minutes) hearMoved(j *job, f *state.WorkMoved) {
	held := j.phase == session.PhaseHeld
	m.enter(j, f.Phase)
	if !held || f.Phase != session.PhaseAssigned {
		return
	}
	for _, p := range slices.Clone(m.posts) {
		if !p.held || p.Task != j.id {
			continue
		}
		if p.held, p.again = false, true; m.w.state.Agents.Pulls(p.To) {
			m.forget(p)
		}
	}
}

// hearReview follows the reviews of a task.
func (m *minutes) hearReview(j *job, f state.Fact) {
	s := j.sitting
	switch f := f.(type) {
	case *state.ReviewRequested:
		m.w.must(s.reviews[f.Review] == nil && j.open == nil, "%s is to be reviewed as %s", j.id, f.Review)
		m.w.must(j.reviews < j.limit() && j.revision == nil, "%s has had %d reviews of %d", j.id, j.reviews, j.limit())
		v := &judged{id: f.Review, reviewer: f.Reviewer, job: j}
		s.reviews[f.Review], j.open = v, v
		s.asked = append(s.asked, v)
		m.enter(j, session.PhaseReviewing)
	case *state.ReviewDecided:
		m.w.must(j.open != nil && j.open.id == f.Review && j.open.reviewer == f.Reviewer, "%s is judged by %s as %s", j.id, f.Reviewer, f.Review)
		m.decide(j, cmp.Or(f.Verdict, session.VerdictNone))
		m.overtake(j.id, session.TypeReviewRequest)
		m.w.saw["verdict "+f.Verdict]++
		if f.Verdict != "" {
			j.reviews++
		}
		m.w.must(j.reviews <= j.limit(), "%s has had %d reviews of %d", j.id, j.reviews, j.limit())
		switch {
		case f.Verdict == "":
			m.enter(j, session.PhaseCompleted)
		case f.Verdict == session.VerdictRejected:
			m.enter(j, session.PhaseRedesign)
		case f.Verdict == session.VerdictChangesRequested && j.reviews < j.limit():
			m.enter(j, session.PhaseRevise)
		}
	case *state.ReviewEscalated:
		last := j.reviews == j.limit() && j.phase == session.PhaseReviewing // else no agent could continue it
		m.w.must(f.Policy != "" && j.revision == nil && (last || f.QuestionID != ""), "%s is %s after %d reviews of %d", j.id, j.phase, j.reviews, j.limit())
		m.w.saw[fmt.Sprintf("escalated at the last: %t", last)]++
		m.w.saw["escalated: "+f.Policy]++
		if j.question = f.QuestionID; f.QuestionID != "" {
			m.enter(j, session.PhaseHuman)
		}
	case *state.ReviewExtended:
		j.extend()
		m.enter(j, session.PhaseRevise)
	default:
		m.w.must(false, "nobody follows a %s", state.FactKind(f))
	}
}

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
	case session.PhaseCompleted, session.PhaseReviewing, session.PhaseRevise:
		return wire.TaskInReview
	case session.PhaseRedesign:
		return wire.TaskPlanning
	case session.PhaseHuman:
		return wire.TaskNeedsHuman
	}
	return ""
}

// sessionMoves maps states to next states that only tasks of sessions have.
var sessionMoves = map[wire.TaskState][]wire.TaskState{
	wire.TaskAssigned:   {wire.TaskAssigned, wire.TaskFailed},
	wire.TaskRunning:    {wire.TaskAssigned, wire.TaskInReview},
	wire.TaskVerifying:  {wire.TaskAssigned, wire.TaskInReview},
	wire.TaskInReview:   {wire.TaskAssigned, wire.TaskPlanning, wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskNeedsHuman: {wire.TaskAssigned, wire.TaskInReview, wire.TaskDone, wire.TaskFailed},
	wire.TaskPlanning:   {wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed},
	wire.TaskPlanReview: {wire.TaskNeedsHuman, wire.TaskDone, wire.TaskFailed},
	wire.TaskPending:    {wire.TaskFailed},
}

// lookAtJobs compares the progress of tasks with the State.
func (m *minutes) lookAtJobs() {
	for _, s := range m.order {
		x := m.w.state.Sessions.ByID[s.spec.ID]
		m.w.must(x != nil && x.Closed() != s.open && x.Messages == s.messages && x.Refused == s.refused, "%s is %+v", s.spec.ID, x)
		for _, v := range s.reviews {
			have := x.ByReview[v.id]
			m.w.must(have.View.Verdict == v.verdict && have.View.TaskID == v.job.id && have.View.Reviewer == v.reviewer, "%+v is %+v", v, have.View)
		}
	}
	for id, j := range m.jobs {
		w := m.w.task(id).Work()
		m.w.must(w != nil && w.Phase == j.phase && w.Developer == j.developer && w.Architect == j.architect && w.Tries == j.tries && w.Message == j.message,
			"%+v is %+v", j, w)
		m.w.must(w.Loop.Iteration == j.reviews && w.Loop.Limit() == j.limit() && (w.Open == nil) == (j.open == nil), "%+v has had %d reviews of %d", j, w.Loop.Iteration, w.Loop.Limit())
		m.w.must((w.Revises == nil) == (j.revises == nil) && (w.Revision == nil) == (j.revision == nil), "%+v is %+v", j, w)
	}
}
