package handlers

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

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

func (re *reviewEscalated) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[re.ID]
	w := k.work()
	w.escalated = re.Policy
	if re.QuestionID == "" {
		return
	}
	w.question = re.QuestionID
	s.enter(w, wire.PhaseHuman, r.At)
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

func (re *reviewExtended) apply(s *State, r *wire.Record) {
	w := s.tasks.byID[re.ID].work()
	w.loop.Extend()
	s.enter(w, wire.PhaseRevise, r.At)
}
