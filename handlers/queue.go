package handlers

import (
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// resumePostponed gives out the postponed tasks that are due.
func (td taskDecision) resumePostponed() {
	for later := &td.state.Tasks.Later; len(*later) > 0 && !td.state.Stopping; {
		t := (*later)[0]
		if t.Extra.After.After(td.at) {
			return
		}
		td.own.fact("", t.View.ID, &state.TaskDue{ID: t.View.ID, Name: t.View.Name})
		td.lostTasks = append(td.lostTasks, lostTask{task: t})
	}
}

// rematch assigns waiting tasks with requirements as long as an agent that was marked has room.
// The most urgent task comes first, then the oldest; each goes to the agent that fits it best.
// Tasks that are not started count as load, since otherwise a new agent would get all of them.
func (td taskDecision) rematch() {
	w := &td.state.Tasks.Required
	defer w.ResetChanged()
	if td.state.Stopping || td.state.Rules.IgnoreArrivals || w.Waiting.Len() == 0 {
		return
	}
	for i := 0; i < len(w.Order); i++ { // assigning one may free another
		for a := w.Order[i]; td.state.Agents.ByID[a.ID] == a; {
			t := td.nextFor(a)
			if t == nil || !td.own.tasks().place(t, match.Conditions{Online: true, Free: true}) {
				break
			}
		}
	}
}

// nextFor returns the first waiting task that an agent fits.
func (td taskDecision) nextFor(a *state.KnownAgent) *state.Task {
	if len(a.Holds) >= a.Capacity || a.Stale {
		return nil
	}
	var first *state.Task
	look := func(under string) {
		for _, h := range td.state.Tasks.Required.Waiting.Under(under) {
			if t := h.Head(); (first == nil || queue.Before(t, first)) &&
				td.state.Agents.Index.Fits(&h.Asks.Demand, a.ID, match.Conditions{Online: true, Free: true}) {
				first = t
			}
		}
	}
	look("")
	for _, under := range a.Under {
		look(under)
	}
	return first
}

// place assigns a task to the agent that fits it best. It reports false if none fits.
func (td taskDecision) place(t *state.Task, c match.Conditions) bool {
	name, score, ok := td.state.Agents.Index.Best(&t.Wants().Demand, c)
	if ok {
		td.assignBy(t, td.state.Agents.ByID[name], &state.TaskAssigned{Way: state.Matched, Score: score})
	}
	return ok
}

// free reports whether a task with requirements can be assigned now.
func (td taskDecision) free(t *state.Task) bool {
	return t.View.State == wire.TaskPending && t.Wants() != nil && !t.Asks() && t.Delegation() == nil && !t.Postponed() &&
		td.state.Tasks.Graph.Open(t.Node) == 0 && !td.state.Stopping
}
