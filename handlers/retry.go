package handlers

import (
	"slices"
	"time"

	"orchestrator/handlers/match"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
)

// taskReopened records that a task that had failed or was cancelled is open again. Its history stays, and attempts are
// counted on.
type taskReopened struct {
	ID      string         `json:"task"`
	Name    string         `json:"name"`
	Agent   string         `json:"agent,omitzero"` // that had it
	Was     wire.TaskState `json:"was"`            // failed or cancelled
	Keep    bool           `json:"keep,omitzero"`  // its workspace stays as it is
	Request *requestKey    `json:"request,omitzero"`
}

func (*taskReopened) kind() string { return events.TaskReopened }

func (t *taskReopened) check(s *core) error {
	return s.tasks.checkTask(t.ID, wire.TaskFailed, wire.TaskCancelled)
}

func (t *taskReopened) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is tried again"
	if t.Keep {
		e.Text += ", in its workspace"
	}
}

func (t *taskReopened) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.tasks.beforeChange(k)
	s.tasks.finished = slices.DeleteFunc(s.tasks.finished, func(o *task) bool { return o == k })
	m := k.needsMore()
	m.spent, k.deaths = k.view.Attempts, 0
	d := k.view.Details.Copy()
	if d.FailureClass == "budget" && agentOf(r.From) == "" { // a person allows the same amount again
		m.used = activity.Used{}
	}
	d.Unverified, d.FailureClass = 0, ""
	if !t.Keep && d.Workspace != nil {
		d.Workspace = nil
		d.Restarts++
	}
	k.view.Details = d.Filled()
	outcome := "failed: " + k.view.Error
	if k.view.State == wire.TaskCancelled {
		outcome = "cancelled: " + k.view.Reason
	}
	k.view.Error, k.view.Reason, k.view.Result, k.result = "", "", nil, 0
	k.view.EndedAt, k.ended = "", 0
	agent := k.view.AssignedTo
	if agent != "" {
		k.way = byHand // for the history
	}
	s.unassign(k, agent, outcome, time.Time{})
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// attemptsSpent returns how many attempts a task had before it was reopened.
func (t *task) attemptsSpent() int {
	if t.more == nil {
		return 0
	}
	return t.more.spent
}

// triedOut reports whether a task has had as many attempts as it may have.
func (td taskDecision) triedOut(k *task) bool {
	return k.view.Attempts-k.attemptsSpent() >= td.state.rules.MaxAttempts
}

// retryTask tries a task again for who submitted it or manages it, at every door.
func retryTask(td taskDecision, r *wire.RetryTask) (*wire.TaskReply, *wire.Error) {
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
	var to *agent
	if r.Agent != "" {
		if to = td.state.agents.agentNamed(r.Agent); to == nil {
			return nil, noAgent(r.Agent)
		}
	}
	answer := td.reopen(k, to, r.Keep, td.mark())
	if r.Dependents == nil || *r.Dependents {
		td.reopenDependents(k, r.Keep)
	}
	return answer, nil
}

// cameToNothing reports whether a task has failed or was cancelled.
func (t *task) cameToNothing() bool {
	return t.view.State == wire.TaskFailed || t.view.State == wire.TaskCancelled
}

// mayReopen returns why a task cannot be tried again.
func (td taskDecision) mayReopen(k *task) *wire.Error {
	switch {
	case !k.cameToNothing():
		err := wrongState(k, "tried again")
		if k.view.State == wire.TaskDone {
			err.Hint = "only a task that has failed or was cancelled can be: submit a new one for what is missing"
		}
		return err
	case k.delegation() != nil:
		return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "delegated"},
			"the agent that delegated task %s has its response: it can send the request again", k.label())
	case k.work() != nil || k.view.Details != nil && td.state.sessions.byID[k.view.Details.SessionID] != nil:
		return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "in_session"},
			"task %s belongs to a session: its architect can assign it again there", k.label())
	case k.left:
		return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "too_old"},
			"task %s ended too long ago to be tried again: submit it anew", k.label())
	}
	for e := range td.state.tasks.graph.Needs(k.node) {
		v := td.state.tasks.graph.Edge(e)
		up := td.state.tasks.nodes[v.Up]
		if gates(v.Kind) && !v.Resolved && up.cameToNothing() && !td.state.rules.staysBlocked(k.patient()) {
			return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "waitsFor": up.view.ID, "reason": "dependency_failed"},
				"task %s needs task %s, which is %s: try that again, and this one comes back with it", k.label(), up.label(), up.view.State)
		}
	}
	return nil
}

// reopen makes an ended task pending, and gives it to an agent. Without one, a task that no agent would be matched
// with goes to the agent that had it. reopen returns the answer to the request, as a repeat of that gets it.
func (td taskDecision) reopen(k *task, to *agent, keep bool, mk *requestKey) *wire.TaskReply {
	if to == nil && !k.asks() && k.wants() == nil {
		to = td.state.agents.byID[k.view.AssignedTo]
	}
	f := &taskReopened{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Was: k.view.State, Keep: keep}
	if to != nil {
		td.fact("", k.view.ID, f)
		td.assignBy(k, to, &taskAssigned{Way: byHand, Request: mk})
		return td.replyWith(k)
	}
	f.Request = mk
	td.fact("", k.view.ID, f)
	answer := td.replyWith(k)
	if td.free(k) {
		td.place(k, match.Conditions{Online: td.state.rules.OnlineOnly})
	}
	return answer
}

// reopenDependents reopens the tasks that were cancelled because others will not be done, with those that were
// cancelled because of them.
func (td taskDecision) reopenDependents(ended *task, keep bool) {
	for queue := []*task{ended}; len(queue) > 0; queue = queue[1:] {
		var again []*task
		for e := range td.state.tasks.graph.Waiting(queue[0].node) {
			v := td.state.tasks.graph.Edge(e)
			down := td.state.tasks.nodes[v.Down]
			if gates(v.Kind) && !v.Resolved && down.view.State == wire.TaskCancelled && down.view.Reason == wire.DependencyFailed && !slices.Contains(again, down) {
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
