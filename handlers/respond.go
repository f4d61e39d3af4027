package handlers

import (
	"fmt"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// respond decides about a response of an agent to one of its tasks. It is passed on to the
// source of the task, word for word. A response to a task that was not delegated counts as the
// corresponding operation.
func (dd delegationDecision) respond(r *delegation.Response) *wire.Error {
	k := dd.state.tasks.find(r.ID)
	if k == nil || k.view.AssignedTo != dd.from.Name {
		return errorf(wire.CodeNotFound, details{"taskId": r.ID}, "you have no task %.80q", r.ID)
	}
	d := k.delegation()
	switch {
	case k.view.State == wire.TaskCancelled && r.Status == delegation.Cancelled:
		return nil // it confirms the cancellation
	case k.view.State.Final():
		return wrongState(k, "responded to")
	case dd.state.agents.unbrought(k):
		return notForwarded(k)
	case d != nil && d.out != "" && d.out != dd.from.Run:
		return errorf(wire.CodeConflict, details{"taskId": r.ID, "reason": "other_run"}, "task %s is another run's of you now", k.label())
	case r.Status == delegation.Cancelled && k.work() != nil:
		return inItsSession(k, "cancelled")
	}
	again, err := dd.heedResponse(k, r)
	if err != nil {
		return err
	}
	dd.notes(k, r.Notes)
	if d == nil && len(r.Artifacts) > 0 && r.Status != delegation.Completed {
		dd.notes(k, []string{"/artifacts: are passed over: the task was not handed on, and not sent on"})
	}
	if by := r.Metadata.Agent; by != "" && by != dd.from.Name {
		dd.notes(k, []string{fmt.Sprintf("/metadata/agent: says %.80q, and it is %s that responds", by, dd.from.Name)})
	}
	if d != nil && !again {
		dd.fact(k.view.SubmittedBy, k.view.ID, &taskResponded{
			ID: k.view.ID, Name: k.view.Name, Agent: dd.from.Name, Status: r.Status, Document: r.Document,
		})
	}
	return nil
}

// heedResponse applies a response to its task. again reports whether the task is retried, so
// that the response need not be passed on.
func (dd delegationDecision) heedResponse(k *task, r *delegation.Response) (again bool, err *wire.Error) {
	if r.Status == delegation.Pending {
		if k.view.State != wire.TaskAssigned {
			return false, wrongState(k, "pending again")
		}
		return false, nil
	}
	if r.Status == delegation.Cancelled {
		dd.giveUpItself(k, r)
		return false, nil
	}
	if _, err := dd.tasks().reportableTask(k.view.ID, meant[r.Status]); err != nil {
		return false, err
	}
	if r.Status == delegation.InputRequired {
		if err := dd.questions().tooMany(); err != nil {
			return false, err
		}
	}
	if r.Status == delegation.Failed && dd.retries(k, r.Fault) {
		return true, nil
	}
	dd.tasks().begin(k)
	switch r.Status {
	case delegation.Completed:
		dd.tasks().complete(k, resultOf(r.Result), end{responded: true, artifacts: ownArtifacts(k, r)})
	case delegation.Failed:
		dd.tasks().fail(k, failure{why: r.Fault.Code + ": " + r.Fault.Message, end: end{responded: true}})
	case delegation.InputRequired:
		dd.fact("", k.view.ID, &taskHelp{
			ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, QuestionID: dd.state.questions.questionID(), Question: r.Question, Options: r.Options,
		})
		dd.questions().tellArchitectOf(k, dd.from.Name+" asks a person: "+r.Question)
	}
	return false, nil
}

// ownArtifacts returns the artifacts of a response to a task that was not delegated. Those of a
// delegated task stay in the response, which goes to its source.
func ownArtifacts(k *task, r *delegation.Response) []hub.Artifact {
	if k.delegation() != nil {
		return nil
	}
	var all []hub.Artifact
	for _, a := range r.Artifacts {
		all = append(all, hub.Artifact{Name: a.Name, Type: a.Type, Size: int64(len(a.Content)), Ref: a.Ref, Content: a.Content})
	}
	return all
}

// meant maps the status of a response to the verb of a refusal.
var meant = map[string]string{
	delegation.InProgress: "worked on", delegation.Completed: "completed", delegation.Failed: "failed",
	delegation.InputRequired: "helped with",
}

// giveUpItself cancels a task at the request of its agent.
func (dd delegationDecision) giveUpItself(k *task, r *delegation.Response) {
	reason := "Cancelled by " + dd.from.String()
	if r.Question != "" { // the message of the response
		reason = r.Question
	}
	dd.tasks().cancel(k, reason, end{responded: true, quiet: dd.from.Name})
	dd.links().abandon(k, "")
}

// resultOf returns the result of a response, which may be any value. It delivers no contracts.
func resultOf(document wire.Raw) *hub.Result {
	if document == nil {
		return &succeeded
	}
	return &hub.Result{Document: document}
}

// respondFor sends the final response of a delegated task in place of its agent, with the fault, the
// result and the artifacts of how.
func (dd delegationDecision) respondFor(k *task, how *delegation.Response) {
	if k.delegation() == nil {
		return
	}
	r := dd.state.questions.response(k, how.Result)
	r.Fault, r.Artifacts = how.Fault, how.Artifacts
	dd.speakFor(k, r)
}

// tellSource sends the source of a delegated task its status, which its agent has not sent as a
// response.
func (dd delegationDecision) tellSource(k *task) {
	if k.delegation() != nil {
		dd.speakFor(k, dd.state.questions.response(k, nil))
	}
}

// speakFor sends a response to the source of a task in place of its agent.
func (dd delegationDecision) speakFor(k *task, r *delegation.Response) {
	dd.own.fact(k.view.SubmittedBy, k.view.ID, &taskResponded{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Status: r.Status, Document: oneLine(delegation.AppendResponse(nil, r)), Own: true,
	})
}

// response returns the status of a task as a task response.
func (qs *questions) response(k *task, result wire.Raw) *delegation.Response {
	r := &delegation.Response{ID: k.view.ID, Status: k.view.State.Response(), Metadata: k.metadata(), Result: result}
	switch r.Status {
	case delegation.Completed:
		if result == nil {
			r.Result = k.view.Result
		}
	case delegation.Failed:
		r.Fault = &delegation.Fault{Code: delegation.FaultInternal, Message: k.view.Error}
	case delegation.Cancelled:
		r.Question = k.view.Reason // the message of a response
	case delegation.InputRequired:
		if k.more == nil {
			break
		}
		if q := qs.byID[k.more.question]; q != nil {
			r.Question, r.Options = q.view.Question, q.view.Options
		}
	}
	return r
}

// metadata returns the metadata of a task response.
func (t *task) metadata() delegation.Metadata {
	v := &t.view
	m := delegation.Metadata{StartedAt: v.StartedAt, CompletedAt: v.EndedAt, Agent: v.AssignedTo}
	if d := t.delegation(); d != nil && v.State.Final() && (m.StartedAt == "" || m.StartedAt == m.CompletedAt) { // its agent has not reported its start
		m.StartedAt = d.forwarded
	}
	from, begun := object.ParseTime(m.StartedAt)
	to, ended := object.ParseTime(m.CompletedAt)
	if begun && ended {
		took := max(0, to.Sub(from)).Milliseconds()
		m.DurationMS = &took
	}
	if v.Attempts > 0 {
		retries := int64(v.Attempts - 1)
		m.RetryCount = &retries
	}
	return m
}

// answerOf returns an answer with the status of a task.
func (qs *questions) answerOf(k *task) *wire.TaskAnswer {
	return &wire.TaskAnswer{Document: oneLine(delegation.AppendResponse(nil, qs.response(k, nil)))}
}

// standingAnswer is answerOf with the latest response of the agent, if it is current. It returns
// nil for bare lines, which have no answer.
func (dd delegationDecision) standingAnswer(k *task) *wire.TaskAnswer {
	if dd.request.Form == wire.DialectTaskRequest || dd.request.Form == wire.DialectTaskAct {
		return nil
	}
	switch d := k.delegation(); {
	case d != nil && d.said == k.view.State.Response():
		dd.pages = append(dd.pages, history.Page{Task: k.view.ID, Response: d.latest, Metadata: k.metadata()})
	case k.stub && (k.view.State == wire.TaskDone || k.view.State == wire.TaskFailed), k.view.Details != nil && k.view.Artifacts != nil:
		dd.pages = append(dd.pages, history.Page{Task: k.view.ID, Ended: k.ended})
	}
	answer := dd.state.questions.answerOf(k)
	answer.Trace = k.trace()
	return answer
}

func getTaskResponse(dd delegationDecision, r *wire.GetTaskResponse) (*wire.TaskAnswer, *wire.Error) {
	k, err := dd.tasks().readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if r.Check && k.delegation() == nil {
		return nil, errNotDelegated(k)
	}
	if r.Check {
		dd.checkOn(k)
	}
	return dd.standingAnswer(k), nil
}

// statusPatience is how long an agent has to answer a status request before its source gets the
// known status.
const statusPatience = time.Second

// errDelegated returns the refusal to assign a delegated task.
func errDelegated(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was handed on by a task request, and goes to the agent that it names", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "delegated"}, Hint: "cancel it with cancel-task, and hand it on anew with another target",
	}
}

// errNotDelegated returns the refusal of an act on a task that was not delegated.
func errNotDelegated(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s did not come by a task request", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "not_delegated"}, Hint: "ask for it with get-task, or cancel it with cancel-task",
	}
}

// notForwarded returns the refusal of an act on a task that its agent has not received.
func notForwarded(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has not been brought to its agent: it waits for it to have room", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "not_forwarded"}, Hint: "wait until it is, or cancel it with cancel-task",
	}
}

// unbrought reports whether a task waits to be forwarded to its agent. Until then no response is
// accepted. A server fetches its tasks itself.
func (as *agents) unbrought(k *task) bool {
	d, a := k.delegation(), as.byID[k.view.AssignedTo]
	return d != nil && d.waits() && a != nil && a.remote == nil
}

// act records an act on a task and sends it to its agent. Input that cannot be sent waits until
// the agent reads.
func (dd delegationDecision) act(k *task, f *taskActed) {
	a := dd.state.agents.byID[k.view.AssignedTo]
	f.ID, f.Name, f.Agent = k.view.ID, k.view.Name, a.ID
	dd.fact(a.actor, k.view.ID, f)
	if !a.reachable() || a.run != k.delegation().out {
		return // that run has ended, and the next gets the whole task
	}
	l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Line: f.Line()}
	if f.Act == delegation.ActUpdate { // a lost status request is answered with what is known
		l.Task, l.Said = k.view.ID, dd.state.Seq()
		if d := k.delegation(); len(d.returned) > 0 || !a.listens() { // after the inputs that wait
			dd.fact(a.actor, k.view.ID, &taskReturned{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Acted: dd.state.Seq()})
			return
		}
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

// checkOn requests the status of a task from its agent. If the agent cannot be asked or does not
// answer, the source gets the known status.
func (dd delegationDecision) checkOn(k *task) {
	d, a := k.delegation(), dd.state.agents.byID[k.view.AssignedTo]
	if d == nil || k.view.State.Final() || a == nil || d.out == "" || d.out != a.run || !a.listens() || dd.state.stopping {
		dd.repeatResponse(k)
		return
	}
	if d.asked.IsZero() { // otherwise the pending request serves both
		dd.act(k, &taskActed{Act: delegation.ActStatus, Until: object.Timestamp(dd.at.Add(statusPatience))})
	}
}

// repeatResponse sends the latest response of a task to its source again.
func (dd delegationDecision) repeatResponse(k *task) {
	l := Letter{To: dd.from}
	if d := k.delegation(); d != nil && d.said == k.view.State.Response() {
		m := k.metadata()
		l.Kept, l.Metadata = d.latest, &m
	} else {
		l.Line = dd.state.questions.answerOf(k).Document
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

func updateTaskRequest(dd delegationDecision, r *wire.UpdateTaskRequest) (*wire.TaskAnswer, *wire.Error) {
	k, err := dd.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := dd.tasks().mayManage(k, "give input to"); err != nil {
		return nil, err
	}
	d, a := k.delegation(), dd.state.agents.byID[k.view.AssignedTo]
	switch {
	case d == nil:
		return nil, errNotDelegated(k)
	case k.view.State.Final():
		return nil, wrongState(k, "given input")
	case a != nil && a.remote != nil:
		if k.view.State != wire.TaskNeedsHuman {
			return nil, &wire.Error{
				Code: wire.CodeConflict, Message: fmt.Sprintf("the server that works on task %s has not asked for input", k.label()),
				Details: map[string]any{"taskId": k.view.ID, "reason": "takes_no_input"}, Hint: "wait until the status of the task is input_required",
			}
		}
		dd.questions().inputAnswers(k, r.Input)
	case d.out == "":
		return nil, notForwarded(k)
	}
	dd.questions().cancelQuestions(k)
	if k.view.State == wire.TaskNeedsHuman {
		dd.tasks().start(k, nil)
	}
	dd.act(k, &taskActed{Act: delegation.ActUpdate, Input: r.Input, Payload: r.Payload, Request: dd.mark()})
	if dd.request.Form == wire.DialectTaskAct {
		return nil, nil
	}
	answer := dd.state.questions.answerOf(k) // a repeat gets the same answer
	answer.Trace = k.trace()
	return answer, nil
}
