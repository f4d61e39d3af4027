package handlers

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerAssignment decides about an assignment. It is a new task, or a revision of one whose
// review requests changes. A revision has the same task id, or a new one and the same
// correlation_id.
func (wd workDecision) considerAssignment(x *messageContext, a *session.Assignment) *wire.Error {
	id := a.Task.TaskID
	if wd.state.agents.byID[x.to.AgentID] == nil {
		return rejected(atTo, fmt.Sprintf("no agent called %q is known yet", x.to.AgentID))
	}
	if wd.passed(a.Deadline) {
		x.notes = append(x.notes, "/payload/deadline: it has passed already")
	}
	x.task = id
	if k := wd.state.tasks.byID[id]; k != nil {
		return wd.considerRevision(x, a, k)
	}
	needs, err := assignmentNeeds(a)
	if err != nil {
		return err
	}
	vain, err := wd.links().dependencies(needs, &wire.Details{SessionID: x.of.spec.ID, ParentTaskID: wd.state.agents.parentOf(x.from.AgentID)}, true)
	if err != nil {
		return err
	}
	x.effect, x.created = effectAssign, &newWork{needs: needs, vain: vain, revises: wd.revised(x, a)}
	if x.chain = x.CorrelationID; x.chain == "" {
		x.chain = x.MessageID
	}
	for _, d := range needs {
		if gates(kindOf(d.Type)) && wd.state.tasks.byID[d.On].view.State != wire.TaskDone {
			x.fate = fateHeld
		}
	}
	return nil
}

// assignmentNeeds returns the dependencies in an assignment.
func assignmentNeeds(a *session.Assignment) (needs []hub.Dependency, err *wire.Error) {
	kinds := map[string]string{session.DependsHard: hub.DependsBlocks, hub.DependsSoft: hub.DependsSoft}
	for i, d := range a.Dependencies {
		if d.TaskID != a.Task.TaskID {
			return nil, &wire.Error{
				Code: wire.CodeInvalid, Message: fmt.Sprintf("task_id must be that of the task that is assigned, not %.80q", d.TaskID),
				Details: map[string]any{"pointer": fmt.Sprintf("/payload/dependencies/%d/task_id", i)},
			}
		}
		for _, on := range d.DependsOn {
			needs = append(needs, hub.Dependency{On: on, Type: kinds[d.Type]})
		}
	}
	return needs, nil
}

// considerRevision decides about an assignment of an existing task.
func (wd workDecision) considerRevision(x *messageContext, a *session.Assignment, k *task) *wire.Error {
	w := wd.state.tasks.workOn(x.of, k.view.ID)
	if w == nil || w.phase != wire.PhaseRevise || w.revision != nil {
		state := string(k.view.State)
		how := state
		if w != nil {
			state, how = w.phase, w.how()
		}
		return &wire.Error{
			Code:    wire.CodeConflict,
			Message: fmt.Sprintf("there is a task %.80q already, and it is %s: only one whose review wants changes is assigned again", k.view.ID, how),
			Details: map[string]any{"pointer": "/payload/task/task_id", "reason": "task_id_taken", "task_id": k.view.ID, "state": state},
		}
	}
	if len(a.Dependencies) > 0 {
		x.notes = append(x.notes, "/payload/dependencies: a revision waits for nothing: they are passed over")
	}
	x.chain = w.chain
	x.effect, x.work = effectRevise, w
	return nil
}

// revised returns the work that an assignment with a new id revises, or nil. Some architects use
// one correlation_id for unrelated tasks. If other open works share it, the assignment is a
// revision only if it lists earlier attempts.
func (wd workDecision) revised(x *messageContext, a *session.Assignment) (revised *work) {
	alone := true
	for _, w := range x.of.open {
		switch {
		case w.chain != x.CorrelationID || x.CorrelationID == "":
		case w.architect == x.from.AgentID && w.revision == nil && (w.phase == wire.PhaseRevise || w.phase == wire.PhaseRedesign):
			alone = alone && revised == nil
			revised = w
		case w.revision == nil:
			alone = false
		}
	}
	if !alone && len(a.Task.Context.PreviousAttempts) == 0 {
		return nil
	}
	return revised
}

// A newWork describes the task that an assignment makes.
type newWork struct {
	needs   []hub.Dependency
	vain    []string // tasks among those it needs that will never be done
	revises *work    // nil unless the task has a new id
}

// assignNew makes the task of an assignment.
func (wd workDecision) assignNew(x *messageContext, a *session.Assignment) {
	architect := agentPrefix + x.from.AgentID
	created := &taskCreated{
		ID: a.Task.TaskID, Name: firstWords(a.Task.Description, a.Task.TaskID), Type: "task_assignment", Description: a.Task.Description,
		Priority: wire.Raw(object.Quote(a.Priority)), Dependencies: x.created.needs, AcceptanceCriteria: a.Task.AcceptanceCriteria,
		SessionID: x.of.spec.ID, Parent: wd.state.agents.parentOf(x.from.AgentID), Patient: true,
	}
	wd.tasks().traced(created, nil)
	wd.factOf(architect, "", a.Task.TaskID, created)
	k := wd.state.tasks.byID[a.Task.TaskID]
	for _, d := range x.created.vain {
		wd.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: d})
	}
	f := wd.assigned(x, a)
	if revises := x.created.revises; revises != nil {
		f.Revises = revises.task.view.ID
	}
	wd.factOf(architect, agentPrefix+x.to.AgentID, k.view.ID, f)
	if x.fate != fateHeld {
		wd.startWorkTask(k.work())
	}
}

// assigned returns the fact of an assignment.
func (wd workDecision) assigned(x *messageContext, a *session.Assignment) *workAssigned {
	return &workAssigned{
		Session: x.of.spec.ID, ID: a.Task.TaskID, Architect: x.from.AgentID, Developer: x.to.AgentID, Chain: x.chain, Message: x.MessageID,
		Scope: a.Task.Constraints.Scope, Tested: a.Task.Constraints.TestingRequired, MaxIterations: a.MaxIterations, Deadline: a.Deadline, Held: x.fate == fateHeld,
	}
}

// assignWork assigns a task whose review requests changes to a developer again.
func (wd workDecision) assignWork(x *messageContext, a *session.Assignment) {
	wd.factOf(agentPrefix+x.from.AgentID, agentPrefix+x.to.AgentID, x.work.task.view.ID, wd.assigned(x, a))
	wd.startWorkTask(x.work)
}

// startWorkTask assigns the task of a work to its developer.
func (wd workDecision) startWorkTask(w *work) {
	if a := wd.state.agents.byID[w.developer]; !w.task.view.State.Final() && a != nil {
		wd.tasks().take(w.task, a, &taskAssigned{Way: inSession})
	}
}

// maxName is the maximum length of a task name that is taken from its description, in
// characters.
const maxName = 80

// firstWords returns the first line of a text, cut to maxName.
func firstWords(text, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > maxName {
		line = string(runes[:maxName-1]) + "…"
	}
	if line == "" {
		return otherwise
	}
	return line
}
