package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// People see a task in needs_human while its agent waits for the answer to a question about it,
// although the task runs for its agent. Lists, single tasks, filters and counts for people all use
// it. A request whose part waits for a person waits too, and counts once: its parts do not count.
// Agents see the state of the task itself.

// heldUp returns the ids of the tasks that questions hold up.
func (s *core) heldUp() map[string]bool {
	var found map[string]bool
	for _, q := range s.questions.open {
		k := s.tasks.byID[q.view.Task]
		for _, held := range []*task{k, requestOf(k)} {
			if held != nil && q.holdsUp(s, held) {
				if found == nil {
					found = make(map[string]bool)
				}
				found[held.view.ID] = true
			}
		}
	}
	return found
}

// blockerOf returns the oldest question that holds up a task, or nil.
func (s *core) blockerOf(k *task) *question {
	for _, q := range s.questions.open {
		if q.holdsUp(s, k) {
			return q
		}
	}
	return nil
}

// requestOf returns the task that another one is a part of, or nil.
func requestOf(k *task) *task {
	if k == nil || !k.view.Details.IsPart() {
		return nil
	}
	return k.parent
}

// holdsUp reports whether a task that is being worked on waits for the answer to a question about
// it, or about a part of it. A task that its own agent has put into needs_human is in that state for
// everyone.
func (q *question) holdsUp(s *core, k *task) bool {
	if k.view.State != wire.TaskRunning && k.view.State != wire.TaskPlanning {
		return false
	}
	if q.view.Task == k.view.ID {
		return q.aside && k.view.AssignedTo == q.view.Agent && q.waited(s)
	}
	part := s.tasks.byID[q.view.Task]
	return part != nil && requestOf(part) == k && (part.view.State == wire.TaskNeedsHuman && !q.aside || q.holdsUp(s, part))
}

// Counts returns the number of tasks in each state, as people see them.
func (s *core) Counts() control.TaskCounts {
	of := func(state wire.TaskState) int { return s.tasks.counts[state] - s.tasks.parts[state] }
	c := control.TaskCounts{
		Pending:    of(wire.TaskPending),
		Blocked:    of(blocked),
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
	for id := range s.heldUp() {
		switch k := s.tasks.byID[id]; {
		case k.view.Details.IsPart():
			continue
		case k.view.State == wire.TaskPlanning:
			c.Planning--
		default:
			c.Running--
		}
		c.NeedsHuman++
	}
	return c
}

// heldUp returns the ids of the tasks that questions hold up, for people; nil for agents.
func (td taskDecision) heldUp() map[string]bool {
	if td.from.Kind != Operator {
		return nil
	}
	return td.state.heldUp()
}

// personal changes a task in an answer to what people see, if the caller is one.
func (td taskDecision) personal(k *task, t *wire.Task) {
	if td.from.Kind != Operator {
		return
	}
	if q := td.state.blockerOf(k); q != nil {
		t.State = wire.TaskNeedsHuman
		t.Details = t.Details.Copy()
		t.Help = &wire.Help{QuestionID: q.view.ID, Question: q.view.Question, Context: q.view.Context}
	}
}

// TasksOf returns the tasks that an agent holds, as people see them.
func (s *core) TasksOf(name string) []control.TaskLabel {
	a := s.agents.byID[name]
	if a == nil {
		return nil
	}
	labels := make([]control.TaskLabel, 0, len(a.holds))
	for _, k := range a.holds {
		l := control.TaskLabel{ID: k.view.ID, Name: k.view.Name, State: k.view.State, Progress: k.view.Progress}
		if s.blockerOf(k) != nil {
			l.State = wire.TaskNeedsHuman
		}
		labels = append(labels, l)
	}
	return labels
}
