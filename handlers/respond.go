package handlers

import (
	"fmt"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// respond decides about a response of an agent to one of its tasks. It is passed on to the
// source of the task, word for word. A response to a task that was not delegated counts as the
// corresponding operation.
func (dd delegationDecision) respond(r *delegation.Response) *wire.Error {
	t := dd.state.Tasks.Find(r.ID)
	if t == nil || t.View.AssignedTo != dd.from.Name {
		return state.Errorf(wire.CodeNotFound, state.Details{"taskId": r.ID}, "you have no task %.80q", r.ID)
	}
	d := t.Delegation()
	switch {
	case t.View.State == wire.TaskCancelled && r.Status == delegation.Cancelled:
		return nil // it confirms the cancellation
	case t.View.State.Final():
		return wrongState(t, "responded to")
	case dd.state.Agents.Unbrought(t):
		return notForwarded(t)
	case d != nil && d.Out != "" && d.Out != dd.from.Run:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": r.ID, "reason": "other_run"}, "another run of yours has task %s now", t.Label())
	case r.Status == delegation.Cancelled && t.Work() != nil:
		return inItsSession(t, "cancelled")
	}
	again, err := dd.heedResponse(t, r)
	if err != nil {
		return err
	}
	dd.notes(t, r.Notes)
	if d == nil && len(r.Artifacts) > 0 && r.Status != delegation.Completed {
		dd.notes(t, []string{"/artifacts: are ignored: the task was not delegated"})
	}
	if by := r.Metadata.Agent; by != "" && by != dd.from.Name {
		dd.notes(t, []string{fmt.Sprintf("/metadata/agent: is %.80q, but the response is from %s", by, dd.from.Name)})
	}
	if d != nil && !again {
		dd.fact(t.View.SubmittedBy, t.View.ID, &state.TaskResponded{
			ID: t.View.ID, Name: t.View.Name, Agent: dd.from.Name, Status: r.Status, Document: r.Document,
		})
	}
	return nil
}

// heedResponse applies a response to its task. again reports whether the task is retried, so
// that the response need not be passed on.
func (dd delegationDecision) heedResponse(t *state.Task, r *delegation.Response) (again bool, err *wire.Error) {
	if r.Status == delegation.Pending {
		if t.View.State != wire.TaskAssigned {
			return false, wrongState(t, "pending again")
		}
		return false, nil
	}
	if r.Status == delegation.Cancelled {
		dd.giveUpItself(t, r)
		return false, nil
	}
	if _, err := dd.tasks().reportableTask(t.View.ID, meant[r.Status]); err != nil {
		return false, err
	}
	if r.Status == delegation.InputRequired {
		if err := dd.questions().tooMany(); err != nil {
			return false, err
		}
	}
	if r.Status == delegation.Failed && dd.retries(t, r.Fault) {
		return true, nil
	}
	dd.tasks().begin(t)
	switch r.Status {
	case delegation.Completed:
		dd.tasks().complete(t, resultOf(r.Result), end{responded: true, artifacts: ownArtifacts(t, r)})
	case delegation.Failed:
		dd.tasks().fail(t, failure{why: r.Fault.Code + ": " + r.Fault.Message, end: end{responded: true}})
	case delegation.InputRequired:
		dd.fact("", t.View.ID, &state.TaskHelp{
			ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, QuestionID: dd.state.Questions.QuestionID(), Question: r.Question, Options: r.Options,
		})
		dd.questions().tellArchitectOf(t, dd.from.Name+" asks a person: "+r.Question)
	}
	return false, nil
}

// ownArtifacts returns the artifacts of a response to a task that was not delegated. The artifacts
// of a delegated task stay in the response, which goes to its source.
func ownArtifacts(t *state.Task, r *delegation.Response) []hub.Artifact {
	if t.Delegation() != nil {
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
func (dd delegationDecision) giveUpItself(t *state.Task, r *delegation.Response) {
	reason := "Cancelled by " + dd.from.String()
	if r.Question != "" { // the message of the response
		reason = r.Question
	}
	dd.tasks().cancel(t, reason, end{responded: true, quiet: dd.from.Name})
	dd.links().abandon(t, "")
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
func (dd delegationDecision) respondFor(t *state.Task, how *delegation.Response) {
	if t.Delegation() == nil {
		return
	}
	r := dd.state.Questions.Response(t, how.Result)
	r.Fault, r.Artifacts = how.Fault, how.Artifacts
	dd.speakFor(t, r)
}

// tellSource sends the source of a delegated task its status, which its agent has not sent as a
// response.
func (dd delegationDecision) tellSource(t *state.Task) {
	if t.Delegation() != nil {
		dd.speakFor(t, dd.state.Questions.Response(t, nil))
	}
}

// speakFor sends a response to the source of a task in place of its agent.
func (dd delegationDecision) speakFor(t *state.Task, r *delegation.Response) {
	dd.own.fact(t.View.SubmittedBy, t.View.ID, &state.TaskResponded{
		ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Status: r.Status, Document: state.OneLine(delegation.AppendResponse(nil, r)), Own: true,
	})
}

// standingAnswer is answerOf with the latest response of the agent, if it is current. It returns
// nil for bare lines, which have no answer.
func (dd delegationDecision) standingAnswer(t *state.Task) *wire.TaskAnswer {
	if dd.request.Form == dialect.TaskRequest || dd.request.Form == dialect.TaskAct {
		return nil
	}
	switch d := t.Delegation(); {
	case d != nil && d.Said == t.View.State.Response():
		dd.pages = append(dd.pages, history.Page{Task: t.View.ID, Response: d.Latest, Metadata: t.Metadata()})
	case t.Stub && (t.View.State == wire.TaskDone || t.View.State == wire.TaskFailed), t.View.Details != nil && t.View.Artifacts != nil:
		dd.pages = append(dd.pages, history.Page{Task: t.View.ID, Ended: t.Ended})
	}
	answer := dd.state.Questions.AnswerOf(t)
	answer.Trace = t.Trace()
	return answer
}

func (dd delegationDecision) getTaskResponse(r *wire.GetTaskResponse) (*wire.TaskAnswer, *wire.Error) {
	t, err := dd.tasks().readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if r.Check && t.Delegation() == nil {
		return nil, errNotDelegated(t)
	}
	if r.Check {
		dd.checkOn(t)
	}
	return dd.standingAnswer(t), nil
}

// statusPatience is how long an agent has to answer a status request before its source gets the
// known status.
const statusPatience = time.Second

// errDelegated returns the refusal to assign a delegated task.
func errDelegated(t *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was delegated by a task request, and goes to the agent that the request names", t.Label()),
		Details: map[string]any{"taskId": t.View.ID, "reason": "delegated"}, Hint: "cancel it with cancel-task, and delegate it again with another target",
	}
}

// errNotDelegated returns the refusal of an act on a task that was not delegated.
func errNotDelegated(t *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was not delegated by a task request", t.Label()),
		Details: map[string]any{"taskId": t.View.ID, "reason": "not_delegated"}, Hint: "show it with get-task, or cancel it with cancel-task",
	}
}

// notForwarded returns the refusal of an act on a task that its agent has not received.
func notForwarded(t *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has not reached its agent: it waits until the agent has room", t.Label()),
		Details: map[string]any{"taskId": t.View.ID, "reason": "not_forwarded"}, Hint: "wait, or cancel it with cancel-task",
	}
}

// act records an act on a task and sends it to its agent. Input that cannot be sent waits until
// the agent reads.
func (dd delegationDecision) act(t *state.Task, f *state.TaskActed) {
	a := dd.state.Agents.ByID[t.View.AssignedTo]
	f.ID, f.Name, f.Agent = t.View.ID, t.View.Name, a.ID
	dd.fact(a.ActorID, t.View.ID, f)
	if !a.Reachable() || a.Run != t.Delegation().Out {
		return // that run has ended, and the next gets the whole task
	}
	l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Line: f.Line()}
	if f.Act == delegation.ActUpdate { // a lost status request is answered from the State
		l.Task, l.Said = t.View.ID, dd.state.Seq()
		if d := t.Delegation(); len(d.Returned) > 0 || !a.Listens() { // after the inputs that wait
			dd.fact(a.ActorID, t.View.ID, &state.TaskReturned{ID: t.View.ID, Name: t.View.Name, Agent: a.ID, Run: a.Run, Acted: dd.state.Seq()})
			return
		}
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

// checkOn requests the status of a task from its agent. If the agent cannot be asked or does not
// answer, the source gets the known status.
func (dd delegationDecision) checkOn(t *state.Task) {
	d, a := t.Delegation(), dd.state.Agents.ByID[t.View.AssignedTo]
	if d == nil || t.View.State.Final() || a == nil || d.Out == "" || d.Out != a.Run || !a.Listens() || dd.state.Stopping {
		dd.repeatResponse(t)
		return
	}
	if d.Asked.IsZero() { // otherwise the pending request serves both
		dd.act(t, &state.TaskActed{Act: delegation.ActStatus, Until: object.Timestamp(dd.at.Add(statusPatience))})
	}
}

// repeatResponse sends the latest response of a task to its source again.
func (dd delegationDecision) repeatResponse(t *state.Task) {
	l := Letter{To: dd.from}
	if d := t.Delegation(); d != nil && d.Said == t.View.State.Response() {
		m := t.Metadata()
		l.Kept, l.Metadata = d.Latest, &m
	} else {
		l.Line = dd.state.Questions.AnswerOf(t).Document
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

func (dd delegationDecision) updateTaskRequest(r *wire.UpdateTaskRequest) (*wire.TaskAnswer, *wire.Error) {
	t, err := dd.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := dd.tasks().mayManage(t, "give input to"); err != nil {
		return nil, err
	}
	d, a := t.Delegation(), dd.state.Agents.ByID[t.View.AssignedTo]
	switch {
	case d == nil:
		return nil, errNotDelegated(t)
	case t.View.State.Final():
		return nil, wrongState(t, "given input")
	case a != nil && a.Remote != nil:
		if t.View.State != wire.TaskNeedsHuman {
			return nil, &wire.Error{
				Code: wire.CodeConflict, Message: fmt.Sprintf("the server that works on task %s has not asked for input", t.Label()),
				Details: map[string]any{"taskId": t.View.ID, "reason": "takes_no_input"}, Hint: "wait until the status of the task is input_required",
			}
		}
		dd.questions().inputAnswers(t, r.Input)
	case d.Out == "":
		return nil, notForwarded(t)
	}
	dd.questions().cancelQuestions(t)
	if t.View.State == wire.TaskNeedsHuman {
		dd.tasks().start(t, nil)
	}
	dd.act(t, &state.TaskActed{Act: delegation.ActUpdate, Input: r.Input, Payload: r.Payload, Request: dd.mark()})
	if dd.request.Form == dialect.TaskAct {
		return nil, nil
	}
	answer := dd.state.Questions.AnswerOf(t) // a repeat gets the same answer
	answer.Trace = t.Trace()
	return answer, nil
}
