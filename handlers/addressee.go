package handlers

import "orchestrator/wire"

// addressee returns the agent that gets a pending task again, or "". Such a task was assigned by
// hand and requires nothing by which another agent could be found.
func addressee(k *task) string {
	if d := k.view.Details; d != nil && k.view.State == wire.TaskPending {
		return d.Addressee
	}
	return ""
}

// address sets the addressee of a task.
func (t *tasks) address(k *task, agent string) {
	if d := k.view.Details; d == nil && agent == "" || d != nil && d.Addressee == agent {
		return
	}
	t.beforeChange(k)
	d := k.view.Details.Copy()
	d.Addressee = agent
	k.view.Details = d.Filled()
}

// comesBack reports whether the agent that loses a task gets it again. An agent that returns a task
// does so only because it is limited, or until a time. An agent to blame for the loss does not.
func (td taskDecision) comesBack(k *task, f *taskRequeued) bool {
	a := td.state.agents.byID[f.Agent]
	if k.way != byHand || k.asks() || k.wants() != nil || a == nil || a.remote != nil {
		return false
	}
	return !a.limited.IsZero() || f.After != "" || f.Blameless && !f.Returned
}

// giveAgain assigns a task to its addressee if that runs and is not limited. Until then a person may
// assign the task to another agent.
func (td taskDecision) giveAgain(k *task) {
	a := td.state.agents.byID[addressee(k)]
	if a == nil || a.state != up || !a.alive() || !a.limited.IsZero() || k.postponed() || td.state.stopping {
		return
	}
	td.own.tasks().assignBy(k, a, &taskAssigned{Way: byHand})
}

// recheckAddressed gives an agent the tasks that it gets again, at the end of the turn.
func (td taskDecision) recheckAddressed(a *agent) {
	for _, k := range td.state.tasks.list {
		if addressee(k) == a.ID {
			td.lostTasks = append(td.lostTasks, lostTask{task: k})
		}
	}
}
