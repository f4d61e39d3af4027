package handlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
)

// considerAssignment decides about a task for a developer: a new one, a revision of
// one whose review wants changes, under its own id, or under another and linked to it
// by the correlation_id.
func (t *turn) considerAssignment(x *saying, a *wire.SessionAssignment) *wire.Error {
	id := a.Task.TaskID
	if t.agents[x.to.AgentID] == nil {
		return rejected(atTo, fmt.Sprintf("nobody called %q is known yet", x.to.AgentID))
	}
	if t.passed(a.Deadline) {
		x.notes = append(x.notes, "/payload/deadline: it has passed already")
	}
	x.task = id
	if k := t.tasks[id]; k != nil {
		return t.considerRevision(x, a, k)
	}
	needs, err := assignmentNeeds(a)
	if err != nil {
		return err
	}
	vain, err := t.dependencies(needs, true)
	if err != nil {
		return err
	}
	revises := t.revised(x, a)
	if x.chain = x.CorrelationID; x.chain == "" {
		x.chain = x.MessageID
	}
	for _, d := range needs {
		if gates(kindOf(d.Type)) && t.tasks[d.On].view.State != wire.TaskDone {
			x.fate = fateHeld
		}
	}
	x.after = func() { t.assignNew(x, a, needs, vain, revises) }
	return nil
}

// assignmentNeeds are what an assigned task waits for.
func assignmentNeeds(a *wire.SessionAssignment) (needs []wire.Dependency, err *wire.Error) {
	kinds := map[string]string{wire.DependsHard: wire.DependsBlocks, wire.DependsSoft: wire.DependsSoft}
	for i, d := range a.Dependencies {
		if d.TaskID != a.Task.TaskID {
			return nil, &wire.Error{
				Code: wire.CodeInvalid, Message: fmt.Sprintf("task_id must be that of the task that is assigned, not %.80q", d.TaskID),
				Details: map[string]any{"pointer": fmt.Sprintf("/payload/dependencies/%d/task_id", i)},
			}
		}
		for _, on := range d.DependsOn {
			needs = append(needs, wire.Dependency{On: on, Type: kinds[d.Type]})
		}
	}
	return needs, nil
}

// considerRevision decides about a task whose id is known.
func (t *turn) considerRevision(x *saying, a *wire.SessionAssignment, k *task) *wire.Error {
	w := t.workOn(x.of, k.view.ID)
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
	x.after = func() { t.assignWork(w, x, a) }
	return nil
}

// revised is the work of which an assignment with a new id is a revision; nil when
// it is none. Some have one correlation_id for much that has nothing to do with each
// other: then it is one only if it says what came of earlier attempts.
func (t *turn) revised(x *saying, a *wire.SessionAssignment) (revised *work) {
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
	if !alone && a.Task.Attempts == 0 {
		return nil
	}
	return revised
}

// assignNew makes the task of an assignment.
func (t *turn) assignNew(x *saying, a *wire.SessionAssignment, needs []wire.Dependency, vain []string, revises *work) {
	architect := agentPrefix + x.from.AgentID
	t.factOf(architect, "", a.Task.TaskID, &taskCreated{
		ID: a.Task.TaskID, Name: firstWords(a.Task.Description, a.Task.TaskID), Type: "task_assignment", Description: a.Task.Description,
		Priority: wire.Raw(wire.Quote(a.Priority)), Dependencies: needs, AcceptanceCriteria: a.Task.AcceptanceCriteria,
		SessionID: x.of.spec.ID, Parent: t.parentOf(x.from.AgentID), Patient: true,
	})
	k := t.tasks[a.Task.TaskID]
	for _, d := range vain {
		t.fact("", k.view.ID, &taskBlocked{ID: k.view.ID, Name: k.view.Name, Upstream: d})
	}
	f := t.assigned(x, a)
	if revises != nil {
		f.Revises = revises.task.view.ID
	}
	t.factOf(architect, agentPrefix+x.to.AgentID, k.view.ID, f)
	if x.fate != fateHeld {
		t.giveWork(k.work())
	}
}

// assigned is the fact of an assignment.
func (t *turn) assigned(x *saying, a *wire.SessionAssignment) *workAssigned {
	return &workAssigned{
		Session: x.of.spec.ID, ID: a.Task.TaskID, Architect: x.from.AgentID, Developer: x.to.AgentID, Chain: x.chain, Message: x.MessageID,
		Scope: a.Task.Scope, Tested: a.Task.TestingRequired, MaxIterations: a.MaxIterations, Deadline: a.Deadline, Held: x.fate == fateHeld,
	}
}

// assignWork gives a task whose review wants changes to a developer.
func (t *turn) assignWork(w *work, x *saying, a *wire.SessionAssignment) {
	t.factOf(agentPrefix+x.from.AgentID, agentPrefix+x.to.AgentID, w.task.view.ID, t.assigned(x, a))
	t.giveWork(w)
}

// giveWork puts the task of a work into the hands of its developer.
func (t *turn) giveWork(w *work) {
	if a := t.agents[w.developer]; !w.task.view.State.Final() && a != nil {
		t.take(w.task, a, &taskAssigned{Way: inSession})
	}
}

// mostName is how long the name is that a task gets of its description.
const mostName = 80

// firstWords are the first line of a text, or as much of it as makes a name.
func firstWords(text, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > mostName {
		line = string(runes[:mostName-1]) + "…"
	}
	if line == "" {
		return otherwise
	}
	return line
}

// workAssigned says that a task of a session is its developer's: for the first time,
// or again.
type workAssigned struct {
	Session       string   `json:"session_id"`
	ID            string   `json:"task"`
	Architect     string   `json:"architect"`
	Developer     string   `json:"developer"`
	Chain         string   `json:"correlation_id"`
	Message       string   `json:"message_id"`
	Scope         []string `json:"scope"`
	Tested        bool     `json:"testing_required,omitzero"`
	MaxIterations int64    `json:"max_iterations,omitzero"` // 0: as many as before, or as the session has
	Deadline      string   `json:"deadline,omitzero"`
	Revises       string   `json:"revises,omitzero"`
	Held          bool     `json:"held,omitzero"`
}

func (*workAssigned) kind() string { return wire.EventSessionAssigned }

func (f *workAssigned) apply(st *State, r *wire.Record) {
	s, k := st.sessions.byID[f.Session], st.tasks[f.ID]
	w := k.work()
	if w == nil {
		w = &work{of: s, task: k, number: r.Seq}
		w.loop.Max, w.loop.Policy = int(s.spec.MaxIterations), policy(s.spec.OnMax)
		k.needsMore().work = w
		s.works = append(s.works, w)
		if before := st.tasks[f.Revises]; before != nil && before.work() != nil {
			w.revises, before.work().revision, w.loop = before.work(), w, before.work().loop
			if w.revises.phase == wire.PhaseRedesign {
				w.planAnew()
			}
		}
	}
	if f.MaxIterations > 0 {
		w.loop.Max = int(f.MaxIterations)
	}
	w.architect, w.developer, w.chain, w.message, w.scope, w.tries = f.Architect, f.Developer, f.Chain, f.Message, f.Scope, 1
	w.tested = f.Tested
	w.wished = f.Deadline
	w.document, w.limit, w.overdue = s.latest.Document, time.Duration(s.spec.TaskTimeout)*time.Millisecond, false
	phase := wire.PhaseAssigned
	if f.Held {
		phase = wire.PhaseHeld
	}
	st.enter(w, phase, r.At)
}

// workMoved says that a work is in another phase, where nothing else says so.
type workMoved struct {
	ID    string `json:"task"`
	Phase string `json:"phase"`
	Why   string `json:"why,omitzero"`
}

func (*workMoved) kind() string { return wire.EventSessionMoved }

func (f *workMoved) apply(s *State, r *wire.Record) {
	w := s.tasks[f.ID].work()
	from := w.phase
	s.enter(w, f.Phase, r.At)
	if from == wire.PhaseHeld && f.Phase == wire.PhaseAssigned {
		s.letGo(w, r.At)
	}
}

// letGo sends an assignment on its way that was held back, unless its developer asks
// for it.
func (s *State) letGo(w *work, at time.Time) {
	m := w.of.member(w.developer)
	if m == nil {
		return // it has left the session
	}
	for _, p := range slices.Clone(m.parcels) {
		switch {
		case !p.held || p.task != w.task.view.ID:
		case s.pulls(w.developer):
			s.unlodge(p)
		default:
			p.held = false
			s.post(p, at)
		}
	}
}

func (t *turn) moveWork(w *work, phase, why string) {
	t.fact("", w.task.view.ID, &workMoved{ID: w.task.view.ID, Phase: phase, Why: why})
}

// release lets a work go to its developer that waited for others.
func (t *turn) release(w *work) {
	if w.phase == wire.PhaseHeld {
		t.moveWork(w, wire.PhaseAssigned, "it waits for nothing any more")
		t.giveWork(w)
	}
}

// considerAck takes the word of a developer that it has its task.
func (t *turn) considerAck(x *saying) {
	for _, w := range t.worksOf(x.from.AgentID) {
		if w.of == x.of && (x.ReplyTo == w.message || x.ReplyTo == "" && x.CorrelationID == w.chain && w.phase == wire.PhaseAssigned) {
			x.task, x.chain = w.task.view.ID, w.chain
			x.after = func() { t.beginWork(w) }
			return
		}
	}
	x.notes = append(x.notes, "it acknowledges nothing that its sender has been given and not begun")
}

// beginWork notes that a developer is at its task.
func (t *turn) beginWork(w *work) {
	switch {
	case w.phase != wire.PhaseAssigned:
	case w.task.view.State.Final(): // a revision of what is done
		t.moveWork(w, wire.PhaseWorking, "")
	default:
		defer func(from Actor) { t.from = from }(t.from)
		t.from = Actor{Kind: Agent, Name: w.developer}
		t.withdraw(w.task)
		t.start(w.task, nil)
	}
}

// activeWork is the work that a message of a developer is about.
func (t *turn) activeWork(x *saying, id string) (*work, *wire.Error) {
	w := t.workOn(x.of, id)
	switch {
	case w == nil:
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("no task of this session is called %.80q", id),
			Details: map[string]any{"pointer": "/payload/task_id", "task_id": id},
		}
	case w.developer != x.from.AgentID:
		return nil, rejected("/payload/task_id", fmt.Sprintf("the task %.80q is not yours", id))
	case !w.active():
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the task %.80q is not being worked on: it is %s", id, w.how()),
			Details: map[string]any{"pointer": "/payload/task_id", "reason": "not_active", "task_id": id, "state": w.phase},
		}
	}
	x.task, x.chain = id, w.chain
	return w, nil
}

func (t *turn) considerProgress(x *saying, p *wire.SessionProgress) *wire.Error {
	w, err := t.activeWork(x, p.TaskID)
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
	x.after = func() {
		t.beginWork(w)
		if w.task.view.State != wire.TaskRunning { // a revision of what is done
			t.moveWork(w, wire.PhaseWorking, p.Step)
			return
		}
		t.factOf(agentPrefix+w.developer, "", p.TaskID, &taskProgress{
			ID: p.TaskID, Name: w.task.view.Name, Agent: w.developer, Progress: p.Percent / 100, Message: p.Step,
		})
	}
	return nil
}

// passed says whether a moment is over.
func (t *turn) passed(moment string) bool {
	at, ok := wire.ParseTime(moment)
	return ok && at.Before(t.at)
}

// mostOffered is how much of a result a notice carries.
const mostOffered = 4096

// offerSoft tells the developer of a task that may need the result of another that
// the other has ended.
func (t *turn) offerSoft(up, down *task) {
	w := down.work()
	if w == nil || !w.active() {
		return
	}
	message := fmt.Sprintf("Task %s, whose result you may need, is %s", up.label(), up.view.State)
	if result := up.view.Result; len(result) > 0 && len(result) <= mostOffered && string(result) != "null" { // as a snapshot has none
		message += ": " + string(result)
	}
	t.tell(t.agents[w.developer], down, wire.NoticeUpdated, message)
}
