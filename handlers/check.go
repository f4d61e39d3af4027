package handlers

import (
	"errors"
	"fmt"
	"slices"

	"orchestrator/wire"
)

// A checked fact names things that must exist. Handle decides only valid facts. A record from
// the log is checked before it is applied. A wrong log or a bug then gives an error and not a
// panic.
type checked interface{ check(s *State) error }

func (f *agentKnown) check(*State) error {
	if f.ID == "" {
		return errors.New("the agent has no name")
	}
	return nil
}

func (f *agentForgotten) check(s *State) error {
	if s.agents.byID[f.ID] == nil {
		return fmt.Errorf("there is no agent %q", f.ID)
	}
	return nil
}

func (f *taskCreated) check(s *State) error {
	switch {
	case f.ID == "":
		return errors.New("the task has no id")
	case s.tasks.byID[f.ID] != nil:
		return fmt.Errorf("there is a task %s already", f.ID)
	case f.Delegated != nil:
		request, err := f.Delegated.read()
		if err != nil {
			return err
		}
		f.request = request
	}
	for _, d := range f.Dependencies {
		if s.tasks.byID[d.On] == nil {
			return fmt.Errorf("there is no task %s to depend on", d.On)
		}
	}
	return nil
}

func (f *taskAssigned) check(s *State) error {
	if s.agents.byID[f.Agent] == nil {
		return fmt.Errorf("there is no agent %q", f.Agent)
	}
	if f.Way == inSession {
		return s.checkTask(f.ID, openStates...)
	}
	return s.checkTask(f.ID, wire.TaskPending, wire.TaskAssigned)
}

// heldStates are the states of a task that an agent holds; openStates are those of any open
// task.
var (
	heldStates = []wire.TaskState{
		wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview, wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskInReview,
	}
	openStates = append([]wire.TaskState{wire.TaskPending}, heldStates...)
)

func (f *taskStarted) check(s *State) error {
	return s.checkTask(f.ID, wire.TaskAssigned, wire.TaskPlanReview, wire.TaskNeedsHuman)
}
func (f *taskProgress) check(s *State) error { return s.checkTask(f.ID, wire.TaskRunning) }
func (f *taskRequeued) check(s *State) error { return s.checkTask(f.ID, heldStates...) }
func (f *taskDone) check(s *State) error {
	return s.checkTask(f.ID, heldStates...)
}
func (f *taskFailed) check(s *State) error {
	if k := s.tasks.byID[f.ID]; k != nil && k.delegation() != nil { // there may be no agent for it
		return s.checkTask(f.ID, openStates...)
	}
	return s.checkTask(f.ID, heldStates...)
}
func (f *taskPlanned) check(s *State) error   { return s.checkTask(f.ID, wire.TaskPlanning) }
func (f *taskRevise) check(s *State) error    { return s.checkTask(f.ID, wire.TaskPlanReview) }
func (f *taskCancelled) check(s *State) error { return s.checkTask(f.ID, openStates...) }
func (f *taskUpdated) check(s *State) error   { return s.checkTask(f.ID, openStates...) }
func (f *taskNoted) check(s *State) error     { return s.checkTask(f.ID, wire.TaskStates...) }

func (f *taskHelp) check(s *State) error {
	if s.questions.byID[f.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", f.QuestionID)
	}
	return s.checkTask(f.ID, wire.TaskRunning)
}

func (f *dependencyAdded) check(s *State) error {
	k, on := s.tasks.byID[f.ID], s.tasks.byID[f.Dependency.On]
	switch {
	case k == nil || on == nil:
		return fmt.Errorf("there are no tasks %s and %s", f.ID, f.Dependency.On)
	case f.Shown:
		if _, there := s.tasks.graph.Find(k.node, on.node, kindOf(f.Dependency.Type), f.Dependency.Contract); !there {
			return fmt.Errorf("task %s does not depend on %s", f.ID, f.Dependency.On)
		}
	case gates(kindOf(f.Dependency.Type)) && s.tasks.graph.Circle(k.node, on.node) != nil:
		return fmt.Errorf("task %s would wait for itself", f.ID)
	}
	return nil
}

func (f *dependencyGone) check(s *State) error { return s.checkLink(f.ID, f.Number) }

func (f *dependencyResolved) check(s *State) error {
	for _, w := range f.Waiting {
		if err := s.checkLink(w.ID, w.Number); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) checkLink(id string, number int64) error {
	k := s.tasks.byID[id]
	if k == nil {
		return fmt.Errorf("there is no task %s", id)
	}
	if _, there := s.tasks.graph.Numbered(k.node, number); !there {
		return fmt.Errorf("task %s has no dependency %d", id, number)
	}
	return nil
}

func (f *questionWithdrawn) check(s *State) error { return s.checkQuestion(f.ID) }

func (f *agentCapable) check(s *State) error { return s.checkAgent(f.Agent) }
func (f *serverRegistered) check(s *State) error {
	switch a := s.agents.byID[f.Agent]; {
	case f.Agent == "":
		return errors.New("the server has no name")
	case a != nil && a.remote == nil:
		return fmt.Errorf("%q is the name of an agent that is no server", f.Agent)
	}
	return nil
}

func (f *actorStale) check(s *State) error {
	if s.bus.actors[f.Actor] == nil {
		return fmt.Errorf("there is no actor %q", f.Actor)
	}
	return nil
}

func (f *serverSeen) check(s *State) error { return s.checkServer(f.Agent) }
func (f *serverLost) check(s *State) error { return s.checkServer(f.Agent) }

func (s *State) checkAgent(name string) error {
	if s.agents.byID[name] == nil {
		return fmt.Errorf("there is no agent %q", name)
	}
	return nil
}

func (s *State) checkServer(name string) error {
	if a := s.agents.byID[name]; a == nil || a.remote == nil {
		return fmt.Errorf("there is no server %q", name)
	}
	return nil
}

// checkTask returns an error unless a task exists and is in one of some states.
func (s *State) checkTask(id string, states ...wire.TaskState) error {
	k := s.tasks.byID[id]
	switch {
	case k == nil:
		return fmt.Errorf("there is no task %s", id)
	case !slices.Contains(states, k.view.State):
		return fmt.Errorf("task %s is %s", id, k.view.State)
	}
	return nil
}

func (f *questionAsked) check(s *State) error {
	if s.questions.byID[f.ID] != nil {
		return fmt.Errorf("there is a question %s already", f.ID)
	}
	return nil
}

func (f *questionRejoined) check(s *State) error {
	if f.Request == nil {
		return errors.New("no caller waits for the question")
	}
	return s.checkQuestion(f.ID)
}

func (f *questionAnswered) check(s *State) error { return s.checkQuestion(f.ID) }
func (f *questionExpired) check(s *State) error  { return s.checkQuestion(f.ID) }

func (s *State) checkQuestion(id string) error {
	if s.questions.byID[id] == nil {
		return fmt.Errorf("there is no question %s", id)
	}
	return nil
}
