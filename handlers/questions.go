package handlers

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

var questionOperations = []Operation{
	bind("ask-user", (*decision).questions, askUser),
	bind("request-help", (*decision).questions, requestHelp),
	bind("list-questions", (*decision).questions, listQuestions),
	bind("answer-question", (*decision).questions, answerQuestion),
}

// maxQuestions is the maximum number of open questions of one agent. Each is kept until a
// person answers it.
const maxQuestions = 1000

// tooMany refuses a question of an agent that has too many open ones.
func (qd questionDecision) tooMany() *wire.Error {
	if len(qd.state.Questions.Open) < maxQuestions {
		return nil
	}
	open := 0
	for _, q := range qd.state.Questions.Open {
		if q.View.Agent == qd.from.Name {
			open++
		}
	}
	if open < maxQuestions {
		return nil
	}
	return state.Errorf(wire.CodeLimited, state.Details{"reason": "too_many_questions", "open": open},
		"%d of your questions wait for an answer: ask again after one is answered", open)
}

func askUser(qd questionDecision, r *wire.AskUser) (*wire.UserAnswer, *wire.Error) {
	timeout := cmp.Or(time.Duration(r.Timeout)*time.Millisecond, qd.state.Rules.RequestTimeout)
	return nil, qd.ask(&state.QuestionAsked{Question: r.Question, Options: r.Options}, timeout, time.Duration(r.Wait)*time.Millisecond)
}

// askedBefore returns the same question of an earlier run, so that no person is asked twice. It
// also returns the question of a repeated request.
func (qd questionDecision) askedBefore() *state.Question {
	for _, q := range qd.state.Questions.Open {
		if q.View.Agent == qd.from.Name && q.Request != nil && q.Request.Sum == qd.request.Sum &&
			(!q.Waited(qd.state) || q.Run == qd.from.Run && q.Request.ID == qd.request.ID) {
			return q
		}
	}
	return nil
}

func listQuestions(qd questionDecision, _ *wire.Nothing) (*wire.QuestionList, *wire.Error) {
	answer := &wire.QuestionList{}
	for _, q := range qd.state.Questions.Open {
		answer.Questions = append(answer.Questions, q.View)
	}
	return answer, nil
}

func answerQuestion(qd questionDecision, r *wire.AnswerQuestion) (*wire.QuestionReply, *wire.Error) {
	q := qd.state.Questions.ByID[r.QuestionID]
	if q == nil {
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"questionId": r.QuestionID}, "no question %q is waiting for an answer", r.QuestionID)
	}
	allowed := func(o wire.Option) bool { return o.Value == r.Answer }
	if len(q.View.Options) > 0 && !slices.ContainsFunc(q.View.Options, allowed) {
		var values []string
		for _, o := range q.View.Options {
			values = append(values, o.Value)
		}
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"questionId": q.View.ID, "options": values, "pointer": "/payload/answer"},
			"%q is not one of the answers to choose from", r.Answer)
	}
	told := q.Waited(qd.state) || q.Own
	if t := qd.state.Tasks.Find(q.View.Task); t != nil && !q.Aside { // it gets the answer with the next notice, or when it polls
		told = t.View.State == wire.TaskNeedsHuman
	}
	f := &state.QuestionAnswered{ID: q.View.ID, Agent: q.View.Agent, Answer: r.Answer, Message: r.Message, Told: told}
	a, letter := qd.state.Agents.ByID[q.View.Agent], q.ByMail(r.Answer, r.Message)
	if told || a == nil || a.Remote != nil {
		letter = nil
	}
	f.Late = letter != nil && !a.Alive() // it is sent when the agent starts
	qd.fact(state.AgentPrefix+q.View.Agent, q.View.Task, f)
	if told && q.Request != nil {
		answer := q.Answer(r.Answer, r.Message, qd.at)
		qd.out.Letters = append(qd.out.Letters, Letter{To: q.Asker(), Request: q.Request.ID, Payload: answer})
	}
	if letter != nil && !f.Late {
		qd.mail().sendAnswer(a, letter)
		told = true
	}
	if q.View.Task != "" && !q.Aside && !qd.reviews().judge(q.View.Task, q.View.ID, r.Answer) {
		qd.helped(q.View.Task, r.Answer)
	}
	return &wire.QuestionReply{Question: q.View, Answer: r.Answer, Told: told}, nil
}

func requestHelp(qd questionDecision, r *wire.RequestHelp) (*wire.TaskReply, *wire.Error) {
	if !r.Until.IsZero() {
		return qd.askAboutAgent(r)
	}
	t, err := qd.tasks().held(r.TaskID, "helped with")
	switch {
	case err != nil:
		return nil, err
	case t.View.State != wire.TaskRunning:
		return nil, wrongState(t, "helped with")
	}
	if err := qd.tooMany(); err != nil {
		return nil, err
	}
	qd.fact("", t.View.ID, &state.TaskHelp{
		ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, QuestionID: qd.state.Questions.QuestionID(),
		Question: r.Question, Context: r.Context, Request: qd.mark(), Options: r.Options,
	})
	qd.delegations().tellSource(t)
	qd.tellArchitectOf(t, t.View.AssignedTo+" asks a person: "+r.Question)
	if r.Recall != "" && t.Delegation() == nil {
		qd.tasks().recall(t, t.View.AssignedTo, t.Run, r.Recall)
	}
	return qd.tasks().replyWith(t), nil
}

// askAboutAgent puts a question of the orchestrator about an agent.
func (qd questionDecision) askAboutAgent(r *wire.RequestHelp) (*wire.TaskReply, *wire.Error) {
	if err := qd.tooMany(); err != nil {
		return nil, err
	}
	qd.fact("", "", &state.QuestionAsked{
		ID: qd.state.Questions.QuestionID(), Agent: qd.from.Name, Question: r.Question, Options: r.Options,
		Deadline: object.Timestamp(r.Until), Own: true,
	})
	return &wire.TaskReply{}, nil
}

// cancelQuestions withdraws the question about a task that continues without the answer, or
// ends.
func (qd questionDecision) cancelQuestions(t *state.Task) {
	if t.Extra != nil && t.Extra.Question != "" {
		asked := t.View.AssignedTo
		if w := t.Work(); w != nil && w.Question == t.Extra.Question {
			asked = w.Architect
		}
		qd.fact(state.AgentPrefix+asked, t.View.ID, &state.QuestionWithdrawn{ID: t.Extra.Question, Agent: asked, Task: t.View.ID})
	}
}

// inputAnswers answers the question about a task with the input of its source. A server reads the
// answer in its task.
func (qd questionDecision) inputAnswers(t *state.Task, input wire.Raw) {
	answer, isText := object.Text(input)
	if !isText {
		answer = string(input)
	}
	q := qd.state.Questions.ByID[t.Extra.Question]
	qd.fact(state.AgentPrefix+q.View.Agent, t.View.ID, &state.QuestionAnswered{ID: q.View.ID, Agent: q.View.Agent, Answer: answer, Told: true})
}

// tellArchitectOf notifies the architect of a task in a session that its agent has asked a person or has its
// answer.
func (qd questionDecision) tellArchitectOf(t *state.Task, message string) {
	if w := t.Work(); w != nil {
		qd.works().tellArchitect(w, message)
	}
}

// helped gives an agent its answer, and continues its task.
func (qd questionDecision) helped(id, answer string) {
	t := qd.state.Tasks.ByID[id]
	if t == nil || t.View.State != wire.TaskNeedsHuman {
		return
	}
	qd.tasks().start(t, nil)
	qd.delegations().tellSource(t)
	qd.tellArchitectOf(t, "A person has answered: "+answer)
	if a := qd.state.Agents.ByID[t.View.AssignedTo]; t.Delegation() != nil && a != nil && a.Remote == nil {
		qd.delegations().act(t, &state.TaskActed{Act: delegation.ActUpdate, Input: object.Quote(answer)})
		return
	}
	qd.tasks().tell(qd.state.Agents.ByID[t.View.AssignedTo], t, wire.NoticeUpdated, "Answer: "+answer)
}
