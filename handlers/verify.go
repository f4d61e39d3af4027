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
	k := td.state.Tasks.ByID[m.Task]
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
	if k == nil || k.View.AssignedTo != m.Agent || k.View.State.Final() {
		return
	}
	if m.Kind == events.TaskVerifying && k.Work() == nil && k.Delegation() == nil {
		if k.View.State != wire.TaskRunning && td.state.Tasks.Graph.Open(k.Node) > 0 {
			return // since it was completed it needs another one
		}
		td.begin(k)
	}
	f := &state.TaskChecked{What: m.Kind, ID: k.View.ID, Name: k.View.Name, Agent: m.Agent, Text: m.Text, Workspace: m.Workspace, Failed: m.Failed}
	if td.state.Follows(f) == nil {
		td.fact("", k.View.ID, f)
	}
}

// endVerifications ends the verifications of an agent that goes on after the orchestrator has ended.
// Their commands ended with the orchestrator, so no report about them follows.
func (td taskDecision) endVerifications(a *state.KnownAgent, how string) {
	for _, k := range a.Holds {
		if k.View.State == wire.TaskVerifying {
			td.fact("", k.View.ID, &state.TaskChecked{
				What: events.TaskUnverified, ID: k.View.ID, Name: k.View.Name, Agent: a.ID, Text: "was not verified: the verification was " + how,
			})
		}
	}
}

// mergeEnded records the result of the queue for the branch of a task. Tasks that waited for its
// merge go on.
func (td taskDecision) mergeEnded(m *wire.TaskChecked, is string) {
	k := td.state.Tasks.ByID[m.Task]
	f := &state.TaskChecked{What: m.Kind, ID: m.Task, Name: m.Name, Agent: m.Agent, Text: m.Text}
	held := k != nil && k.View.State == wire.TaskDone && k.Workspace().Holds()
	if held {
		f.Merge = is
	}
	td.fact("", m.Task, f)
	if held && k.HandsOver() {
		td.links().handOver(k)
	}
}

// handOver resolves the dependencies on a done task that no longer waits for its merge.
func (ld linkDecision) handOver(k *state.Task) {
	_, unblocked := ld.resolve(k)
	ld.unblock(unblocked)
}

// hold makes a task wait for another one before its agent begins it. A task that was given to its agent by hand stays
// with it; any other one is pending again.
func (td taskDecision) hold(m *wire.TaskHeld) {
	k, up := td.state.Tasks.ByID[m.Task], td.state.Tasks.ByID[m.On]
	if k == nil || up == nil || k.View.AssignedTo != m.Agent || up.View.State.Final() || k.Work() != nil || k.Delegation() != nil {
		return
	}
	if k.View.State != wire.TaskAssigned && k.View.State != wire.TaskRunning {
		return
	}
	added := &state.DependencyAdded{ID: k.View.ID, Name: k.View.Name, Dependency: hub.Dependency{On: up.View.ID, Type: hub.DependsBlocks}}
	if _, there := td.state.Tasks.Graph.Find(k.Node, up.Node, graph.Blocks, ""); !there {
		td.fact("", k.View.ID, added)
	}
	if k.View.State == wire.TaskAssigned && !k.Asks() && k.Wants() == nil {
		return // its agent gets a notice when it can begin
	}
	td.recall(k, k.View.AssignedTo, k.Run, "It waits: "+m.Text)
	td.requeue(k, &state.TaskRequeued{Why: "it waits: " + m.Text, Blameless: true})
}

// queueClosed lets tasks go on that wait for merges which no queue makes now.
func (td taskDecision) queueClosed() {
	if td.state.Rules.MergeQueue {
		return
	}
	for _, k := range td.state.Tasks.List {
		if k.View.State == wire.TaskDone && k.Workspace().Holds() {
			td.fact("", k.View.ID, &state.TaskChecked{
				What: events.TaskUnmerged, ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Merge: hub.MergeLeft,
				Text: "is not merged: the merge queue is off. Merge it: orchestrator task merge " + state.Short(k.View.ID),
			})
			td.links().handOver(k)
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
