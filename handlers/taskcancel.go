package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/session"
)

func cancelTask(t *decision, r *wire.CancelTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case k.view.State.Final():
		return nil, wrongState(k, "cancelled")
	}
	if err := t.mayManage(k, "cancel"); err != nil {
		return nil, err
	}
	if t.request.Form == wire.DialectTaskAct && k.delegation() == nil {
		return nil, errNotDelegated(k) // the caller would get no response
	}
	reason := r.Reason
	if reason == "" {
		reason = "Cancelled by " + t.from.String()
	}
	t.cancel(k, reason, t.mark())
	t.abandon(k)
	if t.request.Form == wire.DialectTaskAct {
		return nil, nil // the response notifies the caller
	}
	return t.state.tasks.reply(k), nil
}

// cancel cancels a task and notifies its agent. abandon handles its dependents.
func (t *decision) cancel(k *task, reason string, mk *requestKey) {
	holder, run, parts := k.view.AssignedTo, k.run, k.parts()
	t.cancelQuestions(k)
	t.recallReview(k.work(), reason)
	t.fact("", k.view.ID, &taskCancelled{ID: k.view.ID, Name: k.view.Name, Agent: holder, Reason: reason, Request: mk})
	if holder != "" {
		t.recall(k, holder, run, reason)
	}
	t.tellEnd(k, session.OutcomeFailed, "Cancelled: "+reason)
	t.respondFor(k, nil, nil)
	t.cancelParts(parts)
}

// relieve notifies the agent of a task that another actor has ended it.
func (t *decision) relieve(k *task, by string) {
	if t.from.Kind != Agent || k.view.AssignedTo != t.from.Name {
		t.recall(k, k.view.AssignedTo, k.run, by+t.from.String())
	}
}

// tellSubmitter notifies the agent that submitted a task that the orchestrator has cancelled it.
// Others are notified in another way: the agent that has the task by recall, a delegator by a
// response, and an architect by its session.
func (t *decision) tellSubmitter(k *task, reason string) {
	a := t.state.agents.byID[agentOf(k.view.SubmittedBy)]
	if a == nil || a.remote != nil || a.run == "" || a.ID == k.view.AssignedTo || a.ID == t.hushed || k.delegation() != nil || k.work() != nil || t.lost {
		return
	}
	t.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: k.view.ID, Reason: reason})
}

// recall notifies an agent that a task was ended. The notice is sent once. If the agent misses
// it, its later reports about the task are ignored.
func (t *decision) recall(k *task, holder, run, reason string) {
	if a := t.state.agents.byID[holder]; a == nil || t.lost || a.remote != nil || holder == t.hushed {
		return // a server is not notified: it polls
	}
	if d := k.delegation(); d != nil {
		if a := t.state.agents.byID[holder]; d.out == a.run && a.reachable() {
			cancel := &taskActed{ID: k.view.ID, Act: delegation.ActCancel, Reason: reason}
			t.out.Letters = append(t.out.Letters, Letter{To: Actor{Kind: Agent, Name: holder, Run: a.run}, Line: cancel.line()})
		}
		return
	}
	t.out.notice(Actor{Kind: Agent, Name: holder, Run: run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: k.view.ID, Reason: reason})
}

// abandon handles the tasks that depend on one that will never be done. They are cancelled with
// their own dependents, or stay pending with a warning. The orchestrator is recorded as the
// cause.
func (t *decision) abandon(ended *task) {
	defer func(from Actor, bySession bool) { t.from, t.bySession = from, bySession }(t.from, t.bySession)
	t.from, t.bySession = Actor{}, false
	for queue := []*task{ended}; len(queue) > 0; queue = queue[1:] {
		t.resolve(queue[0]) // soft dependencies
		for _, k := range t.state.tasks.waiting(queue[0]) {
			if t.state.rules.staysBlocked(k.patient()) {
				t.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: queue[0].view.ID})
				if w := k.work(); w != nil {
					t.tellArchitect(w, "It will not run: it waits for "+queue[0].label()+", which came to nothing")
				}
				continue
			}
			t.cancel(k, wire.DependencyFailed, nil)
			t.tellSubmitter(k, wire.DependencyFailed)
			queue = append(queue, k)
		}
	}
}

// waiting returns the open tasks that wait for a task, without duplicates.
func (t *tasks) waiting(k *task) []*task {
	var waiting []*task
	for e := range t.graph.Waiting(k.node) {
		v := t.graph.Edge(e)
		if down := t.list[v.Down]; gates(v.Kind) && !v.Resolved && !down.view.State.Final() && !down.freed {
			down.freed = true
			waiting = append(waiting, down)
		}
	}
	for _, down := range waiting {
		down.freed = false
	}
	return waiting
}
