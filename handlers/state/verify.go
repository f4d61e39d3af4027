package state

import (
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// TaskChecked records a step of the orchestrator itself for a task: it makes its workspace, and
// runs the commands that verify its completion.
type TaskChecked struct {
	What      string          `json:"-"`
	ID        string          `json:"task"`
	Name      string          `json:"name"`
	Agent     string          `json:"agent"`
	Text      string          `json:"text,omitzero"`
	Workspace *wire.Workspace `json:"workspace,omitzero"`
	Failed    bool            `json:"failed,omitzero"` // and not interrupted
	Merge     string          `json:"merge,omitzero"`  // the state of the branch of a done task
}

func (tc *TaskChecked) kind() string { return tc.What }

func (tc *TaskChecked) apply(s *State, _ *wire.Record) {
	t := s.Tasks.ByID[tc.ID]
	switch tc.What {
	case events.TaskWorkspace:
		d := t.View.Details.Copy()
		d.Workspace = tc.Workspace
		t.View.Details = d
	case events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged:
		if t != nil && tc.Merge != "" {
			s.Tasks.beforeChange(t)
			t.setMerge(tc.Merge)
		}
	case events.TaskVerifying:
		s.move(t, wire.TaskVerifying)
	default:
		if tc.Failed {
			d := t.View.Details.Copy()
			d.Unverified++
			t.View.Details = d
		}
		s.move(t, wire.TaskRunning)
	}
}

func (tc *TaskChecked) check(s *State) error {
	switch tc.What {
	case events.TaskWorkspace:
		return s.Tasks.checkTask(tc.ID, heldStates...)
	case events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged:
		return nil
	}
	return s.Tasks.checkMove(tc.What, tc.ID)
}

func (tc *TaskChecked) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = tc.ID, tc.Agent, label(tc.ID, tc.Name)+" "+tc.Text
}

// setMerge notes the state of the branch of a done task.
func (t *Task) setMerge(is string) {
	d := t.View.Details.Copy()
	w := *d.Workspace
	w.Merge = is
	d.Workspace = &w
	t.View.Details = d
}

// Workspace returns the workspace of a task, or nil.
func (t *Task) Workspace() *wire.Workspace {
	if t.View.Details == nil {
		return nil
	}
	return t.View.Details.Workspace
}

// HandsOver reports whether a task is done and its dependents can use its work: its branch does not
// wait to be merged.
func (t *Task) HandsOver() bool { return t.View.State == wire.TaskDone && !t.Workspace().Holds() }

// Branches counts the done tasks with branches that the merge queue still has to merge, and the
// tasks with branches that it could not merge.
func (s *State) Branches() (waiting, refused int) {
	for _, t := range s.Tasks.List {
		if w := t.Workspace(); w != nil && t.View.State == wire.TaskDone {
			switch w.Merge {
			case hub.MergeWaiting:
				waiting++
			case hub.MergeRefused:
				refused++
			}
		}
	}
	return waiting, refused
}

// Unmerged returns the done tasks with branches that the merge queue has not merged.
func (s *State) Unmerged() (all []wire.Task) {
	for _, t := range s.Tasks.List {
		if t.View.State == wire.TaskDone && t.Workspace().Holds() {
			all = append(all, t.View.Shown())
		}
	}
	return all
}
