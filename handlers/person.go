package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// People see a task in needs_human while its agent waits for the answer to a question about it,
// although the task runs for its agent. Lists, single tasks, filters and counts for people all use
// heldUp. Agents see the state of the task itself.

// heldUp returns the ids of the tasks that questions hold up.
func (s *State) heldUp() map[string]bool {
	var found map[string]bool
	for _, q := range s.questions.open {
		if k := s.tasks.byID[q.view.Task]; k != nil && q.holdsUp(s, k) {
			if found == nil {
				found = make(map[string]bool)
			}
			found[k.view.ID] = true
		}
	}
	return found
}

// blockerOf returns the oldest question that holds up a task, or nil.
func (s *State) blockerOf(k *task) *question {
	for _, q := range s.questions.open {
		if q.view.Task == k.view.ID && q.holdsUp(s, k) {
			return q
		}
	}
	return nil
}

// holdsUp reports whether the agent of a task waits for the answer to a question about it. A task
// that the agent itself has put into needs_human is in that state for everyone.
func (q *question) holdsUp(s *State, k *task) bool {
	works := k.view.State == wire.TaskRunning || k.view.State == wire.TaskPlanning
	return works && q.aside && k.view.AssignedTo == q.view.Agent && q.waited(s)
}

// Counts returns the number of tasks in each state, as people see them.
func (s *State) Counts() control.TaskCounts {
	c := control.TaskCounts{
		Pending:    s.tasks.counts[wire.TaskPending],
		Blocked:    s.tasks.counts[blocked],
		Assigned:   s.tasks.counts[wire.TaskAssigned],
		Planning:   s.tasks.counts[wire.TaskPlanning],
		PlanReview: s.tasks.counts[wire.TaskPlanReview],
		Running:    s.tasks.counts[wire.TaskRunning],
		NeedsHuman: s.tasks.counts[wire.TaskNeedsHuman],
		InReview:   s.tasks.counts[wire.TaskInReview],
		Verifying:  s.tasks.counts[wire.TaskVerifying],
		Done:       s.tasks.counts[wire.TaskDone],
		Failed:     s.tasks.counts[wire.TaskFailed],
		Cancelled:  s.tasks.counts[wire.TaskCancelled],
	}
	for id := range s.heldUp() {
		c.NeedsHuman++
		if s.tasks.byID[id].view.State == wire.TaskPlanning {
			c.Planning--
		} else {
			c.Running--
		}
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
func (s *State) TasksOf(name string) []control.TaskLabel {
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
