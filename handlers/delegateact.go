package handlers

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

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
		l.Task, l.Said = k.view.ID, dd.state.seq
		if d := k.delegation(); len(d.returned) > 0 || !a.listens() { // after the inputs that wait
			dd.fact(a.actor, k.view.ID, &taskReturned{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Acted: dd.state.seq})
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
		l.Line = dd.state.questions.answerOf(k, nil).Document
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
	case a != nil && a.remote != nil && !k.view.State.Final():
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("task %s is done by a server, which takes no input", k.label()),
			Details: map[string]any{"taskId": k.view.ID, "reason": "takes_no_input"}, Hint: "if it has asked a question, answer that: orchestrator inbox",
		}
	case k.view.State.Final():
		return nil, wrongState(k, "given input")
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
	answer := dd.state.questions.answerOf(k, nil) // a repeat gets the same answer
	answer.Trace = k.trace()
	return answer, nil
}
