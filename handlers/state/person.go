package state

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// People see a task in needs_human while its agent waits for the answer to a question about it,
// although the task runs for its agent. Lists, single tasks, filters and counts for people all use
// it. A request whose part waits for a person waits too, and counts once: its parts do not count.
// Agents see the state of the task itself.

// HeldUp returns the ids of the tasks that questions hold up.
func (s *State) HeldUp() map[string]bool {
	var found map[string]bool
	for _, q := range s.Questions.Open {
		t := s.Tasks.ByID[q.View.Task]
		for _, held := range []*Task{t, requestOf(t)} {
			if held != nil && q.holdsUp(s, held) {
				if found == nil {
					found = make(map[string]bool)
				}
				found[held.View.ID] = true
			}
		}
	}
	return found
}

// BlockerOf returns the oldest question that holds up a task, or nil.
func (s *State) BlockerOf(t *Task) *Question {
	for _, q := range s.Questions.Open {
		if q.holdsUp(s, t) {
			return q
		}
	}
	return nil
}

// requestOf returns the task that another one is a part of, or nil.
func requestOf(t *Task) *Task {
	if t == nil || !t.View.Details.IsPart() {
		return nil
	}
	return t.parent
}

// holdsUp reports whether a task that is being worked on waits for the answer to a question about
// it, or about a part of it. A task that its own agent has put into needs_human is in that state for
// everyone.
func (q *Question) holdsUp(s *State, t *Task) bool {
	if t.View.State != wire.TaskRunning && t.View.State != wire.TaskPlanning {
		return false
	}
	if q.View.Task == t.View.ID {
		return q.Aside && t.View.AssignedTo == q.View.Agent && q.Waited(s)
	}
	part := s.Tasks.ByID[q.View.Task]
	return part != nil && requestOf(part) == t && (part.View.State == wire.TaskNeedsHuman && !q.Aside || q.holdsUp(s, part))
}

// Counts returns the number of tasks in each state, as people see them.
func (s *State) Counts() control.TaskCounts {
	of := func(state wire.TaskState) int { return s.Tasks.Counts[state] - s.Tasks.Parts[state] }
	c := control.TaskCounts{
		Pending:    of(wire.TaskPending),
		Blocked:    of(Blocked),
		Assigned:   of(wire.TaskAssigned),
		Planning:   of(wire.TaskPlanning),
		PlanReview: of(wire.TaskPlanReview),
		Running:    of(wire.TaskRunning),
		NeedsHuman: of(wire.TaskNeedsHuman),
		InReview:   of(wire.TaskInReview),
		Verifying:  of(wire.TaskVerifying),
		Done:       of(wire.TaskDone),
		Failed:     of(wire.TaskFailed),
		Cancelled:  of(wire.TaskCancelled),
	}
	for id := range s.HeldUp() {
		switch t := s.Tasks.ByID[id]; {
		case t.View.Details.IsPart():
			continue
		case t.View.State == wire.TaskPlanning:
			c.Planning--
		default:
			c.Running--
		}
		c.NeedsHuman++
	}
	return c
}

// TasksOf returns the tasks that an agent holds, as people see them.
func (s *State) TasksOf(name string) []control.TaskLabel {
	a := s.Agents.ByID[name]
	if a == nil {
		return nil
	}
	labels := make([]control.TaskLabel, 0, len(a.Holds))
	for _, t := range a.Holds {
		l := control.TaskLabel{ID: t.View.ID, Name: t.View.Name, State: t.View.State, Progress: t.View.Progress}
		if s.BlockerOf(t) != nil {
			l.State = wire.TaskNeedsHuman
		}
		labels = append(labels, l)
	}
	return labels
}
