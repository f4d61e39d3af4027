package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

var reportOperations = []Operation{
	bind("current-task", (*decision).tasks, currentTask),
	bind("report-progress", (*decision).tasks, reportProgress),
	bind("return-task", (*decision).tasks, returnTask),
	bind("ask-permission", (*decision).questions, askPermission),
	bind("withdraw-question", (*decision).questions, withdrawQuestion),
}

// report handles an event of an agent. An event has no answer; the returned error is for the
// audit.
func (td taskDecision) report(r *wire.AgentEvent) *wire.Error {
	switch body := r.Body.(type) {
	case *activity.Progress:
		return td.progress(body)
	case *activity.Trouble:
		return td.trouble(body)
	case *delegation.Response:
		return td.delegations().respond(body)
	case *activity.OpenQuestion:
		if err := td.questions().tooMany(); err != nil {
			return err
		}
		td.fact("", "", &questionAsked{ID: td.state.questions.questionID(), Agent: td.from.Name, Question: body.Question, Context: body.Context})
		return nil
	}
	if td.agents().activity(r.Body) {
		return nil
	}
	return &wire.Error{Code: wire.CodeUnknownType, Message: "there is no event:" + r.Name}
}

func (td taskDecision) progress(p *activity.Progress) *wire.Error {
	k, err := td.reportableTask(p.TaskID, "worked on")
	if err != nil {
		return err
	}
	td.begin(k)
	td.fact("", k.view.ID, &taskProgress{ID: k.view.ID, Name: k.view.Name, Agent: td.from.Name, Progress: p.Progress, Message: p.Message, Output: p.Output})
	return nil
}

// trouble records an error, and fails the task if the agent cannot continue.
func (td taskDecision) trouble(e *activity.Trouble) *wire.Error {
	if e.TaskID == "" || e.Recoverable && td.state.tasks.find(e.TaskID) == nil {
		td.fact("", "", &taskTrouble{Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
		return nil
	}
	k, err := td.reportableTask(e.TaskID, "failed")
	if err != nil {
		return err
	}
	if w := k.work(); w != nil && w.active() && !e.Recoverable {
		td.works().breakWork(w, e.Error)
		return nil
	}
	td.begin(k)
	if !e.Recoverable {
		td.fail(k, failure{why: e.Error, stack: e.Stack})
		return nil
	}
	td.fact("", k.view.ID, &taskTrouble{ID: k.view.ID, Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
	return nil
}

// A conversation is the conversation of the program of an agent, as it reported it last.
type conversation struct{ activity.Conversation }

// Activity returns what a coding agent has reported about itself, or nil for another agent.
func (s *core) Activity(name string) *control.Activity {
	a := s.agents.byID[name]
	if a == nil || a.conversation == nil && a.limited.IsZero() && a.usage == (activity.Used{}) {
		return nil
	}
	v := &control.Activity{Input: a.usage.Input, Output: a.usage.Output, Cost: a.usage.Cost, Currency: a.usage.Currency}
	if c := a.conversation; c != nil {
		v.Conversation, v.Kind, v.Dir, v.Program, v.Model = c.ID, c.Kind, c.Dir, c.Version, c.Model
	}
	if !a.limited.IsZero() {
		v.LimitedUntil, v.LimitedBy = object.Timestamp(a.limited), a.limitedBy
	}
	for _, q := range s.questions.open {
		if q.view.Agent == name && q.view.Blocking {
			v.Question = q.view.ID
			break
		}
	}
	return v
}

// agentConversation records the conversation of the program of an agent.
type agentConversation struct {
	Agent string `json:"agent"`
	activity.Conversation
}

func (*agentConversation) kind() string { return events.AgentConversation }

func (ac *agentConversation) apply(s *core, _ *wire.Record) {
	s.agents.byID[ac.Agent].conversation = &conversation{ac.Conversation}
}

func (ac *agentConversation) check(s *core) error { return s.agents.checkAgent(ac.Agent) }

func (ac *agentConversation) tell(e *wire.Event) {
	e.Agent, e.Text = ac.Agent, "its conversation is "+ac.ID
}

// agentUsage records what a turn of an agent has used.
type agentUsage struct {
	Agent string `json:"agent"`
	activity.Usage
}

func (*agentUsage) kind() string { return events.AgentUsage }

func (u *agentUsage) apply(s *core, _ *wire.Record) {
	s.agents.byID[u.Agent].usage.Add(u.Sum())
	if k := s.tasks.byID[u.TaskID]; k != nil {
		s.tasks.beforeChange(k)
		k.needsMore().used.Add(u.Sum())
	}
}

func (u *agentUsage) check(s *core) error { return s.agents.checkAgent(u.Agent) }

func (u *agentUsage) tell(e *wire.Event) {
	e.Agent, e.Task = u.Agent, u.TaskID
	e.Text = fmt.Sprintf("used %d tokens in, %d out", u.Input, u.Output)
	if u.Cost > 0 {
		e.Text += fmt.Sprintf(", %.4f %s", u.Cost, u.Currency)
	}
}

// Used returns what the agents have used in all, or nil if they have reported nothing.
func (s *core) Used() *activity.Used {
	var all activity.Used
	for _, a := range s.agents.order {
		all.Add(a.usage)
	}
	if all == (activity.Used{}) {
		return nil
	}
	return &all
}

// agentLimited records that an agent gets no task for some time, or gets tasks again.
type agentLimited struct {
	Agent string `json:"agent"`
	Until string `json:"until,omitzero"` // "": it is over
	Scope string `json:"scope,omitzero"`
}

func (*agentLimited) kind() string { return events.AgentLimited }

func (al *agentLimited) apply(s *core, _ *wire.Record) {
	a := s.agents.byID[al.Agent]
	s.tasks.queue.removeIdle(a)
	came := a.takes()
	s.agents.limited.Drop(parked{a})
	a.limited, _ = object.ParseTime(al.Until)
	a.limitedBy = al.Scope
	if !a.limited.IsZero() {
		s.agents.limited.Add(parked{a})
	}
	s.addIdle(a)
	s.updateStanding(a)
	if !came && a.takes() {
		s.tasks.required.gain(a)
	}
}

func (al *agentLimited) check(s *core) error { return s.agents.checkAgent(al.Agent) }

func (al *agentLimited) tell(e *wire.Event) {
	e.Agent, e.Text = al.Agent, "is not limited any more"
	if al.Until != "" {
		e.Text = "is limited until " + al.Until
		if al.Scope != "" {
			e.Text += ": " + al.Scope
		}
	}
}

// activity handles an event about the work of a coding agent. It reports false for any other
// event.
func (ad agentDecision) activity(body any) bool {
	a := ad.state.agents.byID[ad.from.Name]
	switch body := body.(type) {
	case *activity.Usage:
		used := *body
		if k := ad.state.tasks.find(used.TaskID); k != nil && !k.heldBy(ad.from) { // it counts for the agent only
			used.TaskID = ""
		}
		ad.fact("", used.TaskID, &agentUsage{Agent: a.ID, Usage: used})
	case *activity.Conversation:
		if a.conversation == nil || a.conversation.Conversation != *body {
			ad.fact("", "", &agentConversation{Agent: a.ID, Conversation: *body})
		}
	case *activity.Limited:
		ad.limit(a, body)
	case *activity.Receipt:
		if a.mail != nil {
			ad.fact("", "", &mailReceipt{Agent: a.ID, Actor: a.mail.ID, Seq: body.Seq, State: body.State})
		}
	default:
		return false
	}
	return true
}

// limit records until when an agent is limited. A time in the past ends its limit.
func (ad agentDecision) limit(a *agent, l *activity.Limited) {
	until := l.Until
	switch at, _ := object.ParseTime(until); {
	case !at.After(ad.at):
		if !a.limited.IsZero() {
			ad.unpark(a)
		}
		return
	case at.Sub(ad.at) > activity.MaxLimit:
		until = object.Timestamp(ad.at.Add(activity.MaxLimit))
	}
	ad.fact("", "", &agentLimited{Agent: a.ID, Until: until, Scope: l.Scope})
}

// lift ends the limit of an agent that was stopped or restarted by hand, or that has given up and
// starts only by hand again.
func (ad agentDecision) lift(a *agent) {
	if !a.limited.IsZero() && !ad.state.stopping {
		ad.unpark(a)
	}
}

// unlimit ends the limits whose time has passed.
func (ad agentDecision) unlimit() {
	for limited := &ad.state.agents.limited; len(*limited) > 0; {
		a := (*limited)[0].agent
		if a.limited.After(ad.at) {
			return
		}
		ad.unpark(a)
	}
}

// unpark ends the limit of an agent, and gives it the tasks that waited for that.
func (ad agentDecision) unpark(a *agent) {
	ad.fact(a.actor, "", &agentLimited{Agent: a.ID})
	ad.tasks().recheckAddressed(a)
}

// A parked agent is one that gets no task until a time.
type parked struct{ *agent }

func (p parked) Date() (time.Time, int64) { return p.limited, p.number }

// mailReceipt records what became of a message after it was written to an agent. It counts only
// for mail of the actor that the agent had.
type mailReceipt struct {
	Agent string `json:"agent"`
	Actor string `json:"actor,omitzero"` // "" in old records
	Seq   int64  `json:"seq"`
	State string `json:"state"`
}

func (*mailReceipt) kind() string { return events.MessageReceipt }

// Receipt implements history.Receipt.
func (mr *mailReceipt) Receipt(of *mail.Message) *mail.State {
	if mr.Seq != of.Seq || mr.Actor != "" && mr.Actor != of.To && of.To != mail.Broadcast {
		return nil
	}
	return &mail.State{State: mr.State, Agent: mr.Agent}
}

func (*mailReceipt) apply(*core, *wire.Record) {}

func (mr *mailReceipt) tell(e *wire.Event) {
	e.Agent, e.Text = mr.Agent, fmt.Sprintf("message %d is in the context of its model", mr.Seq)
	if mr.State == activity.Refused {
		e.Text = fmt.Sprintf("message %d was refused by its program", mr.Seq)
	}
}

// currentTask returns the task that the caller works on: the first one that has started, or the
// first one that was assigned.
func currentTask(td taskDecision, _ *wire.Nothing) (*wire.TaskReply, *wire.Error) {
	a := td.state.agents.byID[td.from.Name]
	var found *task
	for _, k := range a.holds {
		if k.busy() {
			found = k
			break
		}
		if found == nil {
			found = k
		}
	}
	if found == nil {
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "you have no task"}
	}
	return getTask(td, &wire.TaskID{TaskID: found.view.ID})
}

func reportProgress(td taskDecision, r *wire.ReportProgress) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "worked on")
	if err != nil {
		return nil, err
	}
	td.begin(k)
	progress := k.view.Progress
	if r.Progress != nil {
		progress = *r.Progress
	}
	td.fact("", k.view.ID, &taskProgress{
		ID: k.view.ID, Name: k.view.Name, Agent: td.from.Name, Progress: progress, Message: r.Message, Kind: r.Kind, Output: r.Output, Request: td.mark(),
	})
	return td.replyWith(k), nil
}

func returnTask(td taskDecision, r *wire.ReturnTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.held(r.TaskID, "returned")
	switch {
	case err != nil:
		return nil, err
	case k.view.AssignedTo != td.from.Name || k.view.State.Final():
		return nil, wrongState(k, "returned")
	case k.work() != nil:
		return nil, inItsSession(k, "returned")
	}
	f := &taskRequeued{Why: "returned by its agent: " + r.Reason, Blameless: true, Returned: true, Request: td.mark()}
	if after, _ := object.ParseTime(r.After); after.After(td.at) {
		f.After = r.After
	}
	td.questions().endPermissions(k)
	td.requeue(k, f)
	return td.replyWith(k), nil
}

// session returns for how long a permission for the session holds: as long as the conversation
// of the agent's program, or the run if there is none.
func (a *agent) session() string {
	if a.conversation != nil {
		return a.conversation.ID
	}
	return a.run
}

// maxPermissionWait is how long a request for permission waits if it names no time.
const maxPermissionWait = 365 * 24 * time.Hour

func askPermission(qd questionDecision, r *wire.AskPermission) (*wire.UserAnswer, *wire.Error) {
	a := qd.state.agents.byID[qd.from.Name]
	if choice := a.grants.Choice(r, a.session()); choice != "" {
		return &wire.UserAnswer{
			Answer: choice, Choice: choice, Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(qd.at)},
		}, nil
	}
	timeout := cmp.Or(time.Duration(r.Timeout)*time.Millisecond, maxPermissionWait)
	options := make([]wire.Option, 0, len(r.Choices))
	for _, c := range r.Choices {
		options = append(options, wire.Option{Label: cmp.Or(c.Label, c.ID), Value: c.ID})
	}
	return nil, qd.ask(&questionAsked{
		Question: r.Title, Options: options, Task: r.TaskID,
		Permission: &activity.Permission{Tool: r.Tool, Input: r.Input, Paths: r.Paths, Reason: r.Reason, Choices: r.Choices},
	}, timeout, time.Duration(r.Wait)*time.Millisecond)
}

// ask puts a question that is open for a time, unless the same question is open already. Its caller
// waits for the shorter of the two times, and then gets the answer as mail; a wait of 0 is as long as
// the timeout.
func (qd questionDecision) ask(f *questionAsked, timeout, wait time.Duration) *wire.Error {
	f.Deadline = object.Timestamp(qd.at.Add(timeout))
	if wait > 0 && wait < timeout {
		f.Until = object.Timestamp(qd.at.Add(wait))
	}
	if f.Task == "" {
		f.Task = qd.state.agents.parentOf(qd.from.Name)
	} else if k := qd.state.tasks.find(f.Task); k == nil || k.view.AssignedTo != qd.from.Name {
		return errorf(wire.CodeNotFound, details{"taskId": f.Task, "pointer": "/payload/taskId"}, "you have no task %.80q", f.Task)
	}
	switch q := qd.askedBefore(); {
	case q == nil:
		if err := qd.tooMany(); err != nil {
			return err
		}
		f.ID, f.Agent, f.Request = qd.state.questions.questionID(), qd.from.Name, qd.mark()
		qd.fact("", "", f)
	case q.waited(qd.state): // a repeat of an earlier question
	default:
		qd.fact("", "", &questionRejoined{ID: q.view.ID, Agent: qd.from.Name, Deadline: f.Deadline, Until: f.Until, Request: qd.mark()})
	}
	return nil
}

// withdrawQuestion closes a question of the caller. The request that asked it is refused.
func withdrawQuestion(qd questionDecision, r *wire.WithdrawQuestion) (*activity.Withdrawn, *wire.Error) {
	for _, q := range qd.state.questions.open {
		if q.view.Agent != qd.from.Name || r.QuestionID != "" && q.view.ID != r.QuestionID ||
			r.RequestID != "" && (q.request == nil || q.request.ID != r.RequestID || q.run != qd.from.Run) {
			continue
		}
		if qd.state.tasks.awaits(q) {
			return nil, errorf(wire.CodeConflict, details{"questionId": q.view.ID, "taskId": q.view.Task},
				"your task waits for the answer: start it again to go on without")
		}
		qd.out.Letters = append(qd.out.Letters, qd.withdraw(q)...)
		break
	}
	return &activity.Withdrawn{Withdrawn: true}, nil // one that is closed was answered or withdrawn before
}

// withdraw closes a question, and returns the refusal of the request that asked it, if its caller
// still waits.
func (qd questionDecision) withdraw(q *question) []Letter {
	waited := q.waited(qd.state)
	to, request := q.asker(), q.request
	qd.fact(agentPrefix+q.view.Agent, q.view.Task, &questionWithdrawn{ID: q.view.ID, Agent: q.view.Agent, Asked: true})
	if waited && request != nil {
		return []Letter{{To: to, Request: request.ID, Refusal: withdrawn()}}
	}
	return nil
}

// withdrawAll closes the open questions for which ended returns true. The requests that asked them
// are refused at the end of the turn, after the notice that tells the agent why.
func (qd questionDecision) withdrawAll(ended func(*question) bool) {
	for _, q := range slices.Clone(qd.state.questions.open) {
		if ended(q) {
			qd.closed = append(qd.closed, qd.withdraw(q)...)
		}
	}
}

// withdrawPermissions is withdrawAll for questions about permissions.
func (qd questionDecision) withdrawPermissions(ended func(*question) bool) {
	qd.withdrawAll(func(q *question) bool { return q.view.Permission != nil && ended(q) })
}

// endPermissions closes the questions about permissions for a task that ends or is given back.
func (qd questionDecision) endPermissions(k *task) {
	qd.withdrawPermissions(func(q *question) bool { return q.view.Task == k.view.ID })
}

func withdrawn() *wire.Error {
	return &wire.Error{Code: wire.CodeConflict, Message: "the question was withdrawn"}
}
