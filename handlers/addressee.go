package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// addressee returns the agent that gets a pending task again, or "". Such a task was assigned by
// hand and has no requirements for finding another agent.
func addressee(t *state.Task) string {
	if d := t.View.Details; d != nil && t.View.State == wire.TaskPending {
		return d.Addressee
	}
	return ""
}

// comesBack reports whether the agent that loses a task gets it again. An agent that returns a task
// does so only because it is limited, or until a time. An agent to blame for the loss does not.
func (td taskDecision) comesBack(t *state.Task, f *state.TaskRequeued) bool {
	a := td.state.Agents.ByID[f.Agent]
	if t.Way != state.ByHand || t.Asks() || t.Wants() != nil || a == nil || a.Remote != nil {
		return false
	}
	return !a.Limited.IsZero() || f.After != "" || f.Blameless && !f.Returned
}

// giveAgain assigns a task to its addressee if that runs and is not limited. Until then a person may
// assign the task to another agent.
func (td taskDecision) giveAgain(t *state.Task) {
	a := td.state.Agents.ByID[addressee(t)]
	if a == nil || a.State != state.Up || !a.Alive() || !a.Limited.IsZero() || t.Postponed() || td.state.Stopping {
		return
	}
	td.own.tasks().assignBy(t, a, &state.TaskAssigned{Way: state.ByHand})
}

// recheckAddressed gives an agent the tasks that it gets again, at the end of the turn.
func (td taskDecision) recheckAddressed(a *state.KnownAgent) {
	for _, t := range td.state.Tasks.List {
		if addressee(t) == a.ID {
			td.lostTasks = append(td.lostTasks, lostTask{task: t})
		}
	}
}
