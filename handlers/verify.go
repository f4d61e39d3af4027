package handlers

import (
	"orchestrator/handlers/graph"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// checked records a step of the orchestrator for a task. It does nothing if the task has ended or
// has another agent by now.
func (td taskDecision) checked(m *wire.TaskChecked) {
	t := td.state.Tasks.ByID[m.Task]
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
	if t == nil || t.View.AssignedTo != m.Agent || t.View.State.Final() {
		return
	}
	if m.Kind == events.TaskVerifying && t.Work() == nil && t.Delegation() == nil {
		if t.View.State != wire.TaskRunning && td.state.Tasks.Graph.Open(t.Node) > 0 {
			return // since it was completed it needs another one
		}
		td.begin(t)
	}
	f := &state.TaskChecked{What: m.Kind, ID: t.View.ID, Name: t.View.Name, Agent: m.Agent, Text: m.Text, Workspace: m.Workspace, Failed: m.Failed}
	if td.state.Follows(f) == nil {
		td.fact("", t.View.ID, f)
	}
}

// endVerifications ends the verifications of an agent that goes on after the orchestrator has ended.
// Their commands ended with the orchestrator, so no report about them follows.
func (td taskDecision) endVerifications(a *state.KnownAgent, how string) {
	for _, t := range a.Holds {
		if t.View.State == wire.TaskVerifying {
			td.fact("", t.View.ID, &state.TaskChecked{
				What: events.TaskUnverified, ID: t.View.ID, Name: t.View.Name, Agent: a.ID, Text: "was not verified: the verification was " + how,
			})
		}
	}
}

// mergeEnded records the result of the queue for the branch of a task. Tasks that waited for its
// merge go on.
func (td taskDecision) mergeEnded(m *wire.TaskChecked, is string) {
	t := td.state.Tasks.ByID[m.Task]
	f := &state.TaskChecked{What: m.Kind, ID: m.Task, Name: m.Name, Agent: m.Agent, Text: m.Text}
	held := t != nil && t.View.State == wire.TaskDone && t.Workspace().Holds()
	if held {
		f.Merge = is
	}
	td.fact("", m.Task, f)
	if held && t.HandsOver() {
		td.links().handOver(t)
	}
}

// handOver resolves the dependencies on a done task that no longer waits for its merge.
func (ld linkDecision) handOver(t *state.Task) {
	_, unblocked := ld.resolve(t)
	ld.unblock(unblocked)
}

// hold makes a task wait for another one before its agent begins it. A task that was given to its agent by hand stays
// with it; any other one is pending again.
func (td taskDecision) hold(m *wire.TaskHeld) {
	t, up := td.state.Tasks.ByID[m.Task], td.state.Tasks.ByID[m.On]
	if t == nil || up == nil || t.View.AssignedTo != m.Agent || up.View.State.Final() || t.Work() != nil || t.Delegation() != nil {
		return
	}
	if t.View.State != wire.TaskAssigned && t.View.State != wire.TaskRunning {
		return
	}
	added := &state.DependencyAdded{ID: t.View.ID, Name: t.View.Name, Dependency: hub.Dependency{On: up.View.ID, Type: hub.DependsBlocks}}
	if _, there := td.state.Tasks.Graph.Find(t.Node, up.Node, graph.Blocks, ""); !there {
		td.fact("", t.View.ID, added)
	}
	if t.View.State == wire.TaskAssigned && !t.Asks() && t.Wants() == nil {
		return // its agent gets a notice when it can begin
	}
	td.recall(t, t.View.AssignedTo, t.Run, "It waits: "+m.Text)
	td.requeue(t, &state.TaskRequeued{Why: "it waits: " + m.Text, Blameless: true})
}

// queueClosed lets tasks go on that wait for merges which no queue makes now.
func (td taskDecision) queueClosed() {
	if td.state.Rules.MergeQueue {
		return
	}
	for _, t := range td.state.Tasks.List {
		if t.View.State == wire.TaskDone && t.Workspace().Holds() {
			td.fact("", t.View.ID, &state.TaskChecked{
				What: events.TaskUnmerged, ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Merge: hub.MergeLeft,
				Text: "is not merged: the merge queue is off. Merge it: orchestrator task merge " + state.Short(t.View.ID),
			})
			td.links().handOver(t)
		}
	}
}

// Held returns a task that an agent holds, and whether the agent could complete it now.
func (s *State) Held(agent, id string) (t wire.Task, completable bool) {
	td := (&decision{turn: &turn{state: s.State}, from: Actor{Kind: Agent, Name: agent}}).tasks()
	k, err := td.held(id, "completed")
	if err != nil || k.View.AssignedTo != agent || k.View.State.Final() {
		return t, false
	}
	if k.Work() == nil && k.Delegation() == nil {
		_, err = td.reportableTask(id, "completed")
	}
	t = s.Tasks.Shown(k)
	t.WaitsFor = s.Tasks.WaitsFor(k)
	if k.Extra != nil {
		used := k.Extra.Used
		t.Details = t.Details.Copy()
		t.Used = &used
	}
	return t, err == nil
}
