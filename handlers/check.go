package handlers

import (
	"errors"
	"fmt"
	"slices"

	"orchestrator/wire"
)

// checked is a fact that names what must be there already. Handle decides only
// what fits; a record out of a log is checked before it is applied, so that one
// of another log, or of a mistake of ours, is an error and not a panic.
type checked interface{ check(s *State) error }

func (f *agentKnown) check(*State) error {
	if f.ID == "" {
		return errors.New("the agent has no name")
	}
	return nil
}

func (f *agentForgotten) check(s *State) error {
	if s.agents[f.ID] == nil {
		return fmt.Errorf("there is no agent %q", f.ID)
	}
	return nil
}

func (f *taskCreated) check(s *State) error {
	switch {
	case f.ID == "":
		return errors.New("the task has no id")
	case s.tasks[f.ID] != nil:
		return fmt.Errorf("there is a task %s already", f.ID)
	}
	for _, id := range f.Dependencies {
		if s.tasks[id] == nil {
			return fmt.Errorf("there is no task %s to depend on", id)
		}
	}
	return nil
}

func (f *taskAssigned) check(s *State) error {
	if s.agents[f.Agent] == nil {
		return fmt.Errorf("there is no agent %q", f.Agent)
	}
	return s.checkTask(f.ID, wire.TaskPending)
}

func (f *taskStarted) check(s *State) error  { return s.checkTask(f.ID, wire.TaskAssigned) }
func (f *taskProgress) check(s *State) error { return s.checkTask(f.ID, wire.TaskRunning) }
func (f *taskRequeued) check(s *State) error {
	return s.checkTask(f.ID, wire.TaskAssigned, wire.TaskRunning)
}
func (f *taskDone) check(s *State) error   { return s.checkTask(f.ID, wire.TaskRunning) }
func (f *taskFailed) check(s *State) error { return s.checkTask(f.ID, wire.TaskRunning) }
func (f *taskCancelled) check(s *State) error {
	return s.checkTask(f.ID, wire.TaskPending, wire.TaskAssigned, wire.TaskRunning)
}

// checkTask says what is wrong with a fact about a task that must be in one of a
// few states.
func (s *State) checkTask(id string, states ...wire.TaskState) error {
	k := s.tasks[id]
	switch {
	case k == nil:
		return fmt.Errorf("there is no task %s", id)
	case !slices.Contains(states, k.view.State):
		return fmt.Errorf("task %s is %s", id, k.view.State)
	}
	return nil
}

func (f *questionAsked) check(s *State) error {
	if s.questions[f.ID] != nil {
		return fmt.Errorf("there is a question %s already", f.ID)
	}
	return nil
}

func (f *questionRejoined) check(s *State) error {
	if f.Request == nil {
		return errors.New("nobody waits for the question")
	}
	return s.checkQuestion(f.ID)
}

func (f *questionAnswered) check(s *State) error { return s.checkQuestion(f.ID) }
func (f *questionExpired) check(s *State) error  { return s.checkQuestion(f.ID) }

func (s *State) checkQuestion(id string) error {
	if s.questions[id] == nil {
		return fmt.Errorf("there is no question %s", id)
	}
	return nil
}
