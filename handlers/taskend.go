package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// complete ends a task with success. All consequences are decided in the same turn, so that they
// cannot be decided twice. In this order: its contracts are checked, its dependents are resolved,
// and free dependents are unblocked. Unblocked tasks with requirements are assigned, and the end is
// announced.
func (td taskDecision) complete(t *state.Task, result *hub.Result, e end) {
	td.questions().endPermissions(t)
	before := len(td.out.Records)
	td.fact("", t.View.ID, &state.TaskDone{
		ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Result: result.Document, Plain: e.responded, Artifacts: e.artifacts,
		Merges: td.state.Rules.MergeQueue && t.Workspace() != nil, Request: e.request, Read: result, Mailed: e.mailed,
	})
	if !e.inSession {
		td.works().tellEnd(t, session.OutcomeCompleted, "Completed by "+td.from.String())
	}
	for _, o := range result.Oddities {
		td.odd(t, o)
	}
	td.checkScope(t, result)
	td.links().checkContracts(t, result)
	resolved, unblocked := td.links().resolve(t)
	td.links().unblock(unblocked)
	if len(td.out.Records) > before+1 {
		td.announcements = append(td.announcements, &state.TaskAnnounced{
			ID: t.View.ID, Name: t.View.Name, State: t.View.State, Resolved: resolved, Unblocked: len(unblocked),
		})
	}
	if !e.responded {
		td.delegations().respondFor(t, &delegation.Response{Result: result.Document, Artifacts: state.MadeOf(e.artifacts)})
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
func (td taskDecision) checkScope(t *state.Task, result *hub.Result) {
	if t.Extra == nil || t.Extra.MaxFiles == 0 || int64(result.Files) <= t.Extra.MaxFiles {
		return
	}
	td.odd(t, hub.Oddity{
		Kind: events.DocumentOdd, Pointer: "/result/changes",
		Text: "more files are touched than constraints.max_files_changed allows; it is accepted",
	})
}

// checkContracts records whether each contract that is promised, delivered or needed is in the
// result. The task is done in any case.
//
// A skipped contract counts as missing if it was required, although its data are delivered. A
// missing optional contract is recorded only if a task needs it.
func (ld linkDecision) checkContracts(t *state.Task, result *hub.Result) {
	said := make(map[string]bool)
	miss := func(key, status, reason string) {
		if !said[key] {
			said[key] = true
			ld.fact("", t.View.ID, &state.ContractSeen{What: events.ContractMissing, ID: t.View.ID, Name: t.View.Name, Key: key, Status: status, Reason: reason})
		}
	}
	required := make(map[string]bool)
	if result.Structured && t.Extra != nil {
		for _, p := range t.Extra.Promises {
			required[p.Key] = p.Required
		}
	}
	delivered := make(map[string]bool)
	for _, c := range result.Contracts {
		delivered[c.Key] = true
		switch {
		case c.Status != hub.ContractSkipped:
			ld.fact("", t.View.ID, &state.ContractSeen{What: events.ContractFulfilled, ID: t.View.ID, Name: t.View.Name, Key: c.Key, Status: c.Status})
		case required[c.Key]:
			miss(c.Key, c.Status, c.Reason)
		}
	}
	if result.Structured && t.Extra != nil {
		for _, p := range t.Extra.Promises {
			if p.Required && !delivered[p.Key] {
				miss(p.Key, "", "")
			}
		}
	}
	for e := range ld.state.Tasks.Graph.Waiting(t.Node) {
		if v := ld.state.Tasks.Graph.Edge(e); v.Kind == graph.Input && !v.Resolved && !delivered[v.Key] {
			miss(v.Key, "", "")
		}
	}
}

// missLate records the contracts that a task needs and that tasks which are already done did not
// deliver.
func (ld linkDecision) missLate(t *state.Task, needs []hub.Dependency) {
	for _, d := range needs {
		on := ld.state.Tasks.ByID[d.On]
		if d.Type == hub.DependsInput && on.View.State == wire.TaskDone && on.Delivery(d.Contract) == nil {
			ld.fact("", on.View.ID, &state.ContractSeen{
				What: events.ContractMissing, ID: on.View.ID, Name: on.View.Name, Key: d.Contract, NeededBy: t.View.ID,
			})
		}
	}
}

// maxResolved is the maximum number of dependencies that one record resolves.
const maxResolved = 1000

// resolve resolves the dependencies on a task that is done. It returns their number, and the tasks
// without further dependencies.
func (ld linkDecision) resolve(t *state.Task) (count int, unblocked []*state.Task) {
	var waiting []state.Resolved
	record := func() {
		if len(waiting) > 0 {
			ld.fact("", t.View.ID, &state.DependencyResolved{ID: t.View.ID, Name: t.View.Name, Waiting: waiting})
			count += len(waiting)
			waiting = nil
		}
	}
	var held []*state.Task // that were held back until now, each once
	for e := range ld.state.Tasks.Graph.Waiting(t.Node) {
		v := ld.state.Tasks.Graph.Edge(e)
		if v.Resolved || !t.HandsOver() && v.Kind != graph.Soft {
			continue
		}
		down := ld.state.Tasks.Nodes[v.Down]
		if v.Kind == graph.Soft {
			ld.works().offerSoft(t, down)
		}
		waiting = append(waiting, state.Resolved{ID: down.View.ID, Number: v.Number})
		if state.Gates(v.Kind) && !down.View.State.Final() && (len(held) == 0 || held[len(held)-1] != down) {
			held = append(held, down)
		}
		if len(waiting) == maxResolved {
			record()
		}
	}
	record()
	for _, down := range held {
		if ld.state.Tasks.Graph.Open(down.Node) == 0 {
			unblocked = append(unblocked, down)
		}
	}
	return count, state.Distinct(unblocked)
}

// unblock records that tasks are free of dependencies, and assigns the tasks with requirements.
func (ld linkDecision) unblock(tasks []*state.Task) {
	ld = ld.own.links() // the orchestrator decides, not the caller
	for _, t := range tasks {
		ld.fact("", t.View.ID, &state.TaskUnblocked{ID: t.View.ID, Name: t.View.Name})
	}
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, queue.Compare)
	for _, t := range tasks {
		switch {
		case t.Work() != nil:
			ld.works().release(t.Work())
		case t.Delegation() != nil:
			ld.state.Delegations.RecheckCapacity(ld.state.Agents.ByID[t.View.AssignedTo])
		case t.View.State == wire.TaskAssigned:
			ld.tasks().tellAssigned(ld.state.Agents.ByID[t.View.AssignedTo], t)
		case ld.tasks().free(t):
			ld.tasks().place(t, match.Conditions{Online: ld.state.Rules.OnlineOnly})
		}
	}
}

func (td taskDecision) cancelTask(r *wire.CancelTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case t.View.State.Final():
		return nil, wrongState(t, "cancelled")
	}
	if err := td.mayManage(t, "cancel"); err != nil {
		return nil, err
	}
	if td.request.Form == dialect.TaskAct && t.Delegation() == nil {
		return nil, errNotDelegated(t) // the caller would get no response
	}
	td.cancel(t, cmp.Or(r.Reason, "Cancelled by "+td.from.String()), end{request: td.mark()})
	if t.View.SubmittedBy != td.from.String() {
		td.tellSubmitter(t, t.View.Reason)
	}
	td.links().abandon(t, "")
	if td.request.Form == dialect.TaskAct {
		return nil, nil // the response notifies the caller
	}
	return td.replyWith(t), nil
}

// cancel cancels a task and notifies its agent. abandon handles its dependents.
func (td taskDecision) cancel(t *state.Task, reason string, e end) {
	holder, run, parts := t.View.AssignedTo, t.Run, t.Parts()
	td.questions().cancelQuestions(t)
	td.questions().endPermissions(t)
	td.reviews().recallReview(t.Work(), reason, e.quiet)
	td.fact("", t.View.ID, &state.TaskCancelled{ID: t.View.ID, Name: t.View.Name, Agent: holder, Reason: reason, Request: e.request})
	if holder != "" && holder != e.quiet {
		td.recall(t, holder, run, reason)
	}
	if !e.inSession {
		td.works().tellEnd(t, session.OutcomeFailed, "Cancelled: "+reason)
	}
	if !e.responded {
		td.delegations().respondFor(t, new(delegation.Response))
	}
	td.delegations().cancelParts(parts, e.quiet)
}

// notifyHolder notifies the agent of a task that another actor has ended it.
func (td taskDecision) notifyHolder(t *state.Task, by string) {
	if td.from.Kind != Agent || t.View.AssignedTo != td.from.Name {
		td.recall(t, t.View.AssignedTo, t.Run, by+td.from.String())
	}
}

// tellSubmitter notifies the agent that submitted a task that another actor has cancelled it. Other
// agents get a different notice: the agent that has the task by recall, a delegator by a response,
// and an architect by its session.
func (td taskDecision) tellSubmitter(t *state.Task, reason string) {
	a := td.state.Agents.ByID[state.AgentOf(t.View.SubmittedBy)]
	if a == nil || a.Remote != nil || a.Run == "" || a.ID == t.View.AssignedTo || t.Delegation() != nil || t.Work() != nil || td.starts {
		return
	}
	td.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.Run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: t.View.ID, Reason: reason})
}

// recall notifies an agent that a task was ended. The notice is sent once. If the agent misses
// it, its later reports about the task are ignored.
func (td taskDecision) recall(t *state.Task, holder, run, reason string) {
	if a := td.state.Agents.ByID[holder]; a == nil || td.starts || a.Remote != nil {
		return // a server is not notified: it polls
	}
	if d := t.Delegation(); d != nil {
		if a := td.state.Agents.ByID[holder]; d.Out == a.Run && a.Reachable() {
			cancel := &state.TaskActed{ID: t.View.ID, Act: delegation.ActCancel, Reason: reason}
			td.out.Letters = append(td.out.Letters, Letter{To: Actor{Kind: Agent, Name: holder, Run: a.Run}, Line: cancel.Line()})
		}
		return
	}
	td.out.notice(Actor{Kind: Agent, Name: holder, Run: run}, wire.NoticeCancelled, "", &wire.TaskNotice{TaskID: t.View.ID, Reason: reason})
}

// abandon handles the tasks that depend on one that will never be done. They are cancelled with
// their own dependents, or stay pending with a warning. The orchestrator is recorded as the
// cause, and the agent quiet is not notified.
func (ld linkDecision) abandon(ended *state.Task, quiet string) {
	ld = ld.own.links()
	for queue := []*state.Task{ended}; len(queue) > 0; queue = queue[1:] {
		ld.resolve(queue[0]) // soft dependencies
		for _, t := range ld.state.Tasks.Waiting(queue[0]) {
			if t.View.State.Final() {
				continue // it was cancelled with the parts of one before it
			}
			if ld.state.Rules.StaysBlocked(t.Patient()) {
				ld.fact("", t.View.ID, &state.TaskBlocked{ID: t.View.ID, Name: t.View.Name, Upstream: queue[0].View.ID})
				if w := t.Work(); w != nil {
					ld.works().tellArchitect(w, "It will not run: its dependency "+queue[0].Label()+" did not succeed")
				}
				continue
			}
			ld.tasks().cancel(t, wire.DependencyFailed, end{quiet: quiet})
			if state.AgentOf(t.View.SubmittedBy) != quiet {
				ld.tasks().tellSubmitter(t, wire.DependencyFailed)
			}
			queue = append(queue, t)
		}
	}
}
