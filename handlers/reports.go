package handlers

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

var reportOperations = []Operation{
	bind("current-task", (*decision).tasks, taskDecision.currentTask),
	bind("report-progress", (*decision).tasks, taskDecision.reportProgress),
	bind("return-task", (*decision).tasks, taskDecision.returnTask),
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
		td.fact("", "", &state.QuestionAsked{ID: td.state.Questions.QuestionID(), Agent: td.from.Name, Question: body.Question, Context: body.Context})
		return nil
	}
	if td.agents().activity(r.Body) {
		return nil
	}
	return &wire.Error{Code: wire.CodeUnknownType, Message: "there is no event:" + r.Name}
}

func (td taskDecision) progress(p *activity.Progress) *wire.Error {
	t, err := td.reportableTask(p.TaskID, "worked on")
	if err != nil {
		return err
	}
	td.begin(t)
	td.fact("", t.View.ID, &state.TaskProgress{ID: t.View.ID, Name: t.View.Name, Agent: td.from.Name, Progress: p.Progress, Message: p.Message, Output: p.Output})
	return nil
}

// trouble records an error, and fails the task if the agent cannot continue.
func (td taskDecision) trouble(e *activity.Trouble) *wire.Error {
	if e.TaskID == "" || e.Recoverable && td.state.Tasks.Find(e.TaskID) == nil {
		td.fact("", "", &state.TaskTrouble{Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
		return nil
	}
	t, err := td.reportableTask(e.TaskID, "failed")
	if err != nil {
		return err
	}
	if w := t.Work(); w != nil && w.Active() && !e.Recoverable {
		td.works().breakWork(w, e.Error)
		return nil
	}
	td.begin(t)
	if !e.Recoverable {
		td.fail(t, failure{why: e.Error, stack: e.Stack})
		return nil
	}
	td.fact("", t.View.ID, &state.TaskTrouble{ID: t.View.ID, Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
	return nil
}

// activity handles an event about the work of a coding agent. It reports false for any other
// event.
func (ad agentDecision) activity(body any) bool {
	a := ad.state.Agents.ByID[ad.from.Name]
	switch body := body.(type) {
	case *activity.Usage:
		used := *body
		if t := ad.state.Tasks.Find(used.TaskID); t != nil && !t.HeldBy(ad.from) { // it counts for the agent only
			used.TaskID = ""
		}
		ad.fact("", used.TaskID, &state.AgentUsage{Agent: a.ID, Usage: used})
	case *activity.Conversation:
		if a.Conversation == nil || a.Conversation.Conversation != *body {
			ad.fact("", "", &state.AgentConversation{Agent: a.ID, Conversation: *body})
		}
	case *activity.Limited:
		ad.limit(a, body)
	case *activity.Receipt:
		if a.Mail != nil {
			ad.fact("", "", &state.MailReceipt{Agent: a.ID, Actor: a.Mail.ID, Seq: body.Seq, State: body.State})
		}
	default:
		return false
	}
	return true
}

// limit records until when an agent is limited. A time in the past ends its limit.
func (ad agentDecision) limit(a *state.KnownAgent, l *activity.Limited) {
	until := l.Until
	switch at, _ := object.ParseTime(until); {
	case !at.After(ad.at):
		if !a.Limited.IsZero() {
			ad.unpark(a)
		}
		return
	case at.Sub(ad.at) > activity.MaxLimit:
		until = object.Timestamp(ad.at.Add(activity.MaxLimit))
	}
	ad.fact("", "", &state.AgentLimited{Agent: a.ID, Until: until, Scope: l.Scope})
}

// lift ends the limit of an agent that was stopped or restarted by hand, or that has given up and
// starts only by hand again.
func (ad agentDecision) lift(a *state.KnownAgent) {
	if !a.Limited.IsZero() && !ad.state.Stopping {
		ad.unpark(a)
	}
}

// unlimit ends the limits that have passed.
func (ad agentDecision) unlimit() {
	for limited := &ad.state.Agents.Limited; len(*limited) > 0; {
		a := (*limited)[0].KnownAgent
		if a.Limited.After(ad.at) {
			return
		}
		ad.unpark(a)
	}
}

// unpark ends the limit of an agent, and gives it the tasks that waited for that.
func (ad agentDecision) unpark(a *state.KnownAgent) {
	ad.fact(a.ActorID, "", &state.AgentLimited{Agent: a.ID})
	ad.tasks().recheckAddressed(a)
}

// currentTask returns the task that the caller works on: the first one that has started, or the
// first one that was assigned.
func (td taskDecision) currentTask(_ *wire.Nothing) (*wire.TaskReply, *wire.Error) {
	a := td.state.Agents.ByID[td.from.Name]
	var found *state.Task
	for _, t := range a.Holds {
		if t.Busy() {
			found = t
			break
		}
		if found == nil {
			found = t
		}
	}
	if found == nil {
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "you have no task"}
	}
	return td.getTask(&wire.TaskID{TaskID: found.View.ID})
}

func (td taskDecision) reportProgress(r *wire.ReportProgress) (*wire.TaskReply, *wire.Error) {
	t, err := td.reportableTask(r.TaskID, "worked on")
	if err != nil {
		return nil, err
	}
	td.begin(t)
	progress := t.View.Progress
	if r.Progress != nil {
		progress = *r.Progress
	}
	td.fact("", t.View.ID, &state.TaskProgress{
		ID: t.View.ID, Name: t.View.Name, Agent: td.from.Name, Progress: progress, Message: r.Message, Kind: r.Kind, Output: r.Output, Request: td.mark(),
	})
	return td.replyWith(t), nil
}

func (td taskDecision) returnTask(r *wire.ReturnTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.held(r.TaskID, "returned")
	switch {
	case err != nil:
		return nil, err
	case t.View.AssignedTo != td.from.Name || t.View.State.Final():
		return nil, wrongState(t, "returned")
	case t.Work() != nil:
		return nil, inItsSession(t, "returned")
	}
	f := &state.TaskRequeued{Why: "returned by its agent: " + r.Reason, Blameless: true, Returned: true, Request: td.mark()}
	if after, _ := object.ParseTime(r.After); after.After(td.at) {
		f.After = r.After
	}
	td.questions().endPermissions(t)
	td.requeue(t, f)
	return td.replyWith(t), nil
}

// maxPermissionWait is how long a request for permission waits if it names no time.
const maxPermissionWait = 365 * 24 * time.Hour

func askPermission(qd questionDecision, r *wire.AskPermission) (*wire.UserAnswer, *wire.Error) {
	a := qd.state.Agents.ByID[qd.from.Name]
	if choice := a.Grants.Choice(r, a.Session()); choice != "" {
		return &wire.UserAnswer{
			Answer: choice, Choice: choice, Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(qd.at)},
		}, nil
	}
	timeout := cmp.Or(time.Duration(r.Timeout)*time.Millisecond, maxPermissionWait)
	options := make([]wire.Option, 0, len(r.Choices))
	for _, c := range r.Choices {
		options = append(options, wire.Option{Label: cmp.Or(c.Label, c.ID), Value: c.ID})
	}
	return nil, qd.ask(&state.QuestionAsked{
		Question: r.Title, Options: options, Task: r.TaskID,
		Permission: &activity.Permission{Tool: r.Tool, Input: r.Input, Paths: r.Paths, Reason: r.Reason, Choices: r.Choices},
	}, timeout, time.Duration(r.Wait)*time.Millisecond)
}

// ask puts a question that is open for a time, unless the same question is open already. Its caller
// waits for the shorter of the two times, and then gets the answer as mail; a wait of 0 is as long as
// the timeout.
func (qd questionDecision) ask(f *state.QuestionAsked, timeout, wait time.Duration) *wire.Error {
	f.Deadline = object.Timestamp(qd.at.Add(timeout))
	if wait > 0 && wait < timeout {
		f.Until = object.Timestamp(qd.at.Add(wait))
	}
	if f.Task == "" {
		f.Task = qd.state.Agents.ParentOf(qd.from.Name)
	} else if t := qd.state.Tasks.Find(f.Task); t == nil || t.View.AssignedTo != qd.from.Name {
		return state.Errorf(wire.CodeNotFound, state.Details{"taskId": f.Task, "pointer": "/payload/taskId"}, "you have no task %.80q", f.Task)
	}
	switch q := qd.askedBefore(); {
	case q == nil:
		if err := qd.tooMany(); err != nil {
			return err
		}
		f.ID, f.Agent, f.Request = qd.state.Questions.QuestionID(), qd.from.Name, qd.mark()
		qd.fact("", "", f)
	case q.Waited(qd.state): // a repeat of an earlier question
	default:
		qd.fact("", "", &state.QuestionRejoined{ID: q.View.ID, Agent: qd.from.Name, Deadline: f.Deadline, Until: f.Until, Request: qd.mark()})
	}
	return nil
}

// withdrawQuestion closes a question of the caller. The request that asked it is refused.
func withdrawQuestion(qd questionDecision, r *wire.WithdrawQuestion) (*activity.Withdrawn, *wire.Error) {
	for _, q := range qd.state.Questions.Open {
		if q.View.Agent != qd.from.Name || r.QuestionID != "" && q.View.ID != r.QuestionID ||
			r.RequestID != "" && (q.Request == nil || q.Request.ID != r.RequestID || q.Run != qd.from.Run) {
			continue
		}
		if qd.state.Tasks.Awaits(q) {
			return nil, state.Errorf(wire.CodeConflict, state.Details{"questionId": q.View.ID, "taskId": q.View.Task},
				"your task waits for the answer: start it again to continue without one")
		}
		qd.out.Letters = append(qd.out.Letters, qd.withdraw(q)...)
		break
	}
	return &activity.Withdrawn{Withdrawn: true}, nil // one that is closed was answered or withdrawn before
}

// withdraw closes a question, and returns the refusal of the request that asked it, if its caller
// still waits.
func (qd questionDecision) withdraw(q *state.Question) []Letter {
	waited := q.Waited(qd.state)
	to, request := q.Asker(), q.Request
	qd.fact(state.AgentPrefix+q.View.Agent, q.View.Task, &state.QuestionWithdrawn{ID: q.View.ID, Agent: q.View.Agent, Asked: true})
	if waited && request != nil {
		return []Letter{{To: to, Request: request.ID, Refusal: state.Withdrawn()}}
	}
	return nil
}

// withdrawAll closes the open questions for which ended returns true. The requests that asked them
// are refused at the end of the turn, after the notice with the reason.
func (qd questionDecision) withdrawAll(ended func(*state.Question) bool) {
	for _, q := range slices.Clone(qd.state.Questions.Open) {
		if ended(q) {
			qd.closed = append(qd.closed, qd.withdraw(q)...)
		}
	}
}

// withdrawPermissions is withdrawAll for questions about permissions.
func (qd questionDecision) withdrawPermissions(ended func(*state.Question) bool) {
	qd.withdrawAll(func(q *state.Question) bool { return q.View.Permission != nil && ended(q) })
}

// endPermissions closes the questions about permissions for a task that ends or is given back.
func (qd questionDecision) endPermissions(t *state.Task) {
	qd.withdrawPermissions(func(q *state.Question) bool { return q.View.Task == t.View.ID })
}
