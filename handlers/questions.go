package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

var questionOperations = []Operation{
	bind("ask-user", (*decision).questions, askUser),
	bind("request-help", (*decision).questions, requestHelp),
	bind("list-questions", (*decision).questions, listQuestions),
	bind("answer-question", (*decision).questions, answerQuestion),
}

// A question is an open question of an agent to people.
type question struct {
	view     wire.Question
	number   int64
	run      string      // that waits for the answer
	door     bool        // an HTTP request waits for the answer, not a process
	request  *requestKey // nil when no caller waits
	deadline time.Time
	until    time.Time // its caller waits so long; then the answer goes by mail
	mailed   bool      // the answer goes by mail
	aside    bool      // its task goes on meanwhile
}

// maxQuestions is the maximum number of open questions of one agent. Each is kept until a
// person answers it.
const maxQuestions = 1000

// tooMany refuses a question of an agent that has too many open ones.
func (qd questionDecision) tooMany() *wire.Error {
	if len(qd.state.questions.open) < maxQuestions {
		return nil
	}
	open := 0
	for _, q := range qd.state.questions.open {
		if q.view.Agent == qd.from.Name {
			open++
		}
	}
	if open < maxQuestions {
		return nil
	}
	return errorf(wire.CodeLimited, details{"reason": "too_many_questions", "open": open},
		"%d of your questions wait for an answer: ask again when some have one", open)
}

func askUser(qd questionDecision, r *wire.AskUser) (*wire.UserAnswer, *wire.Error) {
	timeout := cmp.Or(time.Duration(r.Timeout)*time.Millisecond, qd.state.rules.RequestTimeout)
	return nil, qd.ask(&questionAsked{Question: r.Question, Options: r.Options}, timeout, time.Duration(r.Wait)*time.Millisecond)
}

// askedBefore returns the same question whose caller no longer waits because its run has ended,
// so that no person is asked twice. It also returns the question of a repeated request.
func (qd questionDecision) askedBefore() *question {
	for _, q := range qd.state.questions.open {
		if q.view.Agent == qd.from.Name && q.request != nil && q.request.Sum == qd.request.Sum &&
			(!q.waited(qd.state) || q.run == qd.from.Run && q.request.ID == qd.request.ID) {
			return q
		}
	}
	return nil
}

func (qs *questions) questionID() string { return fmt.Sprintf("q%d", qs.numbered+1) }

// questionAsked records a new question.
type questionAsked struct {
	ID       string        `json:"question_id"`
	Agent    string        `json:"agent"`
	Question string        `json:"question"`
	Options  []wire.Option `json:"options,omitzero"`
	Context  wire.Raw      `json:"context,omitzero"`
	Deadline string        `json:"deadline,omitzero"`
	Request  *requestKey   `json:"request,omitzero"` // nil: the agent does not wait
	Until    string        `json:"until,omitzero"`   // the agent waits so long; then the answer goes by mail

	Task       string               `json:"for_task,omitzero"` // that the agent works on
	Permission *activity.Permission `json:"permission,omitzero"`
}

func (*questionAsked) kind() string { return events.QuestionAsked }

func (qa *questionAsked) apply(s *core, r *wire.Record) {
	s.questions.numbered++
	q := &question{
		number: s.questions.numbered, aside: true,
		view: wire.Question{
			ID: qa.ID, Agent: qa.Agent, Question: qa.Question, Options: qa.Options, Context: qa.Context,
			Blocking: qa.Request != nil, AskedAt: object.Timestamp(r.At), Task: qa.Task, Permission: qa.Permission,
		},
	}
	s.questions.byID[qa.ID] = q
	s.questions.open = append(s.questions.open, q)
	q.until, _ = object.ParseTime(qa.Until)
	s.await(q, qa.Request, qa.Deadline)
}

// questionKept records that the caller does not wait for the answer any more. It gets the answer
// as mail.
type questionKept struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
}

func (*questionKept) kind() string { return events.QuestionKept }

func (qk *questionKept) apply(s *core, _ *wire.Record) {
	q := s.questions.byID[qk.ID]
	s.questions.deadlines.Drop(q)
	s.settle(qk.Agent, q.request, q.asked(), nil)
	q.request, q.door, q.until, q.mailed = nil, false, time.Time{}, true
	q.view.Blocking = false
	s.questions.keepDeadline(q)
}

// asked is what a caller gets that does not wait for the answer any more.
func (q *question) asked() *wire.UserAnswer { return &wire.UserAnswer{QuestionID: q.view.ID} }

// answeredByMail is the payload of the message with an answer.
type answeredByMail struct {
	Text       string `json:"text"`
	QuestionID string `json:"questionId"`
	Question   string `json:"question"`
	Answer     string `json:"answer"`
	Choice     string `json:"choice,omitzero"`  // about a permission
	Message    string `json:"message,omitzero"` // about a permission: what the person adds
}

// byMail returns the message with the answer to a question whose caller does not wait, or nil if
// there is none to be sent. A caller of an earlier run gets it like one that waited only for a
// time, unless it asked for a permission: the next run asks again before it uses the tool.
func (q *question) byMail(answer, message string) *answeredByMail {
	if !q.mailed && (q.request == nil || q.door || q.view.Permission != nil) {
		return nil
	}
	letter := &answeredByMail{
		Text:       fmt.Sprintf("You asked: %s\nA person answered: %s", q.view.Question, answer),
		QuestionID: q.view.ID, Question: q.view.Question, Answer: answer,
	}
	if q.view.Permission != nil {
		letter.Choice, letter.Message = answer, message
		if message != "" {
			letter.Text += "\n" + message
		}
	}
	return letter
}

// questionRejoined records that another run of the agent waits for the answer.
type questionRejoined struct {
	ID       string      `json:"question_id"`
	Agent    string      `json:"agent"`
	Deadline string      `json:"deadline"`
	Until    string      `json:"until,omitzero"`
	Request  *requestKey `json:"request"`
}

func (*questionRejoined) kind() string { return events.QuestionRejoined }

func (qr *questionRejoined) apply(s *core, _ *wire.Record) {
	q := s.questions.byID[qr.ID]
	s.questions.deadlines.Drop(q)
	q.until, _ = object.ParseTime(qr.Until)
	s.await(q, qr.Request, qr.Deadline)
}

// await sets the request that waits for the answer to a question, and its deadline.
func (s *core) await(q *question, mk *requestKey, deadline string) {
	q.request, q.view.Deadline = mk, deadline
	q.deadline, _ = object.ParseTime(deadline)
	s.questions.keepDeadline(q)
	if mk == nil {
		return
	}
	a := s.agents.byID[q.view.Agent]
	q.run, q.door = mk.Run, a == nil || mk.Run == "" || a.run != mk.Run
	s.saveReply(q.view.Agent, mk, nil, nil)
}

func listQuestions(qd questionDecision, _ *wire.Nothing) (*wire.QuestionList, *wire.Error) {
	answer := &wire.QuestionList{}
	for _, q := range qd.state.questions.open {
		answer.Questions = append(answer.Questions, q.view)
	}
	return answer, nil
}

func answerQuestion(qd questionDecision, r *wire.AnswerQuestion) (*wire.QuestionReply, *wire.Error) {
	q := qd.state.questions.byID[r.QuestionID]
	if q == nil {
		return nil, errorf(wire.CodeNotFound, details{"questionId": r.QuestionID}, "no question %q is waiting for an answer", r.QuestionID)
	}
	allowed := func(o wire.Option) bool { return o.Value == r.Answer }
	if len(q.view.Options) > 0 && !slices.ContainsFunc(q.view.Options, allowed) {
		var values []string
		for _, o := range q.view.Options {
			values = append(values, o.Value)
		}
		return nil, errorf(wire.CodeInvalid, details{"questionId": q.view.ID, "options": values, "pointer": "/payload/answer"},
			"%q is none of the answers to choose from", r.Answer)
	}
	told := q.waited(qd.state)
	if k := qd.state.tasks.find(q.view.Task); k != nil && !q.aside { // it gets the answer with the next notice, or when it polls
		told = k.view.State == wire.TaskNeedsHuman
	}
	f := &questionAnswered{ID: q.view.ID, Agent: q.view.Agent, Answer: r.Answer, Message: r.Message, Told: told}
	a, letter := qd.state.agents.byID[q.view.Agent], q.byMail(r.Answer, r.Message)
	if told || a == nil || a.remote != nil {
		letter = nil
	}
	f.Late = letter != nil && !a.alive() // it is sent when the agent starts
	qd.fact(agentPrefix+q.view.Agent, q.view.Task, f)
	if told && q.request != nil {
		answer := q.answer(r.Answer, r.Message, qd.at)
		qd.out.Letters = append(qd.out.Letters, Letter{To: q.asker(), Request: q.request.ID, Payload: answer})
	}
	if letter != nil && !f.Late {
		qd.mail().sendAnswer(a, letter)
		told = true
	}
	if q.view.Task != "" && !q.aside && !qd.reviews().judge(q.view.Task, q.view.ID, r.Answer) {
		qd.helped(q.view.Task, r.Answer)
	}
	return &wire.QuestionReply{Question: q.view, Answer: r.Answer, Told: told}, nil
}

// waited reports whether the caller still waits: an agent as long as its run lasts, and an HTTP
// request as long as the orchestrator runs.
func (q *question) waited(s *core) bool {
	if q.request == nil || q.door || q.run == "" { // without a run it was asked over HTTP
		return q.door
	}
	a := s.agents.byID[q.view.Agent]
	return a != nil && a.run == q.run && a.state != offline && a.state != crashed
}

func (q *question) asker() Actor { return Actor{Kind: Agent, Name: q.view.Agent, Run: q.run} }

// close removes an open question and returns it.
func (qs *questions) close(id string) *question {
	q := qs.byID[id]
	delete(qs.byID, id)
	qs.deadlines.Drop(q)
	at, _ := slices.BinarySearchFunc(qs.open, q.number, func(o *question, number int64) int { return cmp.Compare(o.number, number) })
	qs.open = slices.Delete(qs.open, at, at+1)
	return q
}

// questionAnswered records the answer of a person.
type questionAnswered struct {
	ID     string `json:"question_id"`
	Agent  string `json:"agent"`
	Answer string `json:"answer"`
	Told   bool   `json:"told"` // the agent still waited

	Message string `json:"message,omitzero"`
	Late    bool   `json:"late,omitzero"` // the next run of the agent gets it as mail
}

func (*questionAnswered) kind() string { return events.QuestionAnswered }

func (qa *questionAnswered) apply(s *core, r *wire.Record) {
	q := s.questions.close(qa.ID)
	answer := q.answer(qa.Answer, qa.Message, r.At)
	if a := s.agents.byID[qa.Agent]; a != nil && qa.Late {
		a.late = append(a.late, q.byMail(qa.Answer, qa.Message))
	}
	if a := s.agents.byID[qa.Agent]; a != nil && q.view.Permission != nil {
		session := a.session()
		if q.run != "" && q.run != a.run { // the session in which it was asked has ended
			session = ""
		}
		a.grants.Remember(q.view.Permission, qa.Answer, session)
	}
	s.settle(qa.Agent, q.request, answer, nil)
	s.tasks.help(q, qa.Answer, r)
}

// answer returns the answer of a person as its caller gets it.
func (q *question) answer(answer, message string, at time.Time) *wire.UserAnswer {
	a := &wire.UserAnswer{Answer: answer, Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(at)}}
	if q.view.Permission != nil {
		a.Choice, a.Message = answer, message
	}
	return a
}

// awaits reports whether the task of a question waits for its answer.
func (t *tasks) awaits(q *question) bool {
	k := t.byID[q.view.Task]
	return k != nil && k.more != nil && !q.aside
}

// help adds the answer of a person to the task of the question.
func (t *tasks) help(q *question, answer string, r *wire.Record) {
	if !t.awaits(q) {
		return
	}
	k := t.byID[q.view.Task]
	t.beforeChange(k)
	k.more.question = ""
	if r.Correlation == k.view.ID { // records of an earlier version have no task
		k.more.parts = append(k.more.parts, r.Seq)
	}
	k.view.Details = answered(k.view.Details, answer, r)
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

// questionExpired records that there was no answer in time.
type questionExpired struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
}

func (*questionExpired) kind() string { return events.QuestionExpired }

func (qe *questionExpired) apply(s *core, _ *wire.Record) {
	q := s.questions.close(qe.ID)
	s.settle(qe.Agent, q.request, nil, expired())
}

// taskHelp records that an agent needs a person for its task.
type taskHelp struct {
	ID         string      `json:"task"`
	Name       string      `json:"name"`
	Agent      string      `json:"agent"`
	QuestionID string      `json:"question_id"`
	Question   string      `json:"question"`
	Context    wire.Raw    `json:"context,omitzero"`
	Actor      string      `json:"actor,omitzero"` // its agent on the bus
	Request    *requestKey `json:"request,omitzero"`

	Options []wire.Option `json:"options,omitzero"`
}

func (*taskHelp) kind() string { return events.TaskHelpWanted }

func (t *taskHelp) help() *wire.Help {
	return &wire.Help{QuestionID: t.QuestionID, Question: t.Question, Context: t.Context}
}

func (t *taskHelp) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	d := k.view.Details.Copy()
	d.Help = t.help()
	s.rewrite(k, r, func() { k.view.Details = d })
	k.more.question = t.QuestionID
	s.move(k, wire.TaskNeedsHuman)
	s.updateStanding(s.agents.byID[t.Agent])
	s.questions.numbered++
	q := &question{
		number: s.questions.numbered,
		view: wire.Question{
			ID: t.QuestionID, Agent: t.Agent, Task: t.ID, Question: t.Question, Options: t.Options, Context: t.Context, AskedAt: object.Timestamp(r.At),
		},
	}
	s.questions.byID[t.QuestionID] = q
	s.questions.open = append(s.questions.open, q)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

func requestHelp(qd questionDecision, r *wire.RequestHelp) (*wire.TaskReply, *wire.Error) {
	k, err := qd.tasks().held(r.TaskID, "helped with")
	switch {
	case err != nil:
		return nil, err
	case k.view.State != wire.TaskRunning:
		return nil, wrongState(k, "helped with")
	}
	if err := qd.tooMany(); err != nil {
		return nil, err
	}
	qd.fact("", k.view.ID, &taskHelp{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, QuestionID: qd.state.questions.questionID(),
		Question: r.Question, Context: r.Context, Request: qd.mark(), Options: r.Options,
	})
	qd.delegations().tellSource(k)
	qd.tellArchitectOf(k, k.view.AssignedTo+" asks a person: "+r.Question)
	if r.Recall != "" && k.delegation() == nil {
		qd.tasks().recall(k, k.view.AssignedTo, k.run, r.Recall)
	}
	return qd.tasks().replyWith(k), nil
}

// questionWithdrawn records that a question needs no answer any more.
type questionWithdrawn struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
	Task  string `json:"task"`
	Asked bool   `json:"asked,omitzero"` // a request asked it, which is refused
}

func (*questionWithdrawn) kind() string { return events.QuestionWithdrawn }

func (q *questionWithdrawn) apply(s *core, _ *wire.Record) {
	closed := s.questions.close(q.ID)
	if q.Asked {
		s.settle(q.Agent, closed.request, nil, withdrawn())
		return
	}
	if k := s.tasks.byID[q.Task]; k != nil && k.more != nil {
		s.tasks.beforeChange(k)
		k.more.question = ""
	}
}

// cancelQuestions withdraws the question about a task that continues without the answer, or
// ends.
func (qd questionDecision) cancelQuestions(k *task) {
	if k.more != nil && k.more.question != "" {
		asked := k.view.AssignedTo
		if w := k.work(); w != nil && w.question == k.more.question {
			asked = w.architect
		}
		qd.fact(agentPrefix+asked, k.view.ID, &questionWithdrawn{ID: k.more.question, Agent: asked, Task: k.view.ID})
	}
}

// inputAnswers answers the question about a task with the input of its source. A server reads the
// answer in its task.
func (qd questionDecision) inputAnswers(k *task, input wire.Raw) {
	answer, isText := object.Text(input)
	if !isText {
		answer = string(input)
	}
	q := qd.state.questions.byID[k.more.question]
	qd.fact(agentPrefix+q.view.Agent, k.view.ID, &questionAnswered{ID: q.view.ID, Agent: q.view.Agent, Answer: answer, Told: true})
}

// tellArchitectOf notifies the architect of a task in a session that its agent has asked a person or has its
// answer.
func (qd questionDecision) tellArchitectOf(k *task, message string) {
	if w := k.work(); w != nil {
		qd.works().tellArchitect(w, message)
	}
}

// helped continues a task whose agent has its answer.
func (qd questionDecision) helped(id, answer string) {
	k := qd.state.tasks.byID[id]
	if k == nil || k.view.State != wire.TaskNeedsHuman {
		return
	}
	qd.tasks().start(k, nil)
	qd.delegations().tellSource(k)
	qd.tellArchitectOf(k, "A person has answered: "+answer)
	if a := qd.state.agents.byID[k.view.AssignedTo]; k.delegation() != nil && a != nil && a.remote == nil {
		qd.delegations().act(k, &taskActed{Act: delegation.ActUpdate, Input: object.Quote(answer)})
		return
	}
	qd.tasks().tell(qd.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, "Answer: "+answer)
}
