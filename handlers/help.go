package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

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

func (t *taskHelp) apply(s *State, r *wire.Record) {
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
		Question: r.Question, Context: r.Context, Request: qd.mark(),
	})
	return qd.state.tasks.reply(k), nil
}

// questionWithdrawn records that a question needs no answer any more.
type questionWithdrawn struct {
	ID    string `json:"question_id"`
	Agent string `json:"agent"`
	Task  string `json:"task"`
	Asked bool   `json:"asked,omitzero"` // by its agent, which waits for the answer no more
}

func (*questionWithdrawn) kind() string { return events.QuestionWithdrawn }

func (q *questionWithdrawn) apply(s *State, _ *wire.Record) {
	closed := s.questions.close(q.ID)
	if q.Asked {
		s.settle(q.Agent, closed.request, nil, withdrawn())
		return
	}
	if k := s.tasks.byID[q.Task]; k != nil && k.more != nil {
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

// helped continues a task whose agent has its answer.
func (qd questionDecision) helped(id, answer string) {
	k := qd.state.tasks.byID[id]
	if k == nil || k.view.State != wire.TaskNeedsHuman {
		return
	}
	qd.tasks().start(k, nil)
	if a := qd.state.agents.byID[k.view.AssignedTo]; k.delegation() != nil && a != nil && a.remote == nil {
		qd.delegations().act(k, &taskActed{Act: delegation.ActUpdate, Input: object.Quote(answer)})
		return
	}
	qd.tasks().tell(qd.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, "Answer: "+answer)
}
