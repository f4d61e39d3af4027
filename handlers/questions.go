package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
)

// question is one that somebody asked and nobody has answered.
type question struct {
	view     wire.Question
	run      string // that waits for the answer
	request  *mark  // nil when nobody waits
	deadline time.Time
}

func askUser(t *turn, r *wire.AskUser) (*wire.UserAnswer, *wire.Error) {
	if q := t.askedBefore(); q != nil {
		t.fact("", "", &questionRejoined{ID: q.view.ID, Agent: t.from.Name, Request: t.mark()})
		return nil, nil
	}
	timeout := time.Duration(r.Timeout) * time.Millisecond
	if timeout == 0 {
		timeout = t.rules.RequestTimeout
	}
	t.fact("", "", &questionAsked{
		ID: t.questionID(), Agent: t.from.Name, Question: r.Question, Options: r.Options,
		Deadline: wire.Timestamp(t.at.Add(timeout)), Request: t.mark(),
	})
	return nil, nil
}

// askedBefore finds the same question of an earlier run of the agent, which
// died waiting: nobody should be asked twice.
func (t *turn) askedBefore() *question {
	for _, q := range t.asked {
		if q.view.Agent == t.from.Name && q.request != nil && q.request.Sum == t.request.Sum && q.run != t.from.Run {
			return q
		}
	}
	return nil
}

func (t *turn) questionID() string { return fmt.Sprintf("q%d", t.numbered+1) }

// questionAsked says that somebody has a question.
type questionAsked struct {
	ID       string        `json:"question_id"`
	Agent    string        `json:"agent"`
	Question string        `json:"question"`
	Options  []wire.Option `json:"options,omitzero"`
	Context  wire.Raw      `json:"context,omitzero"`
	Deadline string        `json:"deadline,omitzero"`
	Request  *mark         `json:"request,omitzero"` // nil: the agent does not wait
}

func (*questionAsked) kind() string { return wire.EventQuestionAsked }

func (f *questionAsked) apply(s *State, r *wire.Record) {
	q := &question{
		view: wire.Question{
			ID: f.ID, Agent: f.Agent, Question: f.Question, Options: f.Options, Context: f.Context,
			Blocking: f.Request != nil, AskedAt: wire.Timestamp(r.At), Deadline: f.Deadline,
		},
		request: f.Request,
	}
	q.deadline, _ = wire.ParseTime(f.Deadline)
	if f.Request != nil {
		q.run = f.Request.Run
	}
	s.numbered++
	s.questions[f.ID] = q
	s.asked = append(s.asked, q)
	s.remember(f.Agent, f.Request, nil, nil)
}

// questionRejoined says that another run of the agent waits for the answer.
type questionRejoined struct {
	ID      string `json:"question_id"`
	Agent   string `json:"agent"`
	Request *mark  `json:"request"`
}

func (*questionRejoined) kind() string { return wire.EventQuestionRejoined }

func (f *questionRejoined) apply(s *State, _ *wire.Record) {
	q := s.questions[f.ID]
	q.request, q.run = f.Request, f.Request.Run
	s.remember(f.Agent, f.Request, nil, nil)
}

func listQuestions(t *turn, _ *wire.Nothing) (*wire.QuestionList, *wire.Error) {
	answer := &wire.QuestionList{}
	for _, q := range t.asked {
		answer.Questions = append(answer.Questions, q.view)
	}
	return answer, nil
}

func answerQuestion(t *turn, r *wire.AnswerQuestion) (*wire.QuestionReply, *wire.Error) {
	q := t.questions[r.QuestionID]
	if q == nil {
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("no question %q is waiting for an answer", r.QuestionID),
			Details: map[string]any{"questionId": r.QuestionID},
		}
	}
	allowed := func(o wire.Option) bool { return o.Value == r.Answer }
	if len(q.view.Options) > 0 && !slices.ContainsFunc(q.view.Options, allowed) {
		var values []string
		for _, o := range q.view.Options {
			values = append(values, o.Value)
		}
		return nil, &wire.Error{
			Code: wire.CodeInvalid, Message: fmt.Sprintf("%q is none of the answers to choose from", r.Answer),
			Details: map[string]any{"questionId": q.view.ID, "options": values, "pointer": "/payload/answer"},
		}
	}
	told := q.waited(t.State)
	t.fact(agentPrefix+q.view.Agent, "", &questionAnswered{ID: q.view.ID, Agent: q.view.Agent, Answer: r.Answer, Told: told})
	if told {
		answer := &wire.UserAnswer{Answer: r.Answer, Metadata: wire.AnswerMetadata{AnsweredAt: wire.Timestamp(t.at)}}
		t.out.Letters = append(t.out.Letters, Letter{To: q.asker(), Request: q.request.ID, Payload: answer})
	}
	return &wire.QuestionReply{Question: q.view, Answer: r.Answer, Told: told}, nil
}

// waited says whether the process that asked still waits.
func (q *question) waited(s *State) bool {
	a := s.agents[q.view.Agent]
	return q.request != nil && a != nil && a.run == q.run && a.state != offline && a.state != crashed
}

func (q *question) asker() Actor { return Actor{Kind: Agent, Name: q.view.Agent, Run: q.run} }

// close takes a question from those that wait.
func (s *State) close(id string) *question {
	q := s.questions[id]
	delete(s.questions, id)
	s.asked = slices.DeleteFunc(s.asked, func(o *question) bool { return o == q })
	return q
}

// questionAnswered says what a person answered.
type questionAnswered struct {
	ID     string `json:"question_id"`
	Agent  string `json:"agent"`
	Answer string `json:"answer"`
	Told   bool   `json:"told"` // the agent still waited
}

func (*questionAnswered) kind() string { return wire.EventQuestionAnswered }

func (f *questionAnswered) apply(s *State, r *wire.Record) {
	q := s.close(f.ID)
	answer := &wire.UserAnswer{Answer: f.Answer, Metadata: wire.AnswerMetadata{AnsweredAt: wire.Timestamp(r.At)}}
	s.remember(f.Agent, q.request, answer, nil)
}

// questionExpired says that nobody answered in time.
type questionExpired struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
}

func (*questionExpired) kind() string { return wire.EventQuestionExpired }

func (f *questionExpired) apply(s *State, _ *wire.Record) {
	q := s.close(f.ID)
	s.remember(f.Agent, q.request, nil, expired())
}

func expired() *wire.Error {
	return &wire.Error{Code: wire.CodeTimeout, Message: "nobody answered in time"}
}

// expire ends the questions whose time has passed.
func (t *turn) expire() {
	for _, q := range slices.Clone(t.asked) {
		if q.deadline.IsZero() || q.deadline.After(t.at) {
			continue
		}
		waited := q.waited(t.State)
		t.fact(agentPrefix+q.view.Agent, "", &questionExpired{ID: q.view.ID, Agent: q.view.Agent})
		if waited {
			t.out.Letters = append(t.out.Letters, Letter{To: q.asker(), Request: q.request.ID, Refusal: expired()})
		}
	}
}
