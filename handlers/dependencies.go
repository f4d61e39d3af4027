package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

var dependencyOperations = []Operation{
	bind("add-dependency", (*decision).links, addDependency),
	bind("remove-dependency", (*decision).links, removeDependency),
}

// dependencies checks the dependencies of a new task. A dependency on a task that has failed is
// vain: depending on the rules it is refused or returned. There can be no cycle, since a new
// task depends only on older ones.
func (ld linkDecision) dependencies(needs []hub.Dependency, of *wire.Details, patient bool) (vain []string, err *wire.Error) {
	taken := make(map[string]string)
	for i := range needs {
		d := &needs[i]
		pointer := fmt.Sprintf("/payload/dependencies/%d", i)
		if err := ld.mayDepend(d, of, patient, pointer); err != nil {
			return nil, err
		}
		if err := collides(taken, *d, pointer); err != nil {
			return nil, err
		}
		if ld.state.Tasks.IsUnmeetable(*d) {
			vain = append(vain, d.On)
		}
	}
	return vain, nil
}

// mayHave decides the input that a task with some details gets from another task: the whole result,
// a promised contract or none. It marks the dependency as private when the caller may not read the
// other task.
func (ld linkDecision) mayHave(up *state.Task, d *hub.Dependency, of *wire.Details, pointer string) *wire.Error {
	if up.SubmittedBy(ld.from) || ld.tasks().reads(up) || ld.shares(up, of) {
		return nil
	}
	d.Private = true
	if d.Type != hub.DependsInput || up.Promises(d.Contract) {
		return nil
	}
	return &wire.Error{
		Code:    wire.CodeDenied,
		Message: fmt.Sprintf("task %s is not yours, and its spec does not promise %q: you cannot use it as an input", d.On, d.Contract),
		Details: map[string]any{
			"taskId": d.On, "contractKey": d.Contract, "pointer": pointer,
			"hint": "tasks of one session, one project or one parent task may read each other, and each task what a spec declares under contracts",
		},
	}
}

// shares reports whether a task belongs to the same session, project or parent task as one with
// the details d. A session counts only for its members, and a parent task only for callers that
// may read it, since any agent can name them. The name of a project is trusted: an agent that
// names a project may read its results.
func (ld linkDecision) shares(up *state.Task, d *wire.Details) bool {
	its := up.View.Details
	if its == nil || d == nil {
		return false
	}
	if its.ProjectID != "" && its.ProjectID == d.ProjectID {
		return true
	}
	if parent := ld.state.Tasks.Find(d.ParentTaskID); parent != nil && its.ParentTaskID == d.ParentTaskID && (parent.SubmittedBy(ld.from) || ld.tasks().reads(parent)) {
		return true
	}
	x := ld.state.Sessions.ByID[d.SessionID]
	return its.SessionID == d.SessionID && x != nil && x.Member(ld.from.Name) != nil
}

// mayDepend returns an error if no task can have a dependency.
func (ld linkDecision) mayDepend(d *hub.Dependency, of *wire.Details, patient bool, pointer string) *wire.Error {
	on := ld.state.Tasks.Find(d.On)
	if on == nil {
		return state.Errorf(wire.CodeNotFound, state.Details{"taskId": brief(d.On), "pointer": pointer}, "task %q to depend on does not exist", brief(d.On))
	}
	if ld.state.Tasks.IsUnmeetable(*d) && !ld.state.Rules.StaysBlocked(patient) {
		return &wire.Error{ // without its name: it may be another agent's
			Code:    wire.CodeConflict,
			Message: fmt.Sprintf("task %s is %s: a task that depends on it would never run", d.On, on.View.State),
			Details: map[string]any{"taskId": d.On, "reason": "dependency_failed", "pointer": pointer},
		}
	}
	return ld.mayHave(on, d, of, pointer)
}

// collides refuses two tasks that would deliver under the same contract, since one would hide
// the other.
func collides(taken map[string]string, d hub.Dependency, pointer string) *wire.Error {
	if d.Type != hub.DependsInput {
		return nil
	}
	if other, there := taken[d.Contract]; there && other != d.On {
		return state.Errorf(wire.CodeConflict, state.Details{"taskId": other, "contractKey": d.Contract, "reason": "contract_taken", "pointer": pointer},
			"%q is delivered by task %s already, and one would hide the other", d.Contract, other)
	}
	taken[d.Contract] = d.On
	return nil
}

func addDependency(ld linkDecision, r *wire.AddDependency) (*wire.LinkReply, *wire.Error) {
	t, err := ld.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := ld.mayRelink(t, state.KindOf(r.Dependency.Type)); err != nil {
		return nil, err
	}
	if err := ld.mayAdd(t, &r.Dependency); err != nil {
		return nil, err
	}
	if e, there := ld.state.Tasks.Graph.Find(t.Node, ld.state.Tasks.ByID[r.Dependency.On].Node, state.KindOf(r.Dependency.Type), r.Dependency.Contract); there {
		if ld.state.Tasks.Graph.Edge(e).Private && !r.Dependency.Private { // its author may read the other
			ld.fact("", t.View.ID, &state.DependencyAdded{ID: t.View.ID, Name: t.View.Name, Dependency: r.Dependency, Shown: true, Request: ld.mark()})
		}
		return &wire.LinkReply{Dependency: ld.state.Tasks.ShownLink(e)}, nil
	}
	for _, o := range r.Dependency.Oddities {
		ld.tasks().odd(t, o)
	}
	ld.fact("", t.View.ID, &state.DependencyAdded{ID: t.View.ID, Name: t.View.Name, Dependency: r.Dependency, Request: ld.mark()})
	e, _ := ld.state.Tasks.Graph.Find(t.Node, ld.state.Tasks.ByID[r.Dependency.On].Node, state.KindOf(r.Dependency.Type), r.Dependency.Contract)
	ld.missLate(t, []hub.Dependency{r.Dependency})
	ld.warnVain(t, r.Dependency)
	return &wire.LinkReply{Dependency: ld.state.Tasks.ShownLink(e)}, nil
}

// mayAdd returns why a task cannot depend on another.
func (ld linkDecision) mayAdd(t *state.Task, d *hub.Dependency) *wire.Error {
	if err := ld.mayDepend(d, t.View.Details, t.Patient(), "/payload/dependsOnTaskId"); err != nil {
		return err
	}
	taken := make(map[string]string)
	for e := range ld.state.Tasks.Graph.Needs(t.Node) {
		if v := ld.state.Tasks.Graph.Edge(e); v.Kind == graph.Input {
			taken[v.Key] = ld.state.Tasks.Nodes[v.Up].View.ID
		}
	}
	if err := collides(taken, *d, "/payload/contractKey"); err != nil {
		return err
	}
	if !state.Gates(state.KindOf(d.Type)) {
		if d.On == t.View.ID {
			return circle([]string{d.On, d.On})
		}
		return nil
	}
	nodes := ld.state.Tasks.Graph.Circle(t.Node, ld.state.Tasks.ByID[d.On].Node)
	if nodes == nil {
		return nil
	}
	path := make([]string, 0, len(nodes))
	for _, n := range nodes {
		path = append(path, ld.state.Tasks.Nodes[n].View.ID)
	}
	return circle(path)
}

// maxPathLength is the maximum length of a cycle in an error.
const maxPathLength = 100

// circle returns the error for tasks that would wait for each other.
func circle(path []string) *wire.Error {
	message := fmt.Sprintf("task %s would wait for itself, through %d tasks", path[0], len(path)-1)
	if len(path) == 2 {
		message = fmt.Sprintf("task %s cannot depend on itself", path[0])
	}
	if len(path) > maxPathLength {
		path = append(slices.Clone(path[:maxPathLength-1]), path[len(path)-1])
	}
	return state.Errorf(wire.CodeConflict, state.Details{"code": "TASK_GRAPH_CYCLE", "reason": "cycle", "path": path}, "%s", message)
}

// mayRelink returns an error if the dependencies of a task can no longer change.
func (ld linkDecision) mayRelink(t *state.Task, kind graph.Kind) *wire.Error {
	if d := t.Delegation(); d != nil && d.Out != "" && state.Gates(kind) { // its agent has received it
		return wrongState(t, "given other dependencies")
	}
	if w := t.Work(); w != nil && w.Phase != session.PhaseHeld && state.Gates(kind) { // its developer has received it
		return wrongState(t, "given other dependencies")
	}
	switch t.View.State {
	case wire.TaskPending, wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview:
		return nil
	case wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskInReview, wire.TaskVerifying:
		if !state.Gates(kind) {
			return nil
		}
	}
	return wrongState(t, "given other dependencies")
}

// warnVain records that a task waits for one that has failed.
func (ld linkDecision) warnVain(t *state.Task, d hub.Dependency) {
	if ld.state.Tasks.IsUnmeetable(d) {
		ld.fact("", t.View.ID, &state.TaskBlocked{ID: t.View.ID, Name: t.View.Name, Upstream: d.On})
	}
}

func removeDependency(ld linkDecision, r *wire.RemoveDependency) (*wire.LinkReply, *wire.Error) {
	t, err := ld.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	e, found := ld.state.Tasks.FindLink(t, r.DependencyID)
	if !found {
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"taskId": t.View.ID, "dependencyId": r.DependencyID},
			"task %s has no dependency %q", t.Label(), r.DependencyID)
	}
	v := ld.state.Tasks.Graph.Edge(e)
	if err := ld.mayRelink(t, v.Kind); err != nil {
		return nil, err
	}
	link := ld.state.Tasks.ShownLink(e)
	waited := ld.state.Tasks.Graph.Open(t.Node) > 0
	ld.fact("", t.View.ID, &state.DependencyGone{ID: t.View.ID, Name: t.View.Name, Number: v.Number, On: link.On, Request: ld.mark()})
	if waited && ld.state.Tasks.Graph.Open(t.Node) == 0 {
		ld.unblock([]*state.Task{t})
	}
	return &wire.LinkReply{Dependency: link}, nil
}
