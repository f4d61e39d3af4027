package state

import (
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
)

// TaskReopened records that a task that had failed or was cancelled is open again. Its history stays, and attempts are
// counted on.
type TaskReopened struct {
	ID      string         `json:"task"`
	Name    string         `json:"name"`
	Agent   string         `json:"agent,omitzero"` // that had it
	Was     wire.TaskState `json:"was"`            // failed or cancelled
	Keep    bool           `json:"keep,omitzero"`  // its workspace is kept
	Request *RequestKey    `json:"request,omitzero"`
}

func (*TaskReopened) kind() string { return events.TaskReopened }

func (t *TaskReopened) check(s *State) error { return s.Tasks.checkMove(t.kind(), t.ID) }

func (t *TaskReopened) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is tried again"
	if t.Keep {
		e.Text += ", in its workspace"
	}
}

func (t *TaskReopened) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	s.Tasks.beforeChange(k)
	s.Tasks.Finished = slices.DeleteFunc(s.Tasks.Finished, func(o *Task) bool { return o == k })
	m := k.EnsureExtra()
	m.Spent, k.Deaths = k.View.Attempts, 0
	d := k.View.Details.Copy()
	if d.FailureClass == "budget" && AgentOf(r.From) == "" { // a person allows the same amount again
		m.Used = activity.Used{}
	}
	d.Unverified, d.FailureClass = 0, ""
	if !t.Keep && d.Workspace != nil {
		d.Workspace = nil
		d.Restarts++
	}
	k.View.Details = d.Filled()
	outcome := "failed: " + k.View.Error
	if k.View.State == wire.TaskCancelled {
		outcome = "cancelled: " + k.View.Reason
	}
	k.View.Error, k.View.Reason, k.View.Result, k.result = "", "", nil, 0
	k.View.EndedAt, k.Ended = "", 0
	agent := k.View.AssignedTo
	if agent != "" {
		k.Way = ByHand // for the history
	}
	s.unassign(k, agent, outcome, time.Time{})
	s.saveTaskReply(r, t.Request, k)
}

// AttemptsSpent returns how many attempts a task had before it was reopened.
func (t *Task) AttemptsSpent() int {
	if t.Extra == nil {
		return 0
	}
	return t.Extra.Spent
}

// CameToNothing reports whether a task has failed or was cancelled.
func (t *Task) CameToNothing() bool {
	return t.View.State == wire.TaskFailed || t.View.State == wire.TaskCancelled
}
