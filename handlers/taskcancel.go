package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/session"
)

func cancelTask(td taskDecision, r *wire.CancelTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case k.view.State.Final():
		return nil, wrongState(k, "cancelled")
	}
	if err := td.mayManage(k, "cancel"); err != nil {
		return nil, err
	}
	if td.request.Form == wire.DialectTaskAct && k.delegation() == nil {
		return nil, errNotDelegated(k) // the caller would get no response
	}
	reason := r.Reason
	if reason == "" {
		reason = "Cancelled by " + td.from.String()
	}
	td.cancel(k, reason, end{request: td.mark()})
	td.links().abandon(k, "")
	if td.request.Form == wire.DialectTaskAct {
		return nil, nil // the response notifies the caller
	}
	return td.state.tasks.reply(k), nil
}

// cancel cancels a task and notifies its agent. abandon handles its dependents.
func (td taskDecision) cancel(k *task, reason string, e end) {
	holder, run, parts := k.view.AssignedTo, k.run, k.parts()
	td.questions().cancelQuestions(k)
	td.reviews().recallReview(k.work(), reason, e.quiet)
	td.fact("", k.view.ID, &taskCancelled{ID: k.view.ID, Name: k.view.Name, Agent: holder, Reason: reason, Request: e.request})
	if holder != "" && holder != e.quiet {
		td.recall(k, holder, run, reason)
	}
	if !e.inSession {
		td.works().tellEnd(k, session.OutcomeFailed, "Cancelled: "+reason)
	}
	if !e.responded {
		td.delegations().respondFor(k, nil, nil)
	}
	td.delegations().cancelParts(parts, e.quiet)
}

// relieve notifies the agent of a task that another actor has ended it.
func (td taskDecision) relieve(k *task, by string) {
	if td.from.Kind != Agent || k.view.AssignedTo != td.from.Name {
		td.recall(k, k.view.AssignedTo, k.run, by+td.from.String())
	}
}

// tellSubmitter notifies the agent that submitted a task that the orchestrator has cancelled it.
// Others are notified in another way: the agent that has the task by recall, a delegator by a
// response, and an architect by its session.
func (td taskDecision) tellSubmitter(k *task, reason string) {
	a := td.state.agents.byID[agentOf(k.view.SubmittedBy)]
	if a == nil || a.remote != nil || a.run == "" || a.ID == k.view.AssignedTo || k.delegation() != nil || k.work() != nil || td.starts {
		return
	}
	td.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: k.view.ID, Reason: reason})
}

// recall notifies an agent that a task was ended. The notice is sent once. If the agent misses
// it, its later reports about the task are ignored.
func (td taskDecision) recall(k *task, holder, run, reason string) {
	if a := td.state.agents.byID[holder]; a == nil || td.starts || a.remote != nil {
		return // a server is not notified: it polls
	}
	if d := k.delegation(); d != nil {
		if a := td.state.agents.byID[holder]; d.out == a.run && a.reachable() {
			cancel := &taskActed{ID: k.view.ID, Act: delegation.ActCancel, Reason: reason}
			td.out.Letters = append(td.out.Letters, Letter{To: Actor{Kind: Agent, Name: holder, Run: a.run}, Line: cancel.Line()})
		}
		return
	}
	td.out.notice(Actor{Kind: Agent, Name: holder, Run: run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: k.view.ID, Reason: reason})
}

// abandon handles the tasks that depend on one that will never be done. They are cancelled with
// their own dependents, or stay pending with a warning. The orchestrator is recorded as the
// cause, and the agent quiet is not notified.
func (ld linkDecision) abandon(ended *task, quiet string) {
	defer func(from Actor) { ld.from = from }(ld.from)
	ld.from = Actor{}
	for queue := []*task{ended}; len(queue) > 0; queue = queue[1:] {
		ld.resolve(queue[0]) // soft dependencies
		for _, k := range ld.state.tasks.waiting(queue[0]) {
			if ld.state.rules.staysBlocked(k.patient()) {
				ld.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: queue[0].view.ID})
				if w := k.work(); w != nil {
					ld.works().tellArchitect(w, "It will not run: it waits for "+queue[0].label()+", which came to nothing")
				}
				continue
			}
			ld.tasks().cancel(k, wire.DependencyFailed, end{quiet: quiet})
			if agentOf(k.view.SubmittedBy) != quiet {
				ld.tasks().tellSubmitter(k, wire.DependencyFailed)
			}
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
