package handlers

import (
	"fmt"

	"orchestrator/wire"
)

// errDelegated refuses to give a task whose source has handed it on.
func errDelegated(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s was handed on by a task request, and goes to the agent that it names", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "delegated"}, Hint: "cancel it with cancel-task, and hand it on anew with another target",
	}
}

// errNotDelegated refuses what is said about tasks that came by a task request alone.
func errNotDelegated(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s did not come by a task request", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "not_delegated"}, Hint: "ask for it with get-task, or cancel it with cancel-task",
	}
}

// notForwarded refuses what is said about a task that its agent has not got yet.
func notForwarded(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has not been brought to its agent: it waits for it to have room", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "not_forwarded"}, Hint: "wait until it is, or cancel it with cancel-task",
	}
}

// unbrought reports whether a task waits to be brought to its agent: until then, no agent
// else says that it has begun. A server asks for its tasks itself.
func (t *decision) unbrought(k *task) bool {
	d, a := k.delegation(), t.state.agents.byID[k.view.AssignedTo]
	return d != nil && d.waits() && a != nil && a.remote == nil
}

// act says something about a task to its agent. It is recorded; what it could not be
// brought of an input it is brought when it reads.
func (t *decision) act(k *task, f *taskActed) {
	a := t.state.agents.byID[k.view.AssignedTo]
	f.ID, f.Name, f.Agent = k.view.ID, k.view.Name, a.ID
	t.fact(a.actor, k.view.ID, f)
	if !a.reachable() || a.run != k.delegation().out {
		return // the run that it was for is over, and the next gets the whole task
	}
	l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Line: f.line()}
	if f.Act == wire.ActUpdate { // who asks how it stands is told what is known, and can ask again
		l.Task, l.Said = k.view.ID, t.state.seq
		if d := k.delegation(); len(d.returned) > 0 || !a.listens() { // not before those that wait
			t.fact(a.actor, k.view.ID, &taskReturned{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Acted: t.state.seq})
			return
		}
	}
	t.out.Letters = append(t.out.Letters, l)
}

// checkOn asks the agent of a task how it stands. Without an agent to ask, or
// without an answer, its source is told what is known.
func (t *decision) checkOn(k *task) {
	d, a := k.delegation(), t.state.agents.byID[k.view.AssignedTo]
	if d == nil || k.view.State.Final() || a == nil || d.out == "" || d.out != a.run || !a.listens() || t.state.stopping {
		t.repeatResponse(k)
		return
	}
	if d.asked.IsZero() { // else the answer to the first answers this too
		t.act(k, &taskActed{Act: wire.ActStatus, Until: wire.Timestamp(t.at.Add(statusPatience))})
	}
}

// repeatResponse says once more to the source of a task how it stands.
func (t *decision) repeatResponse(k *task) {
	l := Letter{To: t.from}
	if d := k.delegation(); d != nil && d.said == k.view.State.Response() {
		m := k.metadata()
		l.Kept, l.Metadata = d.latest, &m
	} else {
		l.Line = t.state.answerOf(k, nil).Document
	}
	t.out.Letters = append(t.out.Letters, l)
}

func updateTaskRequest(t *decision, r *wire.UpdateTaskRequest) (*wire.TaskAnswer, *wire.Error) {
	k, err := t.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := t.mayManage(k, "give input to"); err != nil {
		return nil, err
	}
	d, a := k.delegation(), t.state.agents.byID[k.view.AssignedTo]
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
	t.cancelQuestions(k)
	if k.view.State == wire.TaskNeedsHuman {
		t.start(k, nil)
	}
	t.act(k, &taskActed{Act: wire.ActUpdate, Input: r.Input, Payload: r.Payload, Request: t.mark()})
	if t.request.Form == wire.DialectTaskAct {
		return nil, nil
	}
	answer := t.state.answerOf(k, nil) // a repeat hears the same
	answer.Trace = k.trace()
	return answer, nil
}
