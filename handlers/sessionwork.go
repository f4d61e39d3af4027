package handlers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"orchestrator/handlers/graph"
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
	if k := wd.state.tasks.find(id); k != nil {
		return wd.considerRevision(x, a, k)
	}
	if err := wd.state.agents.tooManyOpen(wd.from); err != nil {
		return err
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
		if gates(kindOf(d.Type)) && !wd.state.tasks.byID[d.On].handsOver() {
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
			return nil, errorf(wire.CodeInvalid, details{"pointer": fmt.Sprintf("/payload/dependencies/%d/task_id", i)},
				"task_id must be that of the task that is assigned, not %.80q", d.TaskID)
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
	if w == nil || w.phase != session.PhaseRevise || w.revision != nil {
		state := string(k.view.State)
		how := state
		if w != nil {
			state, how = w.phase, w.how()
		}
		return errorf(wire.CodeConflict, details{"pointer": "/payload/task/task_id", "reason": "task_id_taken", "task_id": k.view.ID, "state": state},
			"there is a task %.80q already, and it is %s: only one whose review wants changes is assigned again", k.view.ID, how)
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
		case w.architect == x.from.AgentID && w.revision == nil && (w.phase == session.PhaseRevise || w.phase == session.PhaseRedesign):
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
		ID: a.Task.TaskID, Name: session.FirstWords(a.Task.Description, a.Task.TaskID), Type: "task_assignment", Description: a.Task.Description,
		Priority: wire.Raw(object.Quote(a.Priority)), Dependencies: x.created.needs, AcceptanceCriteria: a.Task.AcceptanceCriteria,
		SessionID: x.of.spec.ID, Parent: wd.state.agents.parentOf(x.from.AgentID), Patient: true, Verify: x.of.spec.Verify,
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

// considerAck handles an acknowledgment of a developer, which starts its task.
func (wd workDecision) considerAck(x *messageContext) {
	for _, w := range wd.state.sessions.worksOf(x.from.AgentID) {
		if w.of == x.of && (x.ReplyTo == w.message || x.ReplyTo == "" && x.CorrelationID == w.chain && w.phase == session.PhaseAssigned) {
			x.task, x.chain = w.task.view.ID, w.chain
			x.effect, x.work = effectBegin, w
			if x.to.AgentID != w.architect {
				x.notes = append(x.notes, fmt.Sprintf("/to_agent: it is for %s, which has assigned the task", w.architect))
			}
			return
		}
	}
	x.notes = append(x.notes, "it acknowledges nothing that its sender has been given and not begun")
}

// acknowledged applies an acknowledgment. The architect is notified if it is for another member.
func (wd workDecision) acknowledged(x *messageContext) {
	wd.beginWork(x.work)
	if x.to.AgentID != x.work.architect {
		wd.tellArchitect(x.work, x.from.AgentID+" has acknowledged the task")
	}
}

// beginWork records that a developer works on its task.
func (wd workDecision) beginWork(w *work) {
	switch {
	case w.phase != session.PhaseAssigned:
	case w.task.view.State.Final(): // a revision of what is done
		wd.moveWork(w, session.PhaseWorking, "")
	default:
		developer := wd.by(Actor{Kind: Agent, Name: w.developer})
		developer.questions().cancelQuestions(w.task)
		developer.tasks().start(w.task, nil)
	}
}

// activeWork returns the work that a message of a developer is about.
func (wd workDecision) activeWork(x *messageContext, id string) (*work, *wire.Error) {
	w := wd.state.tasks.workOn(x.of, id)
	switch {
	case w == nil:
		return nil, errorf(wire.CodeNotFound, details{"pointer": "/payload/task_id", "task_id": id}, "no task of this session is called %.80q", id)
	case w.developer != x.from.AgentID:
		return nil, rejected("/payload/task_id", fmt.Sprintf("the task %.80q is not yours", id))
	case !w.active():
		return nil, errorf(wire.CodeConflict, details{"pointer": "/payload/task_id", "reason": "not_active", "task_id": id, "state": w.phase},
			"the task %.80q is not being worked on: it is %s", id, w.how())
	}
	x.task, x.chain = id, w.chain
	return w, nil
}

func (wd workDecision) considerProgress(x *messageContext, p *session.Progress) *wire.Error {
	w, err := wd.activeWork(x, p.TaskID)
	if err != nil {
		return err
	}
	outside, n := outside(w.scope, p.Files)
	for _, file := range outside {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %.80q is outside of the scope", file))
	}
	if n > len(outside) {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %s outside of the scope in all", counted(n, "file")))
	}
	x.effect, x.work = effectProgress, w
	return nil
}

// progressed applies a report of progress.
func (wd workDecision) progressed(x *messageContext, p *session.Progress) {
	w := x.work
	wd.beginWork(w)
	if w.task.view.State != wire.TaskRunning { // a revision of what is done
		wd.moveWork(w, session.PhaseWorking, p.Step)
		return
	}
	wd.factOf(agentPrefix+w.developer, "", p.TaskID, &taskProgress{
		ID: p.TaskID, Name: w.task.view.Name, Agent: w.developer, Progress: p.Percent / 100, Message: p.Step,
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
func (wd workDecision) offerSoft(up, down *task) {
	w := down.work()
	if w == nil || !w.active() {
		return
	}
	message := fmt.Sprintf("Task %s, whose result you may need, is %s", up.label(), up.view.State)
	e, depends := wd.state.tasks.graph.Find(down.node, up.node, graph.Soft, "")
	if result := up.view.Result; depends && !wd.state.tasks.graph.Edge(e).Private && len(result) > 0 && len(result) <= maxOffered && string(result) != "null" { // as a snapshot has none
		message += ": " + string(result)
	}
	wd.tasks().tell(wd.state.agents.byID[w.developer], down, wire.NoticeUpdated, message)
}

// considerAbort decides about an abort of a task or of the session.
func (sd sessionDecision) considerAbort(x *messageContext, a *session.Abort) *wire.Error {
	if a.Scope == session.AbortSession {
		if a.TargetID != x.of.spec.ID {
			return rejected("/payload/target_id", fmt.Sprintf("this is the session %q", x.of.spec.ID))
		}
		x.effect = effectClose
		return nil
	}
	w := sd.state.tasks.workOn(x.of, a.TargetID)
	if w != nil {
		w = w.last() // its latest revision is the active one
	}
	switch {
	case w == nil:
		return errorf(wire.CodeNotFound, details{"pointer": "/payload/target_id", "task_id": a.TargetID},
			"no task of this session is called %.80q", a.TargetID)
	case w.settled():
		return errorf(wire.CodeConflict, details{"pointer": "/payload/target_id", "reason": "not_active", "task_id": a.TargetID},
			"the task %.80q has ended", a.TargetID)
	}
	x.task, x.chain = w.task.view.ID, w.chain
	x.effect, x.work = effectDrop, w
	return nil
}

// leaving returns the agents of a session that can stop when it ends: those that run here and
// are in no other open session.
func (sd sessionDecision) leaving(s *sessionState) (names []string) {
	for _, m := range s.members {
		a := sd.state.agents.byID[m.AgentID]
		if a == nil || a.remote != nil {
			continue
		}
		busy := false
		for _, seat := range sd.state.sessions.seats[m.AgentID] {
			busy = busy || seat.of != s && !seat.of.closed()
		}
		if !busy {
			names = append(names, m.AgentID)
		}
	}
	return names
}

// considerQuery answers a status query for a member that does not run.
func (sd sessionDecision) considerQuery(x *messageContext) {
	a := sd.state.agents.byID[x.to.AgentID]
	if a == nil || a.remote != nil || a.reachable() || a.state == starting {
		return
	}
	x.fate, x.effect = fateKept, effectStatus
}

// standing returns the status of an agent that does not run, with its tasks.
func (sd sessionDecision) standing(s *sessionState, a *agent, task string) wire.Raw {
	type standing struct {
		AgentID string             `json:"agent_id"`
		Status  string             `json:"status"`
		By      string             `json:"answered_by"`
		Tasks   []wire.SessionTask `json:"tasks"`
	}
	answer := standing{AgentID: a.ID, Status: a.status(), By: Actor{}.String(), Tasks: []wire.SessionTask{}}
	for _, w := range s.works {
		if w.developer == a.ID && (w.active() || w.task.view.ID == task) {
			answer.Tasks = append(answer.Tasks, w.view())
		}
	}
	text, err := object.Encode(answer)
	if err != nil {
		panic(fmt.Sprintf("how an agent is cannot be spelled: %v", err))
	}
	return text
}

// messageID returns the id of a message that the orchestrator sends for a member, in the form of
// a UUID of version 4. It is derived from the session and the record number, so it is unique.
func messageID(sessionID string, seq int64) string {
	sum := sha256.Sum256(binary.AppendVarint([]byte(sessionID+"\x00"), seq))
	return asUUID([16]byte(sum[:16]))
}

// counted returns a number with a noun in the singular or plural.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
