package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// complete ends a task with success. All consequences are decided in the same turn, so that they
// cannot be decided twice. In this order: its contracts are checked, its dependents are
// resolved, and those that are free are unblocked. Unblocked tasks with requirements are
// assigned, and the end is announced.
func (td taskDecision) complete(k *task, result *hub.Result, e end) {
	td.questions().endPermissions(k)
	before := len(td.out.Records)
	td.fact("", k.view.ID, &taskDone{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Result: result.Document, Plain: e.responded, Artifacts: e.artifacts,
		Merges: td.state.rules.MergeQueue && k.workspace() != nil, Request: e.request, read: result, mailed: e.mailed,
	})
	if !e.inSession {
		td.works().tellEnd(k, session.OutcomeCompleted, "Completed by "+td.from.String())
	}
	for _, o := range result.Oddities {
		td.odd(k, o)
	}
	td.checkScope(k, result)
	td.links().checkContracts(k, result)
	resolved, unblocked := td.links().resolve(k)
	td.links().unblock(unblocked)
	if len(td.out.Records) > before+1 {
		td.announcements = append(td.announcements, &taskAnnounced{
			ID: k.view.ID, Name: k.view.Name, State: k.view.State, Resolved: resolved, Unblocked: len(unblocked),
		})
	}
	if !e.responded {
		td.delegations().respondFor(k, &delegation.Response{Result: result.Document, Artifacts: madeOf(e.artifacts)})
	}
}

// announce ends a turn by recording that the consequences of each ended task are complete.
func (td taskDecision) announce() {
	for _, f := range td.announcements {
		td.own.fact("", f.ID, f)
	}
	td.announcements = td.announcements[:0]
}

// checkScope warns if a result touches more files than the spec allows.
func (td taskDecision) checkScope(k *task, result *hub.Result) {
	if k.more == nil || k.more.maxFiles == 0 || int64(result.Files) <= k.more.maxFiles {
		return
	}
	td.odd(k, hub.Oddity{
		Kind: events.DocumentOdd, Pointer: "/result/changes",
		Text: "more files are touched than constraints.max_files_changed allows; it is accepted",
	})
}

// checkContracts records whether each contract that is promised, delivered or needed is in the
// result. The task is done in any case.
//
// A skipped contract counts as missing if it was required, although its data are delivered. A
// missing optional contract is recorded only if a task needs it.
func (ld linkDecision) checkContracts(k *task, result *hub.Result) {
	said := make(map[string]bool)
	miss := func(key, status, reason string) {
		if !said[key] {
			said[key] = true
			ld.fact("", k.view.ID, &contractSeen{what: events.ContractMissing, ID: k.view.ID, Name: k.view.Name, Key: key, Status: status, Reason: reason})
		}
	}
	required := make(map[string]bool)
	if result.Structured && k.more != nil {
		for _, p := range k.more.promises {
			required[p.Key] = p.Required
		}
	}
	delivered := make(map[string]bool)
	for _, c := range result.Contracts {
		delivered[c.Key] = true
		switch {
		case c.Status != hub.ContractSkipped:
			ld.fact("", k.view.ID, &contractSeen{what: events.ContractFulfilled, ID: k.view.ID, Name: k.view.Name, Key: c.Key, Status: c.Status})
		case required[c.Key]:
			miss(c.Key, c.Status, c.Reason)
		}
	}
	if result.Structured && k.more != nil {
		for _, p := range k.more.promises {
			if p.Required && !delivered[p.Key] {
				miss(p.Key, "", "")
			}
		}
	}
	for e := range ld.state.tasks.graph.Waiting(k.node) {
		if v := ld.state.tasks.graph.Edge(e); v.Kind == graph.Input && !v.Resolved && !delivered[v.Key] {
			miss(v.Key, "", "")
		}
	}
}

// missLate records the contracts that a task needs and that tasks which are already done did not
// deliver.
func (ld linkDecision) missLate(k *task, needs []hub.Dependency) {
	for _, d := range needs {
		on := ld.state.tasks.byID[d.On]
		if d.Type == hub.DependsInput && on.view.State == wire.TaskDone && on.delivery(d.Contract) == nil {
			ld.fact("", on.view.ID, &contractSeen{
				what: events.ContractMissing, ID: on.view.ID, Name: on.view.Name, Key: d.Contract, NeededBy: k.view.ID,
			})
		}
	}
}

// maxResolved is the maximum number of dependencies that one record resolves.
const maxResolved = 1000

// resolve resolves the dependencies on a task that is done. It returns their number, and the
// tasks that wait for nothing else.
func (ld linkDecision) resolve(k *task) (count int, unblocked []*task) {
	var waiting []resolved
	record := func() {
		if len(waiting) > 0 {
			ld.fact("", k.view.ID, &dependencyResolved{ID: k.view.ID, Name: k.view.Name, Waiting: waiting})
			count += len(waiting)
			waiting = nil
		}
	}
	var held []*task // that were held back until now, each once
	for e := range ld.state.tasks.graph.Waiting(k.node) {
		v := ld.state.tasks.graph.Edge(e)
		if v.Resolved || !k.handsOver() && v.Kind != graph.Soft {
			continue
		}
		down := ld.state.tasks.nodes[v.Down]
		if v.Kind == graph.Soft {
			ld.works().offerSoft(k, down)
		}
		waiting = append(waiting, resolved{ID: down.view.ID, Number: v.Number})
		if gates(v.Kind) && !down.view.State.Final() && (len(held) == 0 || held[len(held)-1] != down) {
			held = append(held, down)
		}
		if len(waiting) == maxResolved {
			record()
		}
	}
	record()
	for _, down := range held {
		if ld.state.tasks.graph.Open(down.node) == 0 {
			unblocked = append(unblocked, down)
		}
	}
	return count, distinct(unblocked)
}

// unblock records that tasks wait for nothing any more, and assigns those with requirements.
func (ld linkDecision) unblock(tasks []*task) {
	ld = ld.own.links() // the orchestrator decides, not the caller
	for _, k := range tasks {
		ld.fact("", k.view.ID, &taskUnblocked{ID: k.view.ID, Name: k.view.Name})
	}
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, queue.Compare)
	for _, k := range tasks {
		switch {
		case k.work() != nil:
			ld.works().release(k.work())
		case k.delegation() != nil:
			ld.state.delegations.recheckCapacity(ld.state.agents.byID[k.view.AssignedTo])
		case k.view.State == wire.TaskAssigned:
			ld.tasks().tellAssigned(ld.state.agents.byID[k.view.AssignedTo], k)
		case ld.tasks().free(k):
			ld.tasks().place(k, match.Conditions{Online: ld.state.rules.OnlineOnly})
		}
	}
}

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
	td.cancel(k, cmp.Or(r.Reason, "Cancelled by "+td.from.String()), end{request: td.mark()})
	if k.view.SubmittedBy != td.from.String() {
		td.tellSubmitter(k, k.view.Reason)
	}
	td.links().abandon(k, "")
	if td.request.Form == wire.DialectTaskAct {
		return nil, nil // the response notifies the caller
	}
	return td.replyWith(k), nil
}

// cancel cancels a task and notifies its agent. abandon handles its dependents.
func (td taskDecision) cancel(k *task, reason string, e end) {
	holder, run, parts := k.view.AssignedTo, k.run, k.parts()
	td.questions().cancelQuestions(k)
	td.questions().endPermissions(k)
	td.reviews().recallReview(k.work(), reason, e.quiet)
	td.fact("", k.view.ID, &taskCancelled{ID: k.view.ID, Name: k.view.Name, Agent: holder, Reason: reason, Request: e.request})
	if holder != "" && holder != e.quiet {
		td.recall(k, holder, run, reason)
	}
	if !e.inSession {
		td.works().tellEnd(k, session.OutcomeFailed, "Cancelled: "+reason)
	}
	if !e.responded {
		td.delegations().respondFor(k, new(delegation.Response))
	}
	td.delegations().cancelParts(parts, e.quiet)
}

// relieve notifies the agent of a task that another actor has ended it.
func (td taskDecision) relieve(k *task, by string) {
	if td.from.Kind != Agent || k.view.AssignedTo != td.from.Name {
		td.recall(k, k.view.AssignedTo, k.run, by+td.from.String())
	}
}

// tellSubmitter notifies the agent that submitted a task that the orchestrator or somebody else has cancelled it.
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
	ld = ld.own.links()
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
		if down := t.nodes[v.Down]; gates(v.Kind) && !v.Resolved && !down.view.State.Final() {
			waiting = append(waiting, down)
		}
	}
	return distinct(waiting)
}

// distinct removes repeated tasks, in place.
func distinct(all []*task) []*task {
	kept := all[:0]
	for _, k := range all {
		if !k.counted {
			k.counted = true
			kept = append(kept, k)
		}
	}
	for _, k := range kept {
		k.counted = false
	}
	return kept
}
