package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A question is an open question of an agent to people.
type Question struct {
	StoredQuestion
	Deadline time.Time
}

// A StoredQuestion is the part of a Question that a snapshot copies.
type StoredQuestion struct {
	View    wire.Question `json:"view"`
	Number  int64         `json:"number"`
	Run     string        `json:"run,omitzero"`     // that waits for the answer
	Door    bool          `json:"door,omitzero"`    // an HTTP request waits for the answer, not a process
	Request *RequestKey   `json:"request,omitzero"` // nil when no caller waits
	Aside   bool          `json:"aside,omitzero"`   // its task goes on while it is open
	Until   time.Time     `json:"until,omitzero"`   // its caller waits so long; then the answer goes by mail
	Mailed  bool          `json:"mailed,omitzero"`  // the answer goes by mail
	Own     bool          `json:"own,omitzero"`     // the orchestrator asks it about the agent
}

func (qs *questions) QuestionID() string { return fmt.Sprintf("q%d", qs.Numbered+1) }

// QuestionAsked records a new question.
type QuestionAsked struct {
	ID       string        `json:"question_id"`
	Agent    string        `json:"agent"`
	Question string        `json:"question"`
	Options  []wire.Option `json:"options,omitzero"`
	Context  wire.Raw      `json:"context,omitzero"`
	Deadline string        `json:"deadline,omitzero"`
	Request  *RequestKey   `json:"request,omitzero"` // nil: the agent does not wait
	Until    string        `json:"until,omitzero"`   // the agent waits so long; then the answer goes by mail
	Own      bool          `json:"own,omitzero"`     // the orchestrator asks it about the agent

	Task       string               `json:"for_task,omitzero"` // that the agent works on
	Permission *activity.Permission `json:"permission,omitzero"`
}

func (*QuestionAsked) kind() string { return events.QuestionAsked }

func (qa *QuestionAsked) apply(s *State, r *wire.Record) {
	s.Questions.Numbered++
	q := &Question{StoredQuestion: StoredQuestion{
		Number: s.Questions.Numbered, Aside: true, Own: qa.Own,
		View: wire.Question{
			ID: qa.ID, Agent: qa.Agent, Question: qa.Question, Options: qa.Options, Context: qa.Context,
			Blocking: qa.Request != nil, AskedAt: object.Timestamp(r.At), Task: qa.Task, Permission: qa.Permission,
		},
	}}
	s.Questions.ByID[qa.ID] = q
	s.Questions.Open = append(s.Questions.Open, q)
	q.Until, _ = object.ParseTime(qa.Until)
	s.await(q, qa.Request, qa.Deadline)
}

// QuestionKept records that the caller stopped waiting for the answer. It gets the answer as mail.
type QuestionKept struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
}

func (*QuestionKept) kind() string { return events.QuestionKept }

func (qk *QuestionKept) apply(s *State, _ *wire.Record) {
	q := s.Questions.ByID[qk.ID]
	s.Questions.Deadlines.Drop(q)
	s.settle(qk.Agent, q.Request, q.Asked(), nil)
	q.Request, q.Door, q.Until, q.Mailed = nil, false, time.Time{}, true
	q.View.Blocking = false
	s.Questions.KeepDeadline(q)
}

// Asked returns the reply to a caller that stopped waiting.
func (q *Question) Asked() *wire.UserAnswer { return &wire.UserAnswer{QuestionID: q.View.ID} }

// AnsweredByMail is the payload of the message with an answer.
type AnsweredByMail struct {
	Text       string `json:"text"`
	QuestionID string `json:"questionId"`
	Question   string `json:"question"`
	Answer     string `json:"answer"`
	Choice     string `json:"choice,omitzero"`  // about a permission
	Message    string `json:"message,omitzero"` // about a permission: the person's remark
}

// ByMail returns the message with the answer to a question for a caller that does not wait, or nil
// if none is to be sent. A caller of an earlier run gets it like a caller that waited only for a
// time, unless it asked for a permission: the next run asks again before it uses the tool.
func (q *Question) ByMail(answer, message string) *AnsweredByMail {
	if !q.Mailed && (q.Request == nil || q.Door || q.View.Permission != nil) {
		return nil
	}
	letter := &AnsweredByMail{
		Text:       fmt.Sprintf("You asked: %s\nA person answered: %s", q.View.Question, answer),
		QuestionID: q.View.ID, Question: q.View.Question, Answer: answer,
	}
	if q.View.Permission != nil {
		letter.Choice, letter.Message = answer, message
		if message != "" {
			letter.Text += "\n" + message
		}
	}
	return letter
}

// QuestionRejoined records that another run of the agent waits for the answer.
type QuestionRejoined struct {
	ID       string      `json:"question_id"`
	Agent    string      `json:"agent"`
	Deadline string      `json:"deadline"`
	Until    string      `json:"until,omitzero"`
	Request  *RequestKey `json:"request"`
}

func (*QuestionRejoined) kind() string { return events.QuestionRejoined }

func (qr *QuestionRejoined) apply(s *State, _ *wire.Record) {
	q := s.Questions.ByID[qr.ID]
	s.Questions.Deadlines.Drop(q)
	q.Until, _ = object.ParseTime(qr.Until)
	s.await(q, qr.Request, qr.Deadline)
}

// await sets the request that waits for the answer to a question, and its deadline.
func (s *State) await(q *Question, mk *RequestKey, deadline string) {
	q.Request, q.View.Deadline = mk, deadline
	q.Deadline, _ = object.ParseTime(deadline)
	s.Questions.KeepDeadline(q)
	if mk == nil {
		return
	}
	a := s.Agents.ByID[q.View.Agent]
	q.Run, q.Door = mk.Run, a == nil || mk.Run == "" || a.Run != mk.Run
	s.saveReply(q.View.Agent, mk, nil, nil)
}

// Waited reports whether the caller still waits: an agent as long as its run lasts, and an HTTP
// request as long as the orchestrator runs.
func (q *Question) Waited(s *State) bool {
	if q.Request == nil || q.Door || q.Run == "" { // without a run it was asked over HTTP
		return q.Door
	}
	a := s.Agents.ByID[q.View.Agent]
	return a != nil && a.Run == q.Run && a.State != offline && a.State != crashed
}

func (q *Question) Asker() Actor { return Actor{Kind: Agent, Name: q.View.Agent, Run: q.Run} }

// close removes an open question and returns it.
func (qs *questions) close(id string) *Question {
	q := qs.ByID[id]
	delete(qs.ByID, id)
	qs.Deadlines.Drop(q)
	at, _ := slices.BinarySearchFunc(qs.Open, q.Number, func(o *Question, number int64) int { return cmp.Compare(o.Number, number) })
	qs.Open = slices.Delete(qs.Open, at, at+1)
	return q
}

// QuestionAnswered records the answer of a person.
type QuestionAnswered struct {
	ID     string `json:"question_id"`
	Agent  string `json:"agent"`
	Answer string `json:"answer"`
	Told   bool   `json:"told"` // the agent still waited

	Message string `json:"message,omitzero"`
	Late    bool   `json:"late,omitzero"` // the next run of the agent gets it as mail
}

func (*QuestionAnswered) kind() string { return events.QuestionAnswered }

func (qa *QuestionAnswered) apply(s *State, r *wire.Record) {
	q := s.Questions.close(qa.ID)
	answer := q.Answer(qa.Answer, qa.Message, r.At)
	if a := s.Agents.ByID[qa.Agent]; a != nil && qa.Late {
		a.Late = append(a.Late, q.ByMail(qa.Answer, qa.Message))
	}
	if a := s.Agents.ByID[qa.Agent]; a != nil && q.View.Permission != nil {
		session := a.Session()
		if q.Run != "" && q.Run != a.Run { // the session of the question has ended
			session = ""
		}
		a.Grants.Remember(q.View.Permission, qa.Answer, session)
	}
	s.settle(qa.Agent, q.Request, answer, nil)
	s.Tasks.help(q, qa.Answer, r)
}

// Answer returns the answer of a person as its caller gets it.
func (q *Question) Answer(answer, message string, at time.Time) *wire.UserAnswer {
	a := &wire.UserAnswer{Answer: answer, Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(at)}}
	if q.View.Permission != nil {
		a.Choice, a.Message = answer, message
	}
	return a
}

// Awaits reports whether the task of a question waits for its answer.
func (ts *tasks) Awaits(q *Question) bool {
	t := ts.ByID[q.View.Task]
	return t != nil && t.Extra != nil && !q.Aside
}

// help adds the answer of a person to the task of the question.
func (ts *tasks) help(q *Question, answer string, r *wire.Record) {
	if !ts.Awaits(q) {
		return
	}
	t := ts.ByID[q.View.Task]
	ts.beforeChange(t)
	t.Extra.Question = ""
	if r.Correlation == t.View.ID { // records of an earlier version have no task
		t.Extra.Parts = append(t.Extra.Parts, r.Seq)
	}
	t.View.Details = answered(t.View.Details, answer, r)
}

// answered returns the details of a task with the answer of a person.
func answered(d *wire.Details, answer string, r *wire.Record) *wire.Details {
	if d == nil || d.Help == nil {
		return d
	}
	d, help := d.Copy(), *d.Help
	help.Answer, help.AnsweredAt = answer, object.Timestamp(r.At)
	d.Help = &help
	return d
}

// QuestionExpired records that there was no answer in time.
type QuestionExpired struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
}

func (*QuestionExpired) kind() string { return events.QuestionExpired }

func (qe *QuestionExpired) apply(s *State, _ *wire.Record) {
	q := s.Questions.close(qe.ID)
	s.settle(qe.Agent, q.Request, nil, Expired())
}

// TaskHelp records that an agent needs a person for its task.
type TaskHelp struct {
	ID         string      `json:"task"`
	Name       string      `json:"name"`
	Agent      string      `json:"agent"`
	QuestionID string      `json:"question_id"`
	Question   string      `json:"question"`
	Context    wire.Raw    `json:"context,omitzero"`
	Actor      string      `json:"actor,omitzero"` // its agent on the bus
	Request    *RequestKey `json:"request,omitzero"`

	Options []wire.Option `json:"options,omitzero"`
}

func (*TaskHelp) kind() string { return events.TaskHelpWanted }

func (t *TaskHelp) help() *wire.Help {
	return &wire.Help{QuestionID: t.QuestionID, Question: t.Question, Context: t.Context}
}

func (t *TaskHelp) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	d := k.View.Details.Copy()
	d.Help = t.help()
	s.rewrite(k, r, func() { k.View.Details = d })
	k.Extra.Question = t.QuestionID
	s.move(k, wire.TaskNeedsHuman)
	s.updateStanding(s.Agents.ByID[t.Agent])
	s.Questions.Numbered++
	q := &Question{StoredQuestion: StoredQuestion{
		Number: s.Questions.Numbered,
		View: wire.Question{
			ID: t.QuestionID, Agent: t.Agent, Task: t.ID, Question: t.Question, Options: t.Options, Context: t.Context, AskedAt: object.Timestamp(r.At),
		},
	}}
	s.Questions.ByID[t.QuestionID] = q
	s.Questions.Open = append(s.Questions.Open, q)
	s.saveTaskReply(r, t.Request, k)
}

// QuestionWithdrawn records that a question no longer needs an answer.
type QuestionWithdrawn struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
	Task  string `json:"task"`
	Asked bool   `json:"asked,omitzero"` // a request asked it, which is refused
}

func (*QuestionWithdrawn) kind() string { return events.QuestionWithdrawn }

func (q *QuestionWithdrawn) apply(s *State, _ *wire.Record) {
	closed := s.Questions.close(q.ID)
	if q.Asked {
		s.settle(q.Agent, closed.Request, nil, Withdrawn())
		return
	}
	if t := s.Tasks.ByID[q.Task]; t != nil && t.Extra != nil {
		s.Tasks.beforeChange(t)
		t.Extra.Question = ""
	}
}
