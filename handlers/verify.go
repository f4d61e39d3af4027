package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// taskChecked records what the orchestrator itself does for a task: it makes its workspace, and runs the
// commands that verify what its agent has completed.
type taskChecked struct {
	what      string
	ID        string          `json:"task"`
	Name      string          `json:"name"`
	Agent     string          `json:"agent"`
	Text      string          `json:"text,omitzero"`
	Workspace *wire.Workspace `json:"workspace,omitzero"`
	Failed    bool            `json:"failed,omitzero"` // and not interrupted
}

func (tc *taskChecked) kind() string { return tc.what }

func (tc *taskChecked) apply(s *State, _ *wire.Record) {
	k := s.tasks.byID[tc.ID]
	switch tc.what {
	case events.TaskWorkspace:
		d := k.view.Details.Copy()
		d.Workspace = tc.Workspace
		k.view.Details = d
	case events.TaskMerged, events.TaskUnmerged: // the task has ended
	case events.TaskVerifying:
		s.move(k, wire.TaskVerifying)
	default:
		if tc.Failed {
			d := k.view.Details.Copy()
			d.Unverified++
			k.view.Details = d
		}
		s.move(k, wire.TaskRunning)
	}
}

func (tc *taskChecked) check(s *State) error {
	switch tc.what {
	case events.TaskWorkspace:
		return s.tasks.checkTask(tc.ID, heldStates...)
	case events.TaskMerged, events.TaskUnmerged:
		return nil
	case events.TaskVerifying:
		return s.tasks.checkTask(tc.ID, wire.TaskRunning)
	}
	return s.tasks.checkTask(tc.ID, wire.TaskVerifying)
}

func (tc *taskChecked) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = tc.ID, tc.Agent, label(tc.ID, tc.Name)+" "+tc.Text
}

// checked records what was done for a task. If the task has ended meanwhile, or has another agent, it does
// nothing.
func (td taskDecision) checked(m *wire.TaskChecked) {
	k := td.state.tasks.byID[m.Task]
	if m.Kind == events.TaskMerged || m.Kind == events.TaskUnmerged {
		td.fact("", m.Task, &taskChecked{what: m.Kind, ID: m.Task, Name: m.Name, Agent: m.Agent, Text: m.Text})
		return
	}
	if k == nil || k.view.AssignedTo != m.Agent || k.view.State.Final() {
		return
	}
	if m.Kind == events.TaskVerifying && k.work() == nil && k.delegation() == nil {
		if k.view.State != wire.TaskRunning && td.state.tasks.graph.Open(k.node) > 0 {
			return // since it was completed it needs another one
		}
		td.begin(k)
	}
	f := &taskChecked{what: m.Kind, ID: k.view.ID, Name: k.view.Name, Agent: m.Agent, Text: m.Text, Workspace: m.Workspace, Failed: m.Failed}
	if f.check(td.state) == nil {
		td.fact("", k.view.ID, f)
	}
}

// Held returns a task that an agent holds, and whether the agent could complete it now.
func (s *State) Held(agent, id string) (t wire.Task, completable bool) {
	td := (&decision{turn: &turn{state: s}, from: Actor{Kind: Agent, Name: agent}}).tasks()
	k, err := td.held(id, "completed")
	if err != nil || k.view.AssignedTo != agent || k.view.State.Final() {
		return t, false
	}
	if k.work() == nil && k.delegation() == nil {
		_, err = td.reportableTask(id, "completed")
	}
	t = s.tasks.shown(k)
	if k.more != nil {
		used := k.more.used
		t.Details = t.Details.Copy()
		t.Used = &used
	}
	return t, err == nil
}
