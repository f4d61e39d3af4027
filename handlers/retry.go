package handlers

import (
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// triedOut reports whether a task has had as many attempts as it may have.
func (td taskDecision) triedOut(k *state.Task) bool {
	return k.View.Attempts-k.AttemptsSpent() >= td.state.Rules.MaxAttempts
}

// retryTask tries a task again for who submitted it or manages it, at every door.
func (td taskDecision) retryTask(r *wire.RetryTask) (*wire.TaskReply, *wire.Error) {
	manager := td.from
	manager.ActsForOthers = true
	managing := td.by(manager).tasks()
	k, err := managing.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := managing.mayManage(k, "retry"); err != nil {
		return nil, err
	}
	if err := td.mayReopen(k); err != nil {
		return nil, err
	}
	var to *state.KnownAgent
	if r.Agent != "" {
		if to = td.state.Agents.AgentNamed(r.Agent); to == nil {
			return nil, noAgent(r.Agent)
		}
	}
	answer := td.reopen(k, to, r.Keep, td.mark())
	if r.Dependents == nil || *r.Dependents {
		td.reopenDependents(k, r.Keep)
	}
	return answer, nil
}

// mayReopen returns why a task cannot be tried again.
func (td taskDecision) mayReopen(k *state.Task) *wire.Error {
	switch {
	case !k.CameToNothing():
		err := wrongState(k, "tried again")
		if k.View.State == wire.TaskDone {
			err.Hint = "only a failed or cancelled task can be tried again: submit a new task for the rest"
		}
		return err
	case k.Delegation() != nil:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "delegated"},
			"the agent that delegated task %s has its response: it can send the request again", k.Label())
	case k.Work() != nil || k.View.Details != nil && td.state.Sessions.ByID[k.View.Details.SessionID] != nil:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "in_session"},
			"task %s belongs to a session: its architect can assign it again there", k.Label())
	case k.Stub: // also after a recall
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "too_old"},
			"task %s ended too long ago to be tried again: submit a new task", k.Label())
	}
	first := k
	for up := td.lostNeed(k); up != nil; up = td.lostNeed(up) {
		first = up
	}
	if first != k {
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "waitsFor": first.View.ID, "reason": "dependency_failed"},
			"task %s needs task %s, which is %s: retry that task, and this one comes back with it", k.Label(), first.Label(), first.View.State)
	}
	return nil
}

// lostNeed returns a failed or cancelled task that another task needs, or nil.
func (td taskDecision) lostNeed(k *state.Task) *state.Task {
	for e := range td.state.Tasks.Graph.Needs(k.Node) {
		v := td.state.Tasks.Graph.Edge(e)
		up := td.state.Tasks.Nodes[v.Up]
		if state.Gates(v.Kind) && !v.Resolved && up.CameToNothing() && !td.state.Rules.StaysBlocked(k.Patient()) {
			return up
		}
	}
	return nil
}

// reopen makes an ended task pending, and gives it to an agent. Without one, a task that no agent would be matched
// with goes to the agent that had it. reopen returns the answer to the request, as a repeat of that gets it.
func (td taskDecision) reopen(k *state.Task, to *state.KnownAgent, keep bool, mk *state.RequestKey) *wire.TaskReply {
	if to == nil && !k.Asks() && k.Wants() == nil {
		to = td.state.Agents.ByID[k.View.AssignedTo]
	}
	f := &state.TaskReopened{ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Was: k.View.State, Keep: keep}
	if to != nil {
		td.fact("", k.View.ID, f)
		td.assignBy(k, to, &state.TaskAssigned{Way: state.ByHand, Request: mk})
		return td.replyWith(k)
	}
	f.Request = mk
	td.fact("", k.View.ID, f)
	answer := td.replyWith(k)
	if td.free(k) {
		td.place(k, match.Conditions{Online: td.state.Rules.OnlineOnly})
	}
	return answer
}

// reopenDependents reopens the tasks that were cancelled because of ended, directly or through
// another cancelled task.
func (td taskDecision) reopenDependents(ended *state.Task, keep bool) {
	for queue := []*state.Task{ended}; len(queue) > 0; queue = queue[1:] {
		var again []*state.Task
		for e := range td.state.Tasks.Graph.Waiting(queue[0].Node) {
			v := td.state.Tasks.Graph.Edge(e)
			down := td.state.Tasks.Nodes[v.Down]
			if state.Gates(v.Kind) && !v.Resolved && down.View.State == wire.TaskCancelled && down.View.Reason == wire.DependencyFailed && !slices.Contains(again, down) {
				again = append(again, down)
			}
		}
		for _, down := range again {
			if td.mayReopen(down) == nil {
				td.reopen(down, nil, keep, nil)
				queue = append(queue, down)
			}
		}
	}
}
