package handlers

import (
	"encoding/hex"
	"fmt"

	"orchestrator/wire"
)

func submitTask(t *turn, r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	vain, err := t.dependencies(r.Dependencies)
	if err != nil {
		return nil, err
	}
	id := t.uuid()
	if t.tasks[id] != nil {
		panic("the chance that came with the input is not fresh")
	}
	t.fact("", id, &taskCreated{
		ID: id, Name: r.Name, Type: r.Type, Description: r.Description, Payload: r.Payload,
		RequiredRole: r.RequiredRole, RequiredCapabilities: r.RequiredCapabilities,
		Dependencies: r.Dependencies, Priority: r.Priority, Request: t.mark(),
	})
	for _, d := range vain {
		t.fact("", id, &taskBlocked{ID: id, Name: r.Name, Upstream: d})
	}
	return reply(t.tasks[id]), nil
}

// dependencies checks what a task is to depend on. Those that have come to
// nothing are vain: they are refused, or only said, as the rule is. There is no
// look for circles, for there cannot be any: a task depends on older ones alone.
func (t *turn) dependencies(ids []string) (vain []string, err *wire.Error) {
	for i, id := range ids {
		d := t.tasks[id]
		if d == nil {
			return nil, &wire.Error{
				Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no task %q to depend on", id),
				Details: map[string]any{"taskId": id, "pointer": fmt.Sprintf("/payload/dependencies/%d", i)},
			}
		}
		if !d.view.State.Final() || d.view.State == wire.TaskDone {
			continue
		}
		if t.cancelsDependents() {
			return nil, &wire.Error{ // without its name: it may be another agent's
				Code:    wire.CodeConflict,
				Message: fmt.Sprintf("task %s is %s: what depends on it would never run", id, d.view.State),
				Details: map[string]any{"taskId": id, "reason": "dependency_failed", "pointer": fmt.Sprintf("/payload/dependencies/%d", i)},
			}
		}
		vain = append(vain, id)
	}
	return vain, nil
}

// uuid is the id that this turn's chance makes (RFC 9562, version 4).
func (t *turn) uuid() string {
	b := t.random
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := make([]byte, 0, 36)
	for _, part := range [][]byte{b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if len(id) > 0 {
			id = append(id, '-')
		}
		id = hex.AppendEncode(id, part)
	}
	return string(id)
}

func startTask(t *turn, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := t.own(r.TaskID)
	if err != nil {
		return nil, err
	}
	held := k.view.AssignedTo == t.from.Name && t.from.Kind == Agent
	switch {
	case k.view.State == wire.TaskRunning && held: // told so already
		return reply(k), nil
	case k.view.State == wire.TaskPending && k.open > 0:
		return nil, t.waits(k)
	case k.view.State == wire.TaskPending && t.from.Kind == Agent:
		a := t.agents[t.from.Name]
		if len(a.holds) >= a.Capacity {
			return nil, hasEnough(a)
		}
		t.take(k, a)
	case k.view.State == wire.TaskPending:
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has no agent that could work on it", label(k.view.ID, k.view.Name)),
			Details: map[string]any{"taskId": k.view.ID, "reason": "unassigned"},
		}
	case k.view.State != wire.TaskAssigned:
		return nil, wrongState(k, "started")
	case !k.heldBy(t.from):
		return nil, notHolder(k)
	}
	t.start(k, t.mark())
	return reply(k), nil
}

// waits refuses to start what waits for others.
func (t *turn) waits(k *task) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s waits for others", label(k.view.ID, k.view.Name)),
		Details: map[string]any{"taskId": k.view.ID, "reason": "blocked", "waitsFor": t.waitsFor(k)},
	}
}

// hasEnough refuses an agent that would take one of its own tasks and has as
// many as it may.
func hasEnough(a *agent) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("you have as many tasks as you may have at a time (%d)", a.Capacity),
		Details: map[string]any{"reason": "at_capacity", "capacity": a.Capacity, "taskIds": ids(a.holds)},
	}
}

func notHolder(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("only the agent that has task %s may say that", label(k.view.ID, k.view.Name)),
		Details: map[string]any{"taskId": k.view.ID},
	}
}

func (t *turn) start(k *task, mk *mark) {
	t.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskStarted{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Request: mk})
}

// working finds a task that the caller may say something of. One that is
// assigned counts as started: the agent was quicker than our note that it was
// told.
func (t *turn) working(id, verb string) (*task, *wire.Error) {
	k, err := t.own(id)
	switch {
	case err != nil:
		return nil, err
	case k.view.State == wire.TaskPending:
		return nil, wrongState(k, verb)
	case !k.heldBy(t.from):
		return nil, notHolder(k)
	case k.view.State == wire.TaskAssigned:
		t.start(k, nil)
	case k.view.State != wire.TaskRunning:
		return nil, wrongState(k, verb)
	}
	return k, nil
}

// succeeded is the result of a task that nobody gave a result.
var succeeded = wire.Raw(`{"success":true}`)

func completeTask(t *turn, r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.working(r.TaskID, "completed")
	if err != nil {
		return nil, err
	}
	result := r.Result
	if result == nil {
		result = succeeded
	}
	t.complete(k, result, t.mark())
	t.relieve(k, "Completed by ")
	return reply(k), nil
}

func (t *turn) complete(k *task, result wire.Raw, mk *mark) {
	t.fact("", k.view.ID, &taskDone{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Result: result, Request: mk})
}

func failTask(t *turn, r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.working(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	t.fail(k, r.Error, "", t.mark())
	t.relieve(k, "Failed by ")
	return reply(k), nil
}

func (t *turn) fail(k *task, why, stack string, mk *mark) {
	waiting := k.waiting()
	t.fact("", k.view.ID, &taskFailed{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Error: why, Stack: stack, Request: mk,
	})
	t.abandon(k, waiting)
}

func cancelTask(t *turn, r *wire.CancelTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.own(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case t.from.Kind == Agent && k.view.SubmittedBy != t.from.String():
		refusal := &wire.Error{
			Code: wire.CodeDenied, Message: "only who submitted a task may cancel it",
			Details: map[string]any{"taskId": k.view.ID}, Hint: "if you cannot do it, say so with fail-task",
		}
		return nil, refusal
	case k.view.State.Final():
		return nil, wrongState(k, "cancelled")
	}
	reason := r.Reason
	if reason == "" {
		reason = "Cancelled by " + t.from.String()
	}
	t.cancel(k, reason, t.mark())
	return reply(k), nil
}

// cancel ends a task, tells its agent, and sees to what depended on it.
func (t *turn) cancel(k *task, reason string, mk *mark) {
	waiting, holder, run := k.waiting(), k.view.AssignedTo, k.run
	t.fact("", k.view.ID, &taskCancelled{ID: k.view.ID, Name: k.view.Name, Agent: holder, Reason: reason, Request: mk})
	if holder != "" {
		t.recall(k, holder, run, reason)
	}
	t.abandon(k, waiting)
}

// relieve tells the agent of a task that somebody else has said its end.
func (t *turn) relieve(k *task, by string) {
	if t.from.Kind != Agent {
		t.recall(k, k.view.AssignedTo, k.run, by+t.from.String())
	}
}

// recall tells an agent that it need not work on a task any more.
func (t *turn) recall(k *task, holder, run, reason string) {
	t.notice(Actor{Kind: Agent, Name: holder, Run: run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: k.view.ID, Reason: reason})
}

// abandon sees to the tasks that waited for one that will never be done: they
// are cancelled too, and what waits for them; or they stay, and it is said. It
// is the orchestrator that does this, whoever ended the first one.
func (t *turn) abandon(upstream *task, waiting []*task) {
	defer func(from Actor) { t.from = from }(t.from)
	t.from = Actor{}
	for len(waiting) > 0 {
		k := waiting[0]
		waiting = waiting[1:]
		if k.view.State.Final() {
			continue
		}
		if !t.cancelsDependents() {
			t.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: upstream.view.ID})
			continue
		}
		waiting = append(waiting, k.waiting()...)
		t.fact("", k.view.ID, &taskCancelled{ID: k.view.ID, Name: k.view.Name, Reason: wire.DependencyFailed})
	}
}

// cancelsDependents is the rule of tasks that were submitted by this protocol:
// without a rule of the file's they are cancelled.
func (s *State) cancelsDependents() bool { return s.rules.OnDependencyFailure != "block" }
