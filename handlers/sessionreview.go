package handlers

import (
	"fmt"

	"orchestrator/handlers/review"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// considerRequest decides about a review request of an architect.
func (rd reviewDecision) considerRequest(x *messageContext, r *session.ReviewRequest) *wire.Error {
	if before := x.of.ByReview[r.ReviewID]; before != nil {
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/review_id", "reason": "review_id_taken", "review_id": r.ReviewID},
			"review %.80q already exists: use a new id for each", r.ReviewID)
	}
	w := rd.state.Tasks.WorkOn(x.of, r.TaskID)
	if w == nil {
		return state.Errorf(wire.CodeNotFound, state.Details{"pointer": "/payload/task_id", "task_id": r.TaskID}, "no task of this session is called %.80q", r.TaskID)
	}
	w = w.Last() // the latest revision is reviewed, whatever its id
	x.task, x.chain = w.Task.View.ID, w.Chain
	switch {
	case !w.Loop.MayRequest():
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/review_id", "reason": "iterations_used_up", "iteration": w.Loop.Iteration, "max_iterations": w.Loop.Limit()},
			"the task %.80q has had %s, which is the limit", r.TaskID, state.Counted(w.Loop.Iteration, "review"))
	case !w.Active() && w.Phase != session.PhaseCompleted:
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/task_id", "reason": "wrong_state", "task_id": r.TaskID, "state": w.Phase},
			"the task %.80q cannot be reviewed now: it is %s", r.TaskID, w.How())
	case w.Active():
		x.notes = append(x.notes, "/payload/task_id: its developer has not reported it as done")
	}
	x.effect, x.work = effectReview, w
	return nil
}

// requested applies a review request.
func (rd reviewDecision) requested(x *messageContext, r *session.ReviewRequest) {
	rd.works().beginWork(x.work)
	rd.questions().cancelQuestions(x.work.Task)
	rd.factOf(state.AgentPrefix+x.from.AgentID, state.AgentPrefix+x.to.AgentID, x.task, &state.ReviewRequested{
		Session: x.of.Spec.ID, Review: r.ReviewID, ID: x.task, Named: r.TaskID, Reviewer: x.to.AgentID, Chain: x.chain,
		Wanted: r.Wanted(),
	})
}

// considerResult decides about the result of a review.
func (rd reviewDecision) considerResult(x *messageContext, r *session.ReviewResult) *wire.Error {
	v := x.of.ByReview[r.ReviewID]
	switch {
	case v == nil:
		return state.Errorf(wire.CodeNotFound, state.Details{"pointer": "/payload/review_id", "review_id": r.ReviewID},
			"no review %.80q was requested", r.ReviewID)
	case v.Work.Open != v:
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/review_id", "reason": "not_active", "review_id": r.ReviewID, "verdict": v.View.Verdict},
			"the review %.80q is over", r.ReviewID)
	case v.View.Reviewer != x.from.AgentID:
		return rejected("/payload/review_id", fmt.Sprintf("the review %.80q is not yours", r.ReviewID))
	}
	w := v.Work
	x.task, x.chain = w.Task.View.ID, w.Chain
	if r.TaskID != v.Named && r.TaskID != x.task {
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/task_id", "reason": "wrong_task", "task_id": v.Named},
			"the review %.80q is of the task %.80q", r.ReviewID, v.Named)
	}
	for i, f := range r.Findings {
		if f.FixedIn > int64(v.View.Iteration) && f.FixedIn > x.of.ReviewsOf(w) {
			return state.Errorf(wire.CodeConflict, state.Details{"pointer": fmt.Sprintf("/payload/findings/%d/fixed_in_iteration", i), "iteration": v.View.Iteration},
				"the finding %.80q cannot be fixed in iteration %d: this is iteration %d", f.FindingID, f.FixedIn, v.View.Iteration)
		}
	}
	if err := r.Objection(); err != nil {
		return err
	}
	if err := r.Lacks(v.Wanted); err != nil {
		return err
	}
	x.effect, x.work = effectDecide, w
	return nil
}

// decided applies the result of a review.
func (rd reviewDecision) decided(x *messageContext, r *session.ReviewResult) {
	f := &state.ReviewDecided{Session: x.of.Spec.ID, Review: r.ReviewID, ID: x.task, Reviewer: x.from.AgentID, Verdict: r.Verdict, Findings: findings(r)}
	rd.factOf(state.AgentPrefix+x.from.AgentID, state.AgentPrefix+x.work.Architect, x.task, f)
	rd.proceed(x.work, f.Step)
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

// proceed applies the step that follows from a verdict.
func (rd reviewDecision) proceed(w *state.Work, step review.Step) {
	switch step {
	case review.Approve:
		rd.approveWork(w, "approved")
	case review.Abort, review.ForceApprove, review.AskHuman:
		rd.escalate(w)
	}
}

// approveWork completes an approved work.
func (rd reviewDecision) approveWork(w *state.Work, why string) {
	rd.works().doneWork(w, w.Result)
	for ; w != nil; w = w.Revises {
		if !w.Over() {
			rd.works().moveWork(w, session.PhaseOver, why)
		}
	}
}

// loseReview ends a review that its reviewer does not.
func (rd reviewDecision) loseReview(w *state.Work, why string) {
	if v := w.Open; v != nil {
		rd.fact(state.AgentPrefix+w.Architect, w.Task.View.ID, &state.ReviewDecided{
			Session: w.Of.Spec.ID, Review: v.View.ReviewID, ID: w.Task.View.ID, Reviewer: v.View.Reviewer, Why: why,
		})
		rd.works().tellArchitect(w, fmt.Sprintf("The review %s ended without a verdict: %s", v.View.ReviewID, why))
	}
}

// breakReview ends a review that neither the reviewer nor the architect ends, and notifies both.
func (rd reviewDecision) breakReview(w *state.Work, why string) {
	rd.recallReview(w, why, "")
	rd.loseReview(w, why)
}

// recallReview notifies the reviewer of a work that its review is no longer needed, unless it is
// the agent quiet.
func (rd reviewDecision) recallReview(w *state.Work, why, quiet string) {
	if w == nil || w.Open == nil {
		return
	}
	if a := rd.state.Agents.ByID[w.Open.View.Reviewer]; a != nil && a.Reachable() && a.ID != quiet {
		rd.tasks().recall(w.Task, a.ID, a.Run, why)
	}
}

// escalate handles a task that has reached the maximum number of reviews, as its session is
// configured.
func (rd reviewDecision) escalate(w *state.Work) {
	open := state.Counted(len(w.Loop.Open()), "finding")
	why := fmt.Sprintf("changes are requested after %d of %d reviews, with %s open", w.Loop.Iteration, w.Loop.Limit(), open)
	switch f := w.Escalation(); f.Policy {
	case session.EscalateAbort:
		rd.fact(state.AgentPrefix+w.Architect, f.ID, f)
		rd.works().drop(w, "Review: "+why, "")
		rd.works().tellArchitect(w, "Aborted: "+why)
	case session.EscalateForceApprove:
		rd.fact(state.AgentPrefix+w.Architect, f.ID, f)
		rd.approveWork(w, why)
		rd.works().tellArchitect(w, "Approved anyway: "+why)
	default:
		rd.askPerson(w, why)
	}
}

// askPerson asks a person for a decision about a work.
func (rd reviewDecision) askPerson(w *state.Work, why string) {
	rd.questions().cancelQuestions(w.Task)
	f := w.Escalation()
	f.Policy, f.QuestionID = session.EscalateHumanReview, rd.state.Questions.QuestionID()
	f.Question = fmt.Sprintf("Task %s: %s. What should happen to it?", w.Task.Label(), why)
	rd.fact(state.AgentPrefix+w.Architect, f.ID, f)
	rd.works().tellArchitect(w, "A person is asked: "+why)
}

// tellArchitect notifies the architect of a work of a decision by its session or by a person.
func (wd workDecision) tellArchitect(w *state.Work, message string) {
	if m := w.Lead(); m != nil {
		wd.tasks().tell(wd.state.Agents.ByID[m.AgentID], w.Task, wire.NoticeUpdated, message)
	}
}

// judge applies the answer of a person to a work. It reports false for a question about another
// subject.
func (rd reviewDecision) judge(id, question, answer string) bool {
	t := rd.state.Tasks.ByID[id]
	if t == nil || t.Work() == nil || t.Work().Question != question {
		return false
	}
	w := t.Work()
	switch answer {
	case state.JudgeApprove:
		rd.approveWork(w, "approved by a person")
		rd.works().tellArchitect(w, "Approved by a person")
	case state.JudgeRevise:
		rd.fact(state.AgentPrefix+w.Architect, id, &state.ReviewExtended{ID: id})
		rd.works().tellArchitect(w, "A person requested another revision: assign it again")
	default:
		rd.works().drop(w, "Aborted by a person after its reviews", "")
		rd.works().tellArchitect(w, "Aborted by a person")
	}
	return true
}
