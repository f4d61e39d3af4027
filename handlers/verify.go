package handlers

import (
	"orchestrator/handlers/graph"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
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
	Merge     string          `json:"merge,omitzero"`  // what becomes of the branch of a done task
}

func (tc *taskChecked) kind() string { return tc.what }

func (tc *taskChecked) apply(s *core, _ *wire.Record) {
	k := s.tasks.byID[tc.ID]
	switch tc.what {
	case events.TaskWorkspace:
		d := k.view.Details.Copy()
		d.Workspace = tc.Workspace
		k.view.Details = d
	case events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged:
		if k != nil && tc.Merge != "" {
			s.tasks.beforeChange(k)
			k.setMerge(tc.Merge)
		}
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

func (tc *taskChecked) check(s *core) error {
	switch tc.what {
	case events.TaskWorkspace:
		return s.tasks.checkTask(tc.ID, heldStates...)
	case events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged:
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
	switch m.Kind {
	case events.TaskMerged:
		td.mergeEnded(m, hub.MergeDone)
		return
	case events.TaskUnmerged:
		td.mergeEnded(m, hub.MergeRefused)
		return
	case events.TaskUnchanged:
		td.mergeEnded(m, hub.MergeUnchanged)
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
	if follows(td.state, f) == nil {
		td.fact("", k.view.ID, f)
	}
}

// setMerge notes what became of the branch of a done task.
func (t *task) setMerge(is string) {
	d := t.view.Details.Copy()
	w := *d.Workspace
	w.Merge = is
	d.Workspace = &w
	t.view.Details = d
}

// workspace returns the workspace of a task, or nil.
func (t *task) workspace() *wire.Workspace {
	if t.view.Details == nil {
		return nil
	}
	return t.view.Details.Workspace
}

// handsOver reports whether a task is done and what it has made can be used by those that depend on it: its
// branch does not wait to be merged.
func (t *task) handsOver() bool { return t.view.State == wire.TaskDone && !t.workspace().Holds() }

// mergeEnded records what the queue has done about the branch of a task. Tasks that waited for its merge go on.
func (td taskDecision) mergeEnded(m *wire.TaskChecked, is string) {
	k := td.state.tasks.byID[m.Task]
	f := &taskChecked{what: m.Kind, ID: m.Task, Name: m.Name, Agent: m.Agent, Text: m.Text}
	held := k != nil && k.view.State == wire.TaskDone && k.workspace().Holds()
	if held {
		f.Merge = is
	}
	td.fact("", m.Task, f)
	if held && k.handsOver() {
		td.links().handOver(k)
	}
}

// handOver resolves the dependencies on a done task whose branch is no longer waited for.
func (ld linkDecision) handOver(k *task) {
	_, unblocked := ld.resolve(k)
	ld.unblock(unblocked)
}

// hold makes a task wait for another one before its agent begins it. A task that was given to its agent by hand stays
// with it; any other one is pending again.
func (td taskDecision) hold(m *wire.TaskHeld) {
	k, up := td.state.tasks.byID[m.Task], td.state.tasks.byID[m.On]
	if k == nil || up == nil || k.view.AssignedTo != m.Agent || up.view.State.Final() || k.work() != nil || k.delegation() != nil {
		return
	}
	if k.view.State != wire.TaskAssigned && k.view.State != wire.TaskRunning {
		return
	}
	added := &dependencyAdded{ID: k.view.ID, Name: k.view.Name, Dependency: hub.Dependency{On: up.view.ID, Type: hub.DependsBlocks}}
	if _, there := td.state.tasks.graph.Find(k.node, up.node, graph.Blocks, ""); !there {
		td.fact("", k.view.ID, added)
	}
	if k.view.State == wire.TaskAssigned && !k.asks() && k.wants() == nil {
		return // its agent is told when it can begin
	}
	td.recall(k, k.view.AssignedTo, k.run, "It waits: "+m.Text)
	td.requeue(k, &taskRequeued{Why: "it waits: " + m.Text, Blameless: true})
}

// queueClosed lets tasks go on that wait for merges which no queue makes now.
func (td taskDecision) queueClosed() {
	if td.state.rules.MergeQueue {
		return
	}
	for _, k := range td.state.tasks.list {
		if k.view.State == wire.TaskDone && k.workspace().Holds() {
			td.fact("", k.view.ID, &taskChecked{
				what: events.TaskUnmerged, ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Merge: hub.MergeLeft,
				Text: "is not merged: there is no merge queue now. Merge it: orchestrator task merge " + short(k.view.ID),
			})
			td.links().handOver(k)
		}
	}
}

// Branches counts the done tasks whose branches the merge queue still has to merge, and those that it could not merge.
func (s *core) Branches() (waiting, refused int) {
	for _, k := range s.tasks.list {
		if w := k.workspace(); w != nil && k.view.State == wire.TaskDone {
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

// Unmerged returns the done tasks whose branches the merge queue has not merged.
func (s *core) Unmerged() (all []wire.Task) {
	for _, k := range s.tasks.list {
		if k.view.State == wire.TaskDone && k.workspace().Holds() {
			all = append(all, k.view.shown())
		}
	}
	return all
}

// Held returns a task that an agent holds, and whether the agent could complete it now.
func (s *State) Held(agent, id string) (t wire.Task, completable bool) {
	td := (&decision{turn: &turn{state: s.core}, from: Actor{Kind: Agent, Name: agent}}).tasks()
	k, err := td.held(id, "completed")
	if err != nil || k.view.AssignedTo != agent || k.view.State.Final() {
		return t, false
	}
	if k.work() == nil && k.delegation() == nil {
		_, err = td.reportableTask(id, "completed")
	}
	t = s.tasks.shown(k)
	t.WaitsFor = s.tasks.waitsFor(k)
	if k.more != nil {
		used := k.more.used
		t.Details = t.Details.Copy()
		t.Used = &used
	}
	return t, err == nil
}
