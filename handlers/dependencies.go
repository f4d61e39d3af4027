package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/graph"
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
		if ld.state.tasks.isVain(*d) {
			vain = append(vain, d.On)
		}
	}
	return vain, nil
}

// mayHave decides what a task with some details gets of another: the whole result, a promised
// contract or nothing. It marks the dependency as private when the caller may not read the other.
func (ld linkDecision) mayHave(up *task, d *hub.Dependency, of *wire.Details, pointer string) *wire.Error {
	if up.submittedBy(ld.from) || ld.tasks().reads(up) || ld.shares(up, of) {
		return nil
	}
	d.Private = true
	if d.Type != hub.DependsInput || up.promises(d.Contract) {
		return nil
	}
	return &wire.Error{
		Code:    wire.CodeDenied,
		Message: fmt.Sprintf("task %s is not yours, and its spec does not promise %q: you cannot have it as an input", d.On, d.Contract),
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
func (ld linkDecision) shares(up *task, d *wire.Details) bool {
	its := up.view.Details
	if its == nil || d == nil {
		return false
	}
	if its.ProjectID != "" && its.ProjectID == d.ProjectID {
		return true
	}
	if parent := ld.state.tasks.find(d.ParentTaskID); parent != nil && its.ParentTaskID == d.ParentTaskID && (parent.submittedBy(ld.from) || ld.tasks().reads(parent)) {
		return true
	}
	x := ld.state.sessions.byID[d.SessionID]
	return its.SessionID == d.SessionID && x != nil && x.member(ld.from.Name) != nil
}

// promises reports whether the spec of a task declares a contract.
func (t *task) promises(key string) bool {
	return t.more != nil && slices.ContainsFunc(t.more.promises, func(p hub.Promise) bool { return p.Key == key })
}

// isVain reports whether a dependency would hold a task back forever, because the other task
// failed or was cancelled.
func (t *tasks) isVain(d hub.Dependency) bool {
	on := t.byID[d.On].view.State
	return gates(kindOf(d.Type)) && on.Final() && on != wire.TaskDone
}

// mayDepend returns an error if no task can have a dependency.
func (ld linkDecision) mayDepend(d *hub.Dependency, of *wire.Details, patient bool, pointer string) *wire.Error {
	on := ld.state.tasks.find(d.On)
	if on == nil {
		return errorf(wire.CodeNotFound, details{"taskId": brief(d.On), "pointer": pointer}, "there is no task %q to depend on", brief(d.On))
	}
	if ld.state.tasks.isVain(*d) && !ld.state.rules.staysBlocked(patient) {
		return &wire.Error{ // without its name: it may be another agent's
			Code:    wire.CodeConflict,
			Message: fmt.Sprintf("task %s is %s: what depends on it would never run", d.On, on.view.State),
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
		return errorf(wire.CodeConflict, details{"taskId": other, "contractKey": d.Contract, "reason": "contract_taken", "pointer": pointer},
			"%q is delivered by task %s already, and one would hide the other", d.Contract, other)
	}
	taken[d.Contract] = d.On
	return nil
}

// staysBlocked reports whether a task stays pending after a dependency has failed, and waits for
// a person. The configuration decides, or else the protocol by which the task was submitted.
func (r *Rules) staysBlocked(patient bool) bool {
	switch r.OnDependencyFailure {
	case "block":
		return true
	case "cancel":
		return false
	}
	return patient
}

func addDependency(ld linkDecision, r *wire.AddDependency) (*wire.LinkReply, *wire.Error) {
	k, err := ld.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := ld.mayRelink(k, kindOf(r.Dependency.Type)); err != nil {
		return nil, err
	}
	if err := ld.mayAdd(k, &r.Dependency); err != nil {
		return nil, err
	}
	if e, there := ld.state.tasks.graph.Find(k.node, ld.state.tasks.byID[r.Dependency.On].node, kindOf(r.Dependency.Type), r.Dependency.Contract); there {
		if ld.state.tasks.graph.Edge(e).Private && !r.Dependency.Private { // its author may read the other
			ld.fact("", k.view.ID, &dependencyAdded{ID: k.view.ID, Name: k.view.Name, Dependency: r.Dependency, Shown: true, Request: ld.mark()})
		}
		return &wire.LinkReply{Dependency: ld.state.tasks.shownLink(e)}, nil
	}
	for _, o := range r.Dependency.Oddities {
		ld.tasks().odd(k, o)
	}
	ld.fact("", k.view.ID, &dependencyAdded{ID: k.view.ID, Name: k.view.Name, Dependency: r.Dependency, Request: ld.mark()})
	e, _ := ld.state.tasks.graph.Find(k.node, ld.state.tasks.byID[r.Dependency.On].node, kindOf(r.Dependency.Type), r.Dependency.Contract)
	ld.missLate(k, []hub.Dependency{r.Dependency})
	ld.warnVain(k, r.Dependency)
	return &wire.LinkReply{Dependency: ld.state.tasks.shownLink(e)}, nil
}

// mayAdd returns why a task cannot depend on another.
func (ld linkDecision) mayAdd(k *task, d *hub.Dependency) *wire.Error {
	if err := ld.mayDepend(d, k.view.Details, k.patient(), "/payload/dependsOnTaskId"); err != nil {
		return err
	}
	taken := make(map[string]string)
	for e := range ld.state.tasks.graph.Needs(k.node) {
		if v := ld.state.tasks.graph.Edge(e); v.Kind == graph.Input {
			taken[v.Key] = ld.state.tasks.nodes[v.Up].view.ID
		}
	}
	if err := collides(taken, *d, "/payload/contractKey"); err != nil {
		return err
	}
	if !gates(kindOf(d.Type)) {
		if d.On == k.view.ID {
			return circle([]string{d.On, d.On})
		}
		return nil
	}
	nodes := ld.state.tasks.graph.Circle(k.node, ld.state.tasks.byID[d.On].node)
	if nodes == nil {
		return nil
	}
	path := make([]string, 0, len(nodes))
	for _, n := range nodes {
		path = append(path, ld.state.tasks.nodes[n].view.ID)
	}
	return circle(path)
}

// maxPathLength is the maximum length of a cycle in an error.
const maxPathLength = 100

// circle returns the error for tasks that would wait for each other.
func circle(path []string) *wire.Error {
	message := fmt.Sprintf("task %s would wait for itself, by way of %d tasks", path[0], len(path)-1)
	if len(path) == 2 {
		message = fmt.Sprintf("task %s cannot depend on itself", path[0])
	}
	if len(path) > maxPathLength {
		path = append(slices.Clone(path[:maxPathLength-1]), path[len(path)-1])
	}
	return errorf(wire.CodeConflict, details{"code": "TASK_GRAPH_CYCLE", "reason": "cycle", "path": path}, "%s", message)
}

// mayRelink returns an error if the dependencies of a task can no longer change.
func (ld linkDecision) mayRelink(k *task, kind graph.Kind) *wire.Error {
	if d := k.delegation(); d != nil && d.out != "" && gates(kind) { // its agent has received it
		return wrongState(k, "made to depend on something else")
	}
	if w := k.work(); w != nil && w.phase != session.PhaseHeld && gates(kind) { // its developer has received it
		return wrongState(k, "made to depend on something else")
	}
	switch k.view.State {
	case wire.TaskPending, wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview:
		return nil
	case wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskInReview, wire.TaskVerifying:
		if !gates(kind) {
			return nil
		}
	}
	return wrongState(k, "made to depend on something else")
}

// warnVain records that a task waits for one that has failed.
func (ld linkDecision) warnVain(k *task, d hub.Dependency) {
	if ld.state.tasks.isVain(d) {
		ld.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: d.On})
	}
}

func removeDependency(ld linkDecision, r *wire.RemoveDependency) (*wire.LinkReply, *wire.Error) {
	k, err := ld.tasks().manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	e, found := ld.state.tasks.findLink(k, r.DependencyID)
	if !found {
		return nil, errorf(wire.CodeNotFound, details{"taskId": k.view.ID, "dependencyId": r.DependencyID},
			"task %s has no dependency %q", k.label(), r.DependencyID)
	}
	v := ld.state.tasks.graph.Edge(e)
	if err := ld.mayRelink(k, v.Kind); err != nil {
		return nil, err
	}
	link := ld.state.tasks.shownLink(e)
	waited := ld.state.tasks.graph.Open(k.node) > 0
	ld.fact("", k.view.ID, &dependencyGone{ID: k.view.ID, Name: k.view.Name, Number: v.Number, On: link.On, Request: ld.mark()})
	if waited && ld.state.tasks.graph.Open(k.node) == 0 {
		ld.unblock([]*task{k})
	}
	return &wire.LinkReply{Dependency: link}, nil
}

// findLink returns a dependency of a task, given by its id or by the id of the other task. Of
// several it prefers an unresolved one.
func (t *tasks) findLink(k *task, id string) (found graph.Edge, ok bool) {
	for e := range t.graph.Needs(k.node) {
		v := t.graph.Edge(e)
		if linkID(v.Number) == id {
			return e, true
		}
		if t.nodes[v.Up].view.ID == id && (!ok || t.graph.Edge(found).Resolved && !v.Resolved) {
			found, ok = e, true
		}
	}
	return found, ok
}
