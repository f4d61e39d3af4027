package handlers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerAssignment decides about an assignment. It is a new task, or a revision after a review
// that requests changes. A revision has the same task id, or a new one and the same correlation_id.
func (wd workDecision) considerAssignment(x *messageContext, a *session.Assignment) *wire.Error {
	id := a.Task.TaskID
	if wd.state.Agents.ByID[x.to.AgentID] == nil {
		return rejected(atTo, fmt.Sprintf("no agent called %q is known yet", x.to.AgentID))
	}
	if wd.passed(a.Deadline) {
		x.notes = append(x.notes, "/payload/deadline: it has already passed")
	}
	x.task = id
	if t := wd.state.Tasks.Find(id); t != nil {
		return wd.considerRevision(x, a, t)
	}
	if err := wd.state.Agents.TooManyOpen(wd.from); err != nil {
		return err
	}
	needs, err := assignmentNeeds(a)
	if err != nil {
		return err
	}
	vain, err := wd.links().dependencies(needs, &wire.Details{SessionID: x.of.Spec.ID, ParentTaskID: wd.state.Agents.ParentOf(x.from.AgentID)}, true)
	if err != nil {
		return err
	}
	x.effect, x.created = effectAssign, &newWork{needs: needs, vain: vain, revises: wd.revised(x, a)}
	if x.chain = x.CorrelationID; x.chain == "" {
		x.chain = x.MessageID
	}
	for _, d := range needs {
		if state.Gates(state.KindOf(d.Type)) && !wd.state.Tasks.ByID[d.On].HandsOver() {
			x.fate = state.FateHeld
		}
	}
	return nil
}

// assignmentNeeds returns the dependencies in an assignment.
func assignmentNeeds(a *session.Assignment) (needs []hub.Dependency, err *wire.Error) {
	kinds := map[string]string{session.DependsHard: hub.DependsBlocks, hub.DependsSoft: hub.DependsSoft}
	for i, d := range a.Dependencies {
		if d.TaskID != a.Task.TaskID {
			return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": fmt.Sprintf("/payload/dependencies/%d/task_id", i)},
				"task_id must be the id of the assigned task, not %.80q", d.TaskID)
		}
		for _, on := range d.DependsOn {
			needs = append(needs, hub.Dependency{On: on, Type: kinds[d.Type]})
		}
	}
	return needs, nil
}

// considerRevision decides about an assignment of an existing task.
func (wd workDecision) considerRevision(x *messageContext, a *session.Assignment, t *state.Task) *wire.Error {
	w := wd.state.Tasks.WorkOn(x.of, t.View.ID)
	if w == nil || w.Phase != session.PhaseRevise || w.Revision != nil {
		status := string(t.View.State)
		how := status
		if w != nil {
			status, how = w.Phase, w.How()
		}
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/task/task_id", "reason": "task_id_taken", "task_id": t.View.ID, "state": status},
			"task %.80q already exists, and is %s: only a task whose review requests changes can be assigned again", t.View.ID, how)
	}
	if len(a.Dependencies) > 0 {
		x.notes = append(x.notes, "/payload/dependencies: they are ignored, because a revision does not wait")
	}
	x.chain = w.Chain
	x.effect, x.work = effectRevise, w
	return nil
}

// revised returns the work that an assignment with a new id revises, or nil. Some architects use
// one correlation_id for unrelated tasks. If other open works share it, the assignment is a
// revision only if it lists earlier attempts.
func (wd workDecision) revised(x *messageContext, a *session.Assignment) (revised *state.Work) {
	alone := true
	for _, w := range x.of.Open {
		switch {
		case w.Chain != x.CorrelationID || x.CorrelationID == "":
		case w.Architect == x.from.AgentID && w.Revision == nil && (w.Phase == session.PhaseRevise || w.Phase == session.PhaseRedesign):
			alone = alone && revised == nil
			revised = w
		case w.Revision == nil:
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
	vain    []string    // tasks among those it needs that will never be done
	revises *state.Work // nil unless the task has a new id
}

// assignNew makes the task of an assignment.
func (wd workDecision) assignNew(x *messageContext, a *session.Assignment) {
	architect := state.AgentPrefix + x.from.AgentID
	created := &state.TaskCreated{
		ID: a.Task.TaskID, Name: session.FirstWords(a.Task.Description, a.Task.TaskID), Type: "task_assignment", Description: a.Task.Description,
		Priority: wire.Raw(object.Quote(a.Priority)), Dependencies: x.created.needs, AcceptanceCriteria: a.Task.AcceptanceCriteria,
		SessionID: x.of.Spec.ID, Parent: wd.state.Agents.ParentOf(x.from.AgentID), Patient: true, Verify: x.of.Spec.Verify,
	}
	wd.tasks().traced(created, nil)
	wd.factOf(architect, "", a.Task.TaskID, created)
	t := wd.state.Tasks.ByID[a.Task.TaskID]
	for _, d := range x.created.vain {
		wd.fact("", t.View.ID, &state.TaskBlocked{ID: t.View.ID, Name: t.View.Name, Upstream: d})
	}
	f := wd.assigned(x, a)
	if revises := x.created.revises; revises != nil {
		f.Revises = revises.Task.View.ID
	}
	wd.factOf(architect, state.AgentPrefix+x.to.AgentID, t.View.ID, f)
	if x.fate != state.FateHeld {
		wd.startWorkTask(t.Work())
	}
}

// assigned returns the fact of an assignment.
func (wd workDecision) assigned(x *messageContext, a *session.Assignment) *state.WorkAssigned {
	return &state.WorkAssigned{
		Session: x.of.Spec.ID, ID: a.Task.TaskID, Architect: x.from.AgentID, Developer: x.to.AgentID, Chain: x.chain, Message: x.MessageID,
		Scope: a.Task.Constraints.Scope, Tested: a.Task.Constraints.TestingRequired, MaxIterations: a.MaxIterations, Deadline: a.Deadline, Held: x.fate == state.FateHeld,
	}
}

// assignWork assigns a task to a developer again after a review that requests changes.
func (wd workDecision) assignWork(x *messageContext, a *session.Assignment) {
	wd.factOf(state.AgentPrefix+x.from.AgentID, state.AgentPrefix+x.to.AgentID, x.work.Task.View.ID, wd.assigned(x, a))
	wd.startWorkTask(x.work)
}

// startWorkTask assigns the task of a work to its developer.
func (wd workDecision) startWorkTask(w *state.Work) {
	if a := wd.state.Agents.ByID[w.Developer]; !w.Task.View.State.Final() && a != nil {
		wd.tasks().take(w.Task, a, &state.TaskAssigned{Way: state.InSession})
	}
}

// considerAck handles an acknowledgment of a developer, which starts its task.
func (wd workDecision) considerAck(x *messageContext) {
	for _, w := range wd.state.Sessions.WorksOf(x.from.AgentID) {
		if w.Of == x.of && (x.ReplyTo == w.Message || x.ReplyTo == "" && x.CorrelationID == w.Chain && w.Phase == session.PhaseAssigned) {
			x.task, x.chain = w.Task.View.ID, w.Chain
			x.effect, x.work = effectBegin, w
			if x.to.AgentID != w.Architect {
				x.notes = append(x.notes, fmt.Sprintf("/to_agent: it should be %s, which assigned the task", w.Architect))
			}
			return
		}
	}
	x.notes = append(x.notes, "its sender has no assigned task to acknowledge")
}

// acknowledged applies an acknowledgment. The architect is notified if it is for another member.
func (wd workDecision) acknowledged(x *messageContext) {
	wd.beginWork(x.work)
	if x.to.AgentID != x.work.Architect {
		wd.tellArchitect(x.work, x.from.AgentID+" has acknowledged the task")
	}
}

// beginWork records that a developer works on its task.
func (wd workDecision) beginWork(w *state.Work) {
	switch {
	case w.Phase != session.PhaseAssigned:
	case w.Task.View.State.Final(): // a revision of done work
		wd.moveWork(w, session.PhaseWorking, "")
	default:
		developer := wd.by(Actor{Kind: Agent, Name: w.Developer})
		developer.questions().cancelQuestions(w.Task)
		developer.tasks().start(w.Task, nil)
	}
}

// activeWork returns the work that a message of a developer is about.
func (wd workDecision) activeWork(x *messageContext, id string) (*state.Work, *wire.Error) {
	w := wd.state.Tasks.WorkOn(x.of, id)
	switch {
	case w == nil:
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"pointer": "/payload/task_id", "task_id": id}, "no task of this session is called %.80q", id)
	case w.Developer != x.from.AgentID:
		return nil, rejected("/payload/task_id", fmt.Sprintf("the task %.80q is not yours", id))
	case !w.Active():
		return nil, state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/task_id", "reason": "not_active", "task_id": id, "state": w.Phase},
			"the task %.80q is not being worked on: it is %s", id, w.How())
	}
	x.task, x.chain = id, w.Chain
	return w, nil
}

func (wd workDecision) considerProgress(x *messageContext, p *session.Progress) *wire.Error {
	w, err := wd.activeWork(x, p.TaskID)
	if err != nil {
		return err
	}
	outside, n := outside(w.Scope, p.Files)
	for _, file := range outside {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %.80q is outside the scope", file))
	}
	if n > len(outside) {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %s outside the scope in all", state.Counted(n, "file")))
	}
	x.effect, x.work = effectProgress, w
	return nil
}

// progressed applies a report of progress.
func (wd workDecision) progressed(x *messageContext, p *session.Progress) {
	w := x.work
	wd.beginWork(w)
	if w.Task.View.State != wire.TaskRunning { // a revision of done work
		wd.moveWork(w, session.PhaseWorking, p.Step)
		return
	}
	wd.factOf(state.AgentPrefix+w.Developer, "", p.TaskID, &state.TaskProgress{
		ID: p.TaskID, Name: w.Task.View.Name, Agent: w.Developer, Progress: p.Percent / 100, Message: p.Step,
	})
}

// passed reports whether a moment is over.
func (wd workDecision) passed(moment string) bool {
	at, ok := object.ParseTime(moment)
	return ok && at.Before(wd.at)
}

// maxOffered is the maximum size of a result in a notice, in bytes.
const maxOffered = 4096

// offerSoft notifies the developer of a task with a soft dependency that the other task has
// ended.
func (wd workDecision) offerSoft(up, down *state.Task) {
	w := down.Work()
	if w == nil || !w.Active() {
		return
	}
	message := fmt.Sprintf("Task %s, whose result you may need, is %s", up.Label(), up.View.State)
	e, depends := wd.state.Tasks.Graph.Find(down.Node, up.Node, graph.Soft, "")
	if result := up.View.Result; depends && !wd.state.Tasks.Graph.Edge(e).Private && len(result) > 0 && len(result) <= maxOffered && string(result) != "null" { // as a snapshot has none
		message += ": " + string(result)
	}
	wd.tasks().tell(wd.state.Agents.ByID[w.Developer], down, wire.NoticeUpdated, message)
}

// considerAbort decides about an abort of a task or of the session.
func (sd sessionDecision) considerAbort(x *messageContext, a *session.Abort) *wire.Error {
	if a.Scope == session.AbortSession {
		if a.TargetID != x.of.Spec.ID {
			return rejected("/payload/target_id", fmt.Sprintf("this is the session %q", x.of.Spec.ID))
		}
		x.effect = effectClose
		return nil
	}
	w := sd.state.Tasks.WorkOn(x.of, a.TargetID)
	if w != nil {
		w = w.Last() // its latest revision is the active one
	}
	switch {
	case w == nil:
		return state.Errorf(wire.CodeNotFound, state.Details{"pointer": "/payload/target_id", "task_id": a.TargetID},
			"no task of this session is called %.80q", a.TargetID)
	case w.Settled():
		return state.Errorf(wire.CodeConflict, state.Details{"pointer": "/payload/target_id", "reason": "not_active", "task_id": a.TargetID},
			"the task %.80q has ended", a.TargetID)
	}
	x.task, x.chain = w.Task.View.ID, w.Chain
	x.effect, x.work = effectDrop, w
	return nil
}

// leaving returns the agents of a session that can stop when it ends: agents that run here and are
// in no other open session.
func (sd sessionDecision) leaving(s *state.SessionState) (names []string) {
	for _, m := range s.Members {
		a := sd.state.Agents.ByID[m.AgentID]
		if a == nil || a.Remote != nil {
			continue
		}
		busy := false
		for _, seat := range sd.state.Sessions.Seats[m.AgentID] {
			busy = busy || seat.Of != s && !seat.Of.Closed()
		}
		if !busy {
			names = append(names, m.AgentID)
		}
	}
	return names
}

// considerQuery answers a status query for a member that does not run.
func (sd sessionDecision) considerQuery(x *messageContext) {
	a := sd.state.Agents.ByID[x.to.AgentID]
	if a == nil || a.Remote != nil || a.Reachable() || a.State == state.Starting {
		return
	}
	x.fate, x.effect = state.FateKept, effectStatus
}

// standing returns the status of an agent that does not run, with its tasks.
func (sd sessionDecision) standing(s *state.SessionState, a *state.KnownAgent, task string) wire.Raw {
	type standing struct {
		AgentID string             `json:"agent_id"`
		Status  string             `json:"status"`
		By      string             `json:"answered_by"`
		Tasks   []wire.SessionTask `json:"tasks"`
	}
	answer := standing{AgentID: a.ID, Status: a.Status(), By: Actor{}.String(), Tasks: []wire.SessionTask{}}
	for _, w := range s.Works {
		if w.Developer == a.ID && (w.Active() || w.Task.View.ID == task) {
			answer.Tasks = append(answer.Tasks, w.View())
		}
	}
	text, err := object.Encode(answer)
	if err != nil {
		panic(fmt.Sprintf("how an agent is cannot be encoded: %v", err))
	}
	return text
}

// messageID returns the id of a message that the orchestrator sends for a member, in the form of
// a UUID of version 4. It is derived from the session and the record number, so it is unique.
func messageID(sessionID string, seq int64) string {
	sum := sha256.Sum256(binary.AppendVarint([]byte(sessionID+"\x00"), seq))
	return asUUID([16]byte(sum[:16]))
}
