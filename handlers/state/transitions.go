package state

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A Transition is a move of tasks between states: the kind of the fact that moves a task, the
// states that it may leave, and the states that it may enter. The checks of facts read the table,
// and a test compares it with the moves in all stories.
type Transition struct {
	Fact     string
	From, To []wire.TaskState
}

// heldStates are the states of a task that an agent holds. openStates are the states of any open
// task.
var (
	heldStates = []wire.TaskState{
		wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview, wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskInReview, wire.TaskVerifying,
	}
	openStates = append([]wire.TaskState{wire.TaskPending}, heldStates...)
)

// Transitions are all moves of tasks outside of sessions, where the phase of the work item decides. A task whose delegation
// has no agent may fail from any open state.
var Transitions = []Transition{
	{events.TaskAssigned, []wire.TaskState{wire.TaskPending, wire.TaskAssigned}, []wire.TaskState{wire.TaskAssigned, wire.TaskPlanning}},
	{events.TaskStarted, []wire.TaskState{wire.TaskAssigned, wire.TaskPlanReview, wire.TaskNeedsHuman}, []wire.TaskState{wire.TaskRunning}},
	{events.TaskPlanned, []wire.TaskState{wire.TaskPlanning}, []wire.TaskState{wire.TaskPlanReview}},
	{events.TaskPlanReturned, []wire.TaskState{wire.TaskPlanReview}, []wire.TaskState{wire.TaskPlanning}},
	{events.TaskHelpWanted, []wire.TaskState{wire.TaskRunning}, []wire.TaskState{wire.TaskNeedsHuman}},
	{events.TaskVerifying, []wire.TaskState{wire.TaskRunning}, []wire.TaskState{wire.TaskVerifying}},
	{events.TaskVerified, []wire.TaskState{wire.TaskVerifying}, []wire.TaskState{wire.TaskRunning}},
	{events.TaskUnverified, []wire.TaskState{wire.TaskVerifying}, []wire.TaskState{wire.TaskRunning}},
	{events.TaskRequeued, heldStates, []wire.TaskState{wire.TaskPending}},
	{events.TaskDone, heldStates, []wire.TaskState{wire.TaskDone}},
	{events.TaskFailed, heldStates, []wire.TaskState{wire.TaskFailed}},
	{events.TaskCancelled, openStates, []wire.TaskState{wire.TaskCancelled}},
	{events.TaskReopened, []wire.TaskState{wire.TaskFailed, wire.TaskCancelled}, []wire.TaskState{wire.TaskPending}},
}

// checkMove returns an error unless a fact of a kind may move a task now.
func (ts *tasks) checkMove(fact, id string) error {
	at := slices.IndexFunc(Transitions, func(t Transition) bool { return t.Fact == fact })
	return ts.checkTask(id, Transitions[at].From...)
}

// checkTask returns an error unless a task exists and is in one of some states.
func (ts *tasks) checkTask(id string, states ...wire.TaskState) error {
	t := ts.ByID[id]
	switch {
	case t == nil:
		return fmt.Errorf("there is no task %s", id)
	case !slices.Contains(states, t.View.State):
		return fmt.Errorf("task %s is %s", id, t.View.State)
	}
	return nil
}
