package state

import (
	"slices"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Listens reports whether an agent has a run that reads its stdin.
func (a *KnownAgent) Listens() bool { return a.Remote == nil && a.Reachable() && a.Hears() }

// load returns how much of the agent's capacity is in use or assigned.
func (a *KnownAgent) load() int {
	n := 0
	for _, t := range a.Holds {
		if d := t.Delegation(); t.Occupies() || d != nil && d.Waits() {
			n++
		}
	}
	return n
}

// Occupies reports whether a task counts against the capacity of its agent. A task that waits
// for delegated parts does not. Otherwise two agents that wait for each other would wait
// forever.
func (t *Task) Occupies() bool {
	if t.Extra != nil && len(t.Extra.HandedOn) > 0 {
		return false
	}
	switch t.View.State {
	case wire.TaskRunning, wire.TaskVerifying, wire.TaskNeedsHuman:
		return true
	case wire.TaskAssigned:
		d := t.Delegation()
		return d == nil && t.Way == Dispatched || d != nil && d.Out != ""
	}
	return false
}

// Given reports whether an agent has a task, or had it when the task ended. Only the output of
// that agent counts as a response.
func (s *State) Given(agent, id string) bool {
	t := s.Tasks.ByID[id]
	return t != nil && t.View.AssignedTo == agent && agent != ""
}

// Does reports whether any agent has a capability.
func (s *State) Does(kind string) bool {
	return slices.ContainsFunc(s.Agents.Order, func(a *KnownAgent) bool { return slices.Contains(a.Capabilities, kind) })
}

// LineOf returns the line that a record sends to its recipient.
func LineOf(r wire.Record) (wire.Raw, error) {
	f, err := Decode(&r, new([]object.Member))
	if err != nil {
		return nil, err
	}
	return history.LineOf(f, &r)
}

// Parts returns the delegated parts of a task that its agent waits for.
func (t *Task) Parts() []*DelegatedWork {
	if t.Extra == nil {
		return nil
	}
	return slices.Clone(t.Extra.HandedOn)
}
