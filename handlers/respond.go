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
	k := dd.state.Tasks.Find(r.ID)
	if k == nil || k.View.AssignedTo != dd.from.Name {
		return state.Errorf(wire.CodeNotFound, state.Details{"taskId": r.ID}, "you have no task %.80q", r.ID)
	}
	d := k.Delegation()
	switch {
	case k.View.State == wire.TaskCancelled && r.Status == delegation.Cancelled:
		return nil // it confirms the cancellation
	case k.View.State.Final():
		return wrongState(k, "responded to")
	case dd.state.Agents.Unbrought(k):
		return notForwarded(k)
	case d != nil && d.Out != "" && d.Out != dd.from.Run:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": r.ID, "reason": "other_run"}, "another run of yours has task %s now", k.Label())
	case r.Status == delegation.Cancelled && k.Work() != nil:
		return inItsSession(k, "cancelled")
	}
	again, err := dd.heedResponse(k, r)
	if err != nil {
		return err
	}
	dd.notes(k, r.Notes)
	if d == nil && len(r.Artifacts) > 0 && r.Status != delegation.Completed {
		dd.notes(k, []string{"/artifacts: are ignored: the task was not delegated"})
	}
	if by := r.Metadata.Agent; by != "" && by != dd.from.Name {
		dd.notes(k, []string{fmt.Sprintf("/metadata/agent: is %.80q, but the response is from %s", by, dd.from.Name)})
	}
	if d != nil && !again {
		dd.fact(k.View.SubmittedBy, k.View.ID, &state.TaskResponded{
			ID: k.View.ID, Name: k.View.Name, Agent: dd.from.Name, Status: r.Status, Document: r.Document,
		})
	}
	return nil
}

// heedResponse applies a response to its task. again reports whether the task is retried, so
// that the response need not be passed on.
func (dd delegationDecision) heedResponse(k *state.Task, r *delegation.Response) (again bool, err *wire.Error) {
	if r.Status == delegation.Pending {
		if k.View.State != wire.TaskAssigned {
			return false, wrongState(k, "pending again")
		}
		return false, nil
	}
	if r.Status == delegation.Cancelled {
		dd.giveUpItself(k, r)
		return false, nil
	}
	if _, err := dd.tasks().reportableTask(k.View.ID, meant[r.Status]); err != nil {
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
		dd.fact("", k.View.ID, &state.TaskHelp{
			ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, QuestionID: dd.state.Questions.QuestionID(), Question: r.Question, Options: r.Options,
		})
		dd.questions().tellArchitectOf(k, dd.from.Name+" asks a person: "+r.Question)
	}
	return false, nil
}

// ownArtifacts returns the artifacts of a response to a task that was not delegated. The artifacts
// of a delegated task stay in the response, which goes to its source.
func ownArtifacts(k *state.Task, r *delegation.Response) []hub.Artifact {
	if k.Delegation() != nil {
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
func (dd delegationDecision) giveUpItself(k *state.Task, r *delegation.Response) {
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
func (dd delegationDecision) respondFor(k *state.Task, how *delegation.Response) {
	if k.Delegation() == nil {
		return
	}
	r := dd.state.Questions.Response(k, how.Result)
	r.Fault, r.Artifacts = how.Fault, how.Artifacts
	dd.speakFor(k, r)
}

// tellSource sends the source of a delegated task its status, which its agent has not sent as a
// response.
func (dd delegationDecision) tellSource(k *state.Task) {
	if k.Delegation() != nil {
		dd.speakFor(k, dd.state.Questions.Response(k, nil))
	}
}

// speakFor sends a response to the source of a task in place of its agent.
func (dd delegationDecision) speakFor(k *state.Task, r *delegation.Response) {
	dd.own.fact(k.View.SubmittedBy, k.View.ID, &state.TaskResponded{
		ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Status: r.Status, Document: state.OneLine(delegation.AppendResponse(nil, r)), Own: true,
	})
}

// standingAnswer is answerOf with the latest response of the agent, if it is current. It returns
// nil for bare lines, which have no answer.
func (dd delegationDecision) standingAnswer(k *state.Task) *wire.TaskAnswer {
	if dd.request.Form == dialect.TaskRequest || dd.request.Form == dialect.TaskAct {
		return nil
	}
	switch d := k.Delegation(); {
	case d != nil && d.Said == k.View.State.Response():
		dd.pages = append(dd.pages, history.Page{Task: k.View.ID, Response: d.Latest, Metadata: k.Metadata()})
	case k.Stub && (k.View.State == wire.TaskDone || k.View.State == wire.TaskFailed), k.View.Details != nil && k.View.Artifacts != nil:
		dd.pages = append(dd.pages, history.Page{Task: k.View.ID, Ended: k.Ended})
	}
	answer := dd.state.Questions.AnswerOf(k)
	answer.Trace = k.Trace()
	return answer
}

func (dd delegationDecision) getTaskResponse(r *wire.GetTaskResponse) (*wire.TaskAnswer, *wire.Error) {
	k, err := dd.tasks().readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if r.Check && k.Delegation() == nil {
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
func errDelegated(k *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was delegated by a task request, and goes to the agent that the request names", k.Label()),
		Details: map[string]any{"taskId": k.View.ID, "reason": "delegated"}, Hint: "cancel it with cancel-task, and delegate it again with another target",
	}
}

// errNotDelegated returns the refusal of an act on a task that was not delegated.
func errNotDelegated(k *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was not delegated by a task request", k.Label()),
		Details: map[string]any{"taskId": k.View.ID, "reason": "not_delegated"}, Hint: "show it with get-task, or cancel it with cancel-task",
	}
}

// notForwarded returns the refusal of an act on a task that its agent has not received.
func notForwarded(k *state.Task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has not reached its agent: it waits until the agent has room", k.Label()),
		Details: map[string]any{"taskId": k.View.ID, "reason": "not_forwarded"}, Hint: "wait, or cancel it with cancel-task",
	}
}

// act records an act on a task and sends it to its agent. Input that cannot be sent waits until
// the agent reads.
func (dd delegationDecision) act(k *state.Task, f *state.TaskActed) {
	a := dd.state.Agents.ByID[k.View.AssignedTo]
	f.ID, f.Name, f.Agent = k.View.ID, k.View.Name, a.ID
	dd.fact(a.ActorID, k.View.ID, f)
	if !a.Reachable() || a.Run != k.Delegation().Out {
		return // that run has ended, and the next gets the whole task
	}
	l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Line: f.Line()}
	if f.Act == delegation.ActUpdate { // a lost status request is answered from the State
		l.Task, l.Said = k.View.ID, dd.state.Seq()
		if d := k.Delegation(); len(d.Returned) > 0 || !a.Listens() { // after the inputs that wait
			dd.fact(a.ActorID, k.View.ID, &state.TaskReturned{ID: k.View.ID, Name: k.View.Name, Agent: a.ID, Run: a.Run, Acted: dd.state.Seq()})
			return
		}
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

// checkOn requests the status of a task from its agent. If the agent cannot be asked or does not
// answer, the source gets the known status.
func (dd delegationDecision) checkOn(k *state.Task) {
	d, a := k.Delegation(), dd.state.Agents.ByID[k.View.AssignedTo]
	if d == nil || k.View.State.Final() || a == nil || d.Out == "" || d.Out != a.Run || !a.Listens() || dd.state.Stopping {
		dd.repeatResponse(k)
		return
	}
	if d.Asked.IsZero() { // otherwise the pending request serves both
		dd.act(k, &state.TaskActed{Act: delegation.ActStatus, Until: object.Timestamp(dd.at.Add(statusPatience))})
	}
}

// repeatResponse sends the latest response of a task to its source again.
func (dd delegationDecision) repeatResponse(k *state.Task) {
	l := Letter{To: dd.from}
	if d := k.Delegation(); d != nil && d.Said == k.View.State.Response() {
		m := k.Metadata()
		l.Kept, l.Metadata = d.Latest, &m
	} else {
		l.Line = dd.state.Questions.AnswerOf(k).Document
	}
	dd.out.Letters = append(dd.out.Letters, l)
}

func (dd delegationDecision) updateTaskRequest(r *wire.UpdateTaskRequest) (*wire.TaskAnswer, *wire.Error) {
	k, err := dd.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := dd.tasks().mayManage(k, "give input to"); err != nil {
		return nil, err
	}
	d, a := k.Delegation(), dd.state.Agents.ByID[k.View.AssignedTo]
	switch {
	case d == nil:
		return nil, errNotDelegated(k)
	case k.View.State.Final():
		return nil, wrongState(k, "given input")
	case a != nil && a.Remote != nil:
		if k.View.State != wire.TaskNeedsHuman {
			return nil, &wire.Error{
				Code: wire.CodeConflict, Message: fmt.Sprintf("the server that works on task %s has not asked for input", k.Label()),
				Details: map[string]any{"taskId": k.View.ID, "reason": "takes_no_input"}, Hint: "wait until the status of the task is input_required",
			}
		}
		dd.questions().inputAnswers(k, r.Input)
	case d.Out == "":
		return nil, notForwarded(k)
	}
	dd.questions().cancelQuestions(k)
	if k.View.State == wire.TaskNeedsHuman {
		dd.tasks().start(k, nil)
	}
	dd.act(k, &state.TaskActed{Act: delegation.ActUpdate, Input: r.Input, Payload: r.Payload, Request: dd.mark()})
	if dd.request.Form == dialect.TaskAct {
		return nil, nil
	}
	answer := dd.state.Questions.AnswerOf(k) // a repeat gets the same answer
	answer.Trace = k.Trace()
	return answer, nil
}
