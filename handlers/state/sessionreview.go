package state

import (
	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// ReviewRequested records that the work on a task is under review.
type ReviewRequested struct {
	Session  string `json:"session_id"`
	Review   string `json:"review_id"`
	ID       string `json:"task"`
	Named    string `json:"task_id"` // as the request has it
	Reviewer string `json:"reviewer"`
	Chain    string `json:"correlation_id"`

	Wanted []string `json:"wanted,omitzero"` // verifications that must have been made
}

func (*ReviewRequested) kind() string { return events.ReviewRequested }

func (rr *ReviewRequested) apply(st *State, r *wire.Record) {
	s, w := st.Sessions.ByID[rr.Session], st.Tasks.ByID[rr.ID].Work()
	v := &ReviewOf{Work: w, StoredReview: StoredReview{Named: rr.Named, Wanted: rr.Wanted, View: session.ReviewView{
		ReviewID: rr.Review, SessionID: rr.Session, TaskID: rr.ID, Reviewer: rr.Reviewer, Iteration: w.Loop.Iteration + 1,
		RequestedAt: object.Timestamp(r.At),
	}}}
	s.Reviews = append(s.Reviews, v)
	s.ByReview[rr.Review] = v
	w.Open = v
	st.enter(w, session.PhaseReviewing, r.At)
}

// ReviewsOf returns the number of reviews of a work and of the works that it revises. It exceeds
// the iteration after a review without a verdict, or after the work was planned again.
func (s *SessionState) ReviewsOf(w *Work) (n int64) {
	for ; w != nil; w = w.Revises {
		for _, v := range s.Reviews {
			if v.Work == w {
				n++
			}
		}
	}
	return n
}

// ReviewDecided records the result of a review.
type ReviewDecided struct {
	Session  string           `json:"session_id"`
	Review   string           `json:"review_id"`
	ID       string           `json:"task"`
	Reviewer string           `json:"reviewer"`
	Verdict  string           `json:"verdict,omitzero"` // "": it ended without one
	Why      string           `json:"why,omitzero"`
	Findings []review.Finding `json:"findings,omitzero"`

	Step review.Step `json:"-"` // that follows
}

func (*ReviewDecided) kind() string { return events.ReviewDecided }

func (rd *ReviewDecided) apply(st *State, r *wire.Record) {
	v := st.Sessions.ByID[rd.Session].ByReview[rd.Review]
	w := v.Work
	v.View.DecidedAt, v.View.Verdict, w.Open = object.Timestamp(r.At), rd.Verdict, nil
	for _, found := range rd.Findings {
		v.View.Findings = append(v.View.Findings, found.ID)
	}
	w.Of.removeItems(st, rd.ID, session.TypeReviewRequest)
	if rd.Verdict == "" {
		v.View.Verdict = session.VerdictNone
		st.enter(w, session.PhaseCompleted, r.At)
		return
	}
	rd.Step = w.Loop.Decide(review.Verdict(rd.Verdict), rd.Findings)
	switch rd.Step {
	case review.Revise:
		st.enter(w, session.PhaseRevise, r.At)
	case review.Redesign:
		st.enter(w, session.PhaseRedesign, r.At)
	}
}

func (w *Work) Escalation() *ReviewEscalated {
	return &ReviewEscalated{
		ID: w.Task.View.ID, Name: w.Task.View.Name, Policy: string(w.Loop.Policy), Iterations: w.Loop.Iteration, Open: len(w.Loop.Open()),
	}
}

// The answers of a person about a task after its last review.
const (
	JudgeApprove = "approve"
	JudgeRevise  = "revise"
	judgeAbort   = "abort"
)

var judgements = []wire.Option{
	{Label: "Approve it", Value: JudgeApprove},
	{Label: "Revise it again", Value: JudgeRevise},
	{Label: "Abort it", Value: judgeAbort},
}

// ReviewEscalated records that a task has reached the maximum number of reviews, and the
// consequence.
type ReviewEscalated struct {
	ID         string `json:"task"`
	Name       string `json:"name"`
	Policy     string `json:"policy"`
	Iterations int    `json:"iterations"`
	Open       int    `json:"open_findings"`
	QuestionID string `json:"question_id,omitzero"`
	Question   string `json:"question,omitzero"`
}

func (*ReviewEscalated) kind() string { return events.ReviewEscalated }

func (re *ReviewEscalated) apply(s *State, r *wire.Record) {
	t := s.Tasks.ByID[re.ID]
	w := t.Work()
	w.Escalated = re.Policy
	if re.QuestionID == "" {
		return
	}
	w.Question = re.QuestionID
	s.enter(w, session.PhaseHuman, r.At)
	s.Questions.Numbered++
	q := &Question{StoredQuestion: StoredQuestion{Number: s.Questions.Numbered, View: wire.Question{
		ID: re.QuestionID, Agent: w.Architect, Task: re.ID, Question: re.Question, Options: judgements, AskedAt: object.Timestamp(r.At),
	}}}
	s.Questions.ByID[re.QuestionID] = q
	s.Questions.Open = append(s.Questions.Open, q)
	if !t.View.State.Final() {
		s.move(t, wire.TaskNeedsHuman)
		s.updateStanding(s.Agents.ByID[t.View.AssignedTo])
		t.Extra.Question = re.QuestionID
	}
}

// ReviewExtended records that a person requested another revision.
type ReviewExtended struct {
	ID string `json:"task"`
}

func (*ReviewExtended) kind() string { return events.ReviewExtended }

func (re *ReviewExtended) apply(s *State, r *wire.Record) {
	w := s.Tasks.ByID[re.ID].Work()
	w.Loop.Extend()
	s.enter(w, session.PhaseRevise, r.At)
}
