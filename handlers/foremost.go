package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
)

// OpenTasks returns up to most open tasks in short form. Tasks in progress come first, then
// assigned ones, then waiting ones, each in the order of creation. It is cheap enough for
// frequent calls.
func (s *State) OpenTasks(most int) []wire.Task {
	var found queue.List[*task]
	for _, a := range s.agents.order {
		found = append(found, a.holds...)
	}
	rank := func(k *task) int {
		if k.view.State == wire.TaskAssigned {
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b *task) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.created, b.created))
	})
	if held := len(found); held < most && s.Open() > held {
		for _, k := range s.tasks.list {
			if len(found) == most {
				break
			}
			if !k.view.State.Final() && !slices.Contains(found[:held], k) {
				found = append(found, k)
			}
		}
	}
	tasks := make([]wire.Task, 0, min(most, len(found)))
	for _, k := range found[:min(most, len(found))] {
		v := &k.view
		tasks = append(tasks, wire.Task{
			ID: v.ID, Name: v.Name, State: v.State, Status: v.Status, RequiredRole: v.RequiredRole, AssignedTo: v.AssignedTo,
			Progress: v.Progress, WaitsFor: s.tasks.waitsFor(k),
		})
	}
	return tasks
}

// Asked returns up to most open questions, the oldest first.
func (s *State) Asked(most int) []wire.Question {
	questions := make([]wire.Question, 0, min(most, len(s.questions.open)))
	for _, q := range s.questions.open[:min(most, len(s.questions.open))] {
		questions = append(questions, q.view)
	}
	return questions
}

// HasPendingReply reports whether a run of an agent waits for an answer that comes later: to a
// question, or from a task that the agent has delegated. Delegations of earlier runs count, too,
// since the run receives their responses.
func (s *State) HasPendingReply(run string) bool {
	for _, a := range s.agents.order {
		if a.run == run && a.handsOn > 0 {
			return true
		}
	}
	for _, q := range s.questions.open {
		if q.request != nil && q.run == run {
			return true
		}
	}
	return false
}
