package handlers

import (
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// triedOut reports whether a task has had as many attempts as it may have.
func (td taskDecision) triedOut(t *state.Task) bool {
	return t.View.Attempts-t.AttemptsSpent() >= td.state.Rules.MaxAttempts
}

// retryTask tries a task again for who submitted it or manages it, at every door.
func (td taskDecision) retryTask(r *wire.RetryTask) (*wire.TaskReply, *wire.Error) {
	manager := td.from
	manager.ActsForOthers = true
	managing := td.by(manager).tasks()
	t, err := managing.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := managing.mayManage(t, "retry"); err != nil {
		return nil, err
	}
	if err := td.mayReopen(t); err != nil {
		return nil, err
	}
	var to *state.KnownAgent
	if r.Agent != "" {
		if to = td.state.Agents.AgentNamed(r.Agent); to == nil {
			return nil, noAgent(r.Agent)
		}
	}
	answer := td.reopen(t, to, r.Keep, td.mark())
	if r.Dependents == nil || *r.Dependents {
		td.reopenDependents(t, r.Keep)
	}
	return answer, nil
}

// mayReopen returns why a task cannot be tried again.
func (td taskDecision) mayReopen(t *state.Task) *wire.Error {
	switch {
	case !t.CameToNothing():
		err := wrongState(t, "tried again")
		if t.View.State == wire.TaskDone {
			err.Hint = "only a failed or cancelled task can be tried again: submit a new task for the rest"
		}
		return err
	case t.Delegation() != nil:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "delegated"},
			"the agent that delegated task %s has its response: it can send the request again", t.Label())
	case t.Work() != nil || t.View.Details != nil && td.state.Sessions.ByID[t.View.Details.SessionID] != nil:
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "in_session"},
			"task %s belongs to a session: its architect can assign it again there", t.Label())
	case t.Stub: // also after a recall
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "too_old"},
			"task %s ended too long ago to be tried again: submit a new task", t.Label())
	}
	first := t
	for up := td.lostNeed(t); up != nil; up = td.lostNeed(up) {
		first = up
	}
	if first != t {
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "waitsFor": first.View.ID, "reason": "dependency_failed"},
			"task %s needs task %s, which is %s: retry that task, and this one comes back with it", t.Label(), first.Label(), first.View.State)
	}
	return nil
}

// lostNeed returns a failed or cancelled task that another task needs, or nil.
func (td taskDecision) lostNeed(t *state.Task) *state.Task {
	for e := range td.state.Tasks.Graph.Needs(t.Node) {
		v := td.state.Tasks.Graph.Edge(e)
		up := td.state.Tasks.Nodes[v.Up]
		if state.Gates(v.Kind) && !v.Resolved && up.CameToNothing() && !td.state.Rules.StaysBlocked(t.Patient()) {
			return up
		}
	}
	return nil
}

// reopen makes an ended task pending, and gives it to an agent. Without one, a task that no agent would be matched
// with goes to the agent that had it. reopen returns the answer to the request, as a repeat of that gets it.
func (td taskDecision) reopen(t *state.Task, to *state.KnownAgent, keep bool, mk *state.RequestKey) *wire.TaskReply {
	if to == nil && !t.Asks() && t.Wants() == nil {
		to = td.state.Agents.ByID[t.View.AssignedTo]
	}
	f := &state.TaskReopened{ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Was: t.View.State, Keep: keep}
	if to != nil {
		td.fact("", t.View.ID, f)
		td.assignBy(t, to, &state.TaskAssigned{Way: state.ByHand, Request: mk})
		return td.replyWith(t)
	}
	f.Request = mk
	td.fact("", t.View.ID, f)
	answer := td.replyWith(t)
	if td.free(t) {
		td.place(t, match.Conditions{Online: td.state.Rules.OnlineOnly})
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
