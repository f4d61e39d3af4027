package handlers

import (
	"fmt"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerRequest decides about a review request of an architect.
func (rd reviewDecision) considerRequest(x *messageContext, r *session.ReviewRequest) *wire.Error {
	if before := x.of.byReview[r.ReviewID]; before != nil {
		return errorf(wire.CodeConflict, details{"pointer": "/payload/review_id", "reason": "review_id_taken", "review_id": r.ReviewID},
			"there is a review %.80q already: take a new id for each", r.ReviewID)
	}
	w := rd.state.tasks.workOn(x.of, r.TaskID)
	if w == nil {
		return errorf(wire.CodeNotFound, details{"pointer": "/payload/task_id", "task_id": r.TaskID}, "no task of this session is called %.80q", r.TaskID)
	}
	w = w.last() // the latest revision is reviewed, whatever its id
	x.task, x.chain = w.task.view.ID, w.chain
	switch {
	case !w.loop.MayRequest():
		return errorf(wire.CodeConflict, details{"pointer": "/payload/review_id", "reason": "iterations_used_up", "iteration": w.loop.Iteration, "max_iterations": w.loop.Limit()},
			"the task %.80q has had %s, which is as many as there may be", r.TaskID, counted(w.loop.Iteration, "review"))
	case !w.active() && w.phase != session.PhaseCompleted:
		return errorf(wire.CodeConflict, details{"pointer": "/payload/task_id", "reason": "wrong_state", "task_id": r.TaskID, "state": w.phase},
			"the task %.80q cannot be reviewed now: it is %s", r.TaskID, w.how())
	case w.active():
		x.notes = append(x.notes, "/payload/task_id: its developer has not said that it is done")
	}
	x.effect, x.work = effectReview, w
	return nil
}

// requested applies a review request.
func (rd reviewDecision) requested(x *messageContext, r *session.ReviewRequest) {
	rd.works().beginWork(x.work)
	rd.questions().cancelQuestions(x.work.task)
	rd.factOf(agentPrefix+x.from.AgentID, agentPrefix+x.to.AgentID, x.task, &reviewRequested{
		Session: x.of.spec.ID, Review: r.ReviewID, ID: x.task, Named: r.TaskID, Reviewer: x.to.AgentID, Chain: x.chain,
		Wanted: r.Wanted(),
	})
}

// reviewRequested records that the work on a task is under review.
type reviewRequested struct {
	Session  string `json:"session_id"`
	Review   string `json:"review_id"`
	ID       string `json:"task"`
	Named    string `json:"task_id"` // as the request has it
	Reviewer string `json:"reviewer"`
	Chain    string `json:"correlation_id"`

	Wanted []string `json:"wanted,omitzero"` // verifications that must have been made
}

func (*reviewRequested) kind() string { return events.ReviewRequested }

func (rr *reviewRequested) apply(st *core, r *wire.Record) {
	s, w := st.sessions.byID[rr.Session], st.tasks.byID[rr.ID].work()
	v := &reviewOf{work: w, named: rr.Named, wanted: rr.Wanted, view: session.ReviewView{
		ReviewID: rr.Review, SessionID: rr.Session, TaskID: rr.ID, Reviewer: rr.Reviewer, Iteration: w.loop.Iteration + 1,
		RequestedAt: object.Timestamp(r.At),
	}}
	s.reviews = append(s.reviews, v)
	s.byReview[rr.Review] = v
	w.open = v
	st.enter(w, session.PhaseReviewing, r.At)
}

// considerResult decides about the result of a review.
func (rd reviewDecision) considerResult(x *messageContext, r *session.ReviewResult) *wire.Error {
	v := x.of.byReview[r.ReviewID]
	switch {
	case v == nil:
		return errorf(wire.CodeNotFound, details{"pointer": "/payload/review_id", "review_id": r.ReviewID},
			"there is no request for a review %.80q", r.ReviewID)
	case v.work.open != v:
		return errorf(wire.CodeConflict, details{"pointer": "/payload/review_id", "reason": "not_active", "review_id": r.ReviewID, "verdict": v.view.Verdict},
			"the review %.80q is over", r.ReviewID)
	case v.view.Reviewer != x.from.AgentID:
		return rejected("/payload/review_id", fmt.Sprintf("the review %.80q is not yours", r.ReviewID))
	}
	w := v.work
	x.task, x.chain = w.task.view.ID, w.chain
	if r.TaskID != v.named && r.TaskID != x.task {
		return errorf(wire.CodeConflict, details{"pointer": "/payload/task_id", "reason": "wrong_task", "task_id": v.named},
			"the review %.80q is of the task %.80q", r.ReviewID, v.named)
	}
	for i, f := range r.Findings {
		if f.FixedIn > int64(v.view.Iteration) && f.FixedIn > x.of.reviewsOf(w) {
			return errorf(wire.CodeConflict, details{"pointer": fmt.Sprintf("/payload/findings/%d/fixed_in_iteration", i), "iteration": v.view.Iteration},
				"the finding %.80q cannot be fixed in iteration %d: this is iteration %d", f.FindingID, f.FixedIn, v.view.Iteration)
		}
	}
	if err := r.Objection(); err != nil {
		return err
	}
	if err := r.Lacks(v.wanted); err != nil {
		return err
	}
	x.effect, x.work = effectDecide, w
	return nil
}

// decided applies the result of a review.
func (rd reviewDecision) decided(x *messageContext, r *session.ReviewResult) {
	f := &reviewDecided{Session: x.of.spec.ID, Review: r.ReviewID, ID: x.task, Reviewer: x.from.AgentID, Verdict: r.Verdict, Findings: findings(r)}
	rd.factOf(agentPrefix+x.from.AgentID, agentPrefix+x.work.architect, x.task, f)
	rd.proceed(x.work, f.step)
}

// reviewsOf returns the number of reviews of a work and of those that it revises. It exceeds the
// iteration after a review without a verdict, or after the work was planned again.
func (s *sessionState) reviewsOf(w *work) (n int64) {
	for ; w != nil; w = w.revises {
		for _, v := range s.reviews {
			if v.work == w {
				n++
			}
		}
	}
	return n
}

// findings returns the findings of a result in the form that is tracked.
func findings(r *session.ReviewResult) []review.Finding {
	found := make([]review.Finding, 0, len(r.Findings))
	for _, f := range r.Findings {
		found = append(found, review.Finding{
			ID: f.FindingID, Severity: f.Severity, Category: f.Category, File: f.Location.File, Text: session.FirstWords(f.Description, ""), Fixed: int(f.FixedIn),
		})
	}
	return found
}

// reviewDecided records the result of a review.
type reviewDecided struct {
	Session  string           `json:"session_id"`
	Review   string           `json:"review_id"`
	ID       string           `json:"task"`
	Reviewer string           `json:"reviewer"`
	Verdict  string           `json:"verdict,omitzero"` // "": it ended without one
	Why      string           `json:"why,omitzero"`
	Findings []review.Finding `json:"findings,omitzero"`

	step review.Step // that follows
}

func (*reviewDecided) kind() string { return events.ReviewDecided }

func (rd *reviewDecided) apply(st *core, r *wire.Record) {
	v := st.sessions.byID[rd.Session].byReview[rd.Review]
	w := v.work
	v.view.DecidedAt, v.view.Verdict, w.open = object.Timestamp(r.At), rd.Verdict, nil
	for _, found := range rd.Findings {
		v.view.Findings = append(v.view.Findings, found.ID)
	}
	w.of.removeItems(st, rd.ID, session.TypeReviewRequest)
	if rd.Verdict == "" {
		v.view.Verdict = session.VerdictNone
		st.enter(w, session.PhaseCompleted, r.At)
		return
	}
	rd.step = w.loop.Decide(review.Verdict(rd.Verdict), rd.Findings)
	switch rd.step {
	case review.Revise:
		st.enter(w, session.PhaseRevise, r.At)
	case review.Redesign:
		st.enter(w, session.PhaseRedesign, r.At)
	}
}

// proceed applies the step that follows from a verdict.
func (rd reviewDecision) proceed(w *work, step review.Step) {
	switch step {
	case review.Approve:
		rd.approveWork(w, "approved")
	case review.Abort, review.ForceApprove, review.AskHuman:
		rd.escalate(w)
	}
}

// approveWork completes an approved work.
func (rd reviewDecision) approveWork(w *work, why string) {
	rd.works().doneWork(w, w.result)
	for ; w != nil; w = w.revises {
		if !w.over() {
			rd.works().moveWork(w, session.PhaseOver, why)
		}
	}
}

// loseReview ends a review that its reviewer does not.
func (rd reviewDecision) loseReview(w *work, why string) {
	if v := w.open; v != nil {
		rd.fact(agentPrefix+w.architect, w.task.view.ID, &reviewDecided{
			Session: w.of.spec.ID, Review: v.view.ReviewID, ID: w.task.view.ID, Reviewer: v.view.Reviewer, Why: why,
		})
		rd.works().tellArchitect(w, fmt.Sprintf("The review %s came to nothing: %s", v.view.ReviewID, why))
	}
}

// breakReview ends a review that neither the reviewer nor the architect ends, and notifies both.
func (rd reviewDecision) breakReview(w *work, why string) {
	rd.recallReview(w, why, "")
	rd.loseReview(w, why)
}

// recallReview notifies the reviewer of a work that its review is no longer needed, unless it is
// the agent quiet.
func (rd reviewDecision) recallReview(w *work, why, quiet string) {
	if w == nil || w.open == nil {
		return
	}
	if a := rd.state.agents.byID[w.open.view.Reviewer]; a != nil && a.reachable() && a.ID != quiet {
		rd.tasks().recall(w.task, a.ID, a.run, why)
	}
}

// escalate handles a task that has reached the maximum number of reviews, as its session is
// configured.
func (rd reviewDecision) escalate(w *work) {
	open := counted(len(w.loop.Open()), "finding")
	why := fmt.Sprintf("changes are wanted after %d of %d reviews, with %s open", w.loop.Iteration, w.loop.Limit(), open)
	switch f := w.escalation(); f.Policy {
	case session.EscalateAbort:
		rd.fact(agentPrefix+w.architect, f.ID, f)
		rd.works().drop(w, "Review: "+why, "")
		rd.works().tellArchitect(w, "Aborted: "+why)
	case session.EscalateForceApprove:
		rd.fact(agentPrefix+w.architect, f.ID, f)
		rd.approveWork(w, why)
		rd.works().tellArchitect(w, "Approved all the same: "+why)
	default:
		rd.askPerson(w, why)
	}
}

func (w *work) escalation() *reviewEscalated {
	return &reviewEscalated{
		ID: w.task.view.ID, Name: w.task.view.Name, Policy: string(w.loop.Policy), Iterations: w.loop.Iteration, Open: len(w.loop.Open()),
	}
}

// askPerson asks a person what to do about a work.
func (rd reviewDecision) askPerson(w *work, why string) {
	rd.questions().cancelQuestions(w.task)
	f := w.escalation()
	f.Policy, f.QuestionID = session.EscalateHumanReview, rd.state.questions.questionID()
	f.Question = fmt.Sprintf("Task %s: %s. What is to become of it?", w.task.label(), why)
	rd.fact(agentPrefix+w.architect, f.ID, f)
	rd.works().tellArchitect(w, "A person is asked: "+why)
}

// tellArchitect notifies the architect of a work of a decision by its session or by a person.
func (wd workDecision) tellArchitect(w *work, message string) {
	if m := w.lead(); m != nil {
		wd.tasks().tell(wd.state.agents.byID[m.AgentID], w.task, wire.NoticeUpdated, message)
	}
}

// The answers of a person about a task after its last review.
const (
	judgeApprove = "approve"
	judgeRevise  = "revise"
	judgeAbort   = "abort"
)

var judgements = []wire.Option{
	{Label: "Approve it as it is", Value: judgeApprove},
	{Label: "Revise it once more", Value: judgeRevise},
	{Label: "Abort it", Value: judgeAbort},
}

// reviewEscalated records that a task has reached the maximum number of reviews, and the
// consequence.
type reviewEscalated struct {
	ID         string `json:"task"`
	Name       string `json:"name"`
	Policy     string `json:"policy"`
	Iterations int    `json:"iterations"`
	Open       int    `json:"open_findings"`
	QuestionID string `json:"question_id,omitzero"`
	Question   string `json:"question,omitzero"`
}

func (*reviewEscalated) kind() string { return events.ReviewEscalated }

func (re *reviewEscalated) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[re.ID]
	w := k.work()
	w.escalated = re.Policy
	if re.QuestionID == "" {
		return
	}
	w.question = re.QuestionID
	s.enter(w, session.PhaseHuman, r.At)
	s.questions.numbered++
	q := &question{number: s.questions.numbered, view: wire.Question{
		ID: re.QuestionID, Agent: w.architect, Task: re.ID, Question: re.Question, Options: judgements, AskedAt: object.Timestamp(r.At),
	}}
	s.questions.byID[re.QuestionID] = q
	s.questions.open = append(s.questions.open, q)
	if !k.view.State.Final() {
		s.move(k, wire.TaskNeedsHuman)
		s.updateStanding(s.agents.byID[k.view.AssignedTo])
		k.more.question = re.QuestionID
	}
}

// judge applies the answer of a person to a work. It reports false if the question was about
// something else.
func (rd reviewDecision) judge(id, question, answer string) bool {
	k := rd.state.tasks.byID[id]
	if k == nil || k.work() == nil || k.work().question != question {
		return false
	}
	w := k.work()
	switch answer {
	case judgeApprove:
		rd.approveWork(w, "approved by a person")
		rd.works().tellArchitect(w, "Approved by a person")
	case judgeRevise:
		rd.fact(agentPrefix+w.architect, id, &reviewExtended{ID: id})
		rd.works().tellArchitect(w, "A person wants it revised once more: assign it again")
	default:
		rd.works().drop(w, "Aborted by a person after its reviews", "")
		rd.works().tellArchitect(w, "Aborted by a person")
	}
	return true
}

// reviewExtended records that a person requested another revision.
type reviewExtended struct {
	ID string `json:"task"`
}

func (*reviewExtended) kind() string { return events.ReviewExtended }

func (re *reviewExtended) apply(s *core, r *wire.Record) {
	w := s.tasks.byID[re.ID].work()
	w.loop.Extend()
	s.enter(w, session.PhaseRevise, r.At)
}
