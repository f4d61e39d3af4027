package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

var updateOperations = []Operation{
	bind("update-task", (*decision).tasks, updateTask),
	bind("submit-plan", (*decision).tasks, submitPlan),
	bind("approve-plan", (*decision).tasks, approvePlan),
	bind("revise-plan", (*decision).tasks, revisePlan),
	bind("add-note", (*decision).tasks, addNote),
	bind("list-notes", (*decision).tasks, listNotes),
}

// taskUpdated records changes of a task. A nil field is unchanged.
type taskUpdated struct {
	ID                 string      `json:"task"`
	Name               string      `json:"name"` // the current name
	Description        *string     `json:"description,omitzero"`
	Type               *string     `json:"type,omitzero"`
	Priority           wire.Raw    `json:"priority,omitzero"`
	Payload            wire.Raw    `json:"payload,omitzero"`
	TargetRepo         *string     `json:"target_repo,omitzero"`
	ProjectID          *string     `json:"project,omitzero"`
	AcceptanceCriteria *[]string   `json:"acceptance_criteria,omitzero"`
	StructuredSpec     wire.Raw    `json:"structured_spec,omitzero"`
	Requirements       wire.Raw    `json:"requirements,omitzero"`
	Without            []string    `json:"without,omitzero"`
	By                 string      `json:"by,omitzero"` // who has changed a text; "" if none was changed
	Request            *requestKey `json:"request,omitzero"`
}

func (*taskUpdated) kind() string { return events.TaskUpdated }

func (t *taskUpdated) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.tasks.unqueue(k)
	s.rewrite(k, r, func() {
		v := k.view.shown()
		t.change(&v)
		k.view = stored(&v)
		if t.StructuredSpec != nil || t.Requirements != nil || len(t.Without) > 0 {
			t.reread(k)
		}
	})
	k.urgency = hub.Urgency(k.view.Priority)
	s.tasks.enqueue(k)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// reread decodes the changed documents of a task again. The others may be only in the log.
func (t *taskUpdated) reread(k *task) {
	m := k.needsMore()
	if t.StructuredSpec != nil || slices.Contains(t.Without, "structured_spec") {
		m.promises, m.maxFiles = nil, 0
	}
	if t.Requirements != nil || slices.Contains(t.Without, "requirements") {
		m.wants = nil
	}
	k.readDocuments()
}

// change applies the changes to a task.
func (t *taskUpdated) change(v *wire.Task) {
	v.Name = t.Name
	set(&v.Description, t.Description)
	set(&v.Type, t.Type)
	if t.Priority != nil {
		v.Priority = t.Priority
	}
	if t.Payload != nil {
		v.Payload = t.Payload
	}
	d := v.Details.Copy()
	if t.By != "" {
		d.ChangedBy = t.By
	}
	set(&d.TargetRepo, t.TargetRepo)
	set(&d.ProjectID, t.ProjectID)
	set(&d.AcceptanceCriteria, t.AcceptanceCriteria)
	if t.StructuredSpec != nil || slices.Contains(t.Without, "structured_spec") {
		d.StructuredSpec = t.StructuredSpec
	}
	if t.Requirements != nil || slices.Contains(t.Without, "requirements") {
		d.Requirements = t.Requirements
	}
	v.Details = d.Filled()
}

// changesText reports whether the changes of a task change what its agent reads as its order.
func (t *taskUpdated) changesText(k *task) bool {
	return t.Name != k.view.Name || t.Description != nil || t.Payload != nil || t.TargetRepo != nil || t.AcceptanceCriteria != nil ||
		t.StructuredSpec != nil || t.Requirements != nil || len(t.Without) > 0
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func updateTask(td taskDecision, r *wire.UpdateTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case k.view.State.Final():
		return nil, wrongState(k, "changed")
	}
	if err := td.mayManage(k, "change"); err != nil {
		return nil, err
	}
	if err := k.changeable(); err != nil {
		return nil, err
	}
	f := &taskUpdated{
		ID: k.view.ID, Name: k.view.Name, Description: r.Description, Type: r.Type, Priority: r.Priority, Payload: r.Payload,
		TargetRepo: r.TargetRepo, ProjectID: r.ProjectID, AcceptanceCriteria: r.AcceptanceCriteria, Without: r.Without,
		Request: td.mark(),
	}
	set(&f.Name, r.Name)
	var oddities []hub.Oddity
	if r.Spec != nil {
		f.StructuredSpec, oddities = r.Spec.Document, r.Spec.Oddities
	}
	if r.Requirements != nil {
		f.Requirements, oddities = r.Requirements.Document, append(oddities, r.Requirements.Oddities...)
	}
	if f.changesText(k) {
		f.By = td.from.String()
	}
	td.fact("", k.view.ID, f)
	if o := hub.OddPriority(r.Priority); o != nil {
		oddities = append(oddities, *o)
	}
	for _, o := range oddities {
		td.odd(k, o)
	}
	answer := td.state.tasks.reply(k)
	if f.Request == nil { // a stored answer must not contain the inputs
		answer.Task.WaitsFor = td.state.tasks.waitsFor(k)
		td.state.tasks.showInputs(k, &answer.Task)
		td.state.tasks.showResults(k, &answer.Task)
	}
	return answer, nil
}

// maxNotes is the maximum number of notes of a task.
const maxNotes = 10_000

// taskNoted records a note on a task. The note itself is only in the log.
type taskNoted struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Content string      `json:"content"`
	Urgent  bool        `json:"urgent,omitzero"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskNoted) kind() string { return events.TaskNoted }

func (t *taskNoted) apply(s *core, r *wire.Record) {
	m := s.tasks.byID[t.ID].needsMore()
	m.notes = append(m.notes, r.Seq)
	s.saveReply(agentOf(r.From), t.Request, &wire.NoteReply{Note: t.Note(r)}, nil)
}

func (t *taskNoted) Note(r *wire.Record) wire.Note {
	return wire.Note{
		ID: fmt.Sprintf("n%d", r.Seq), TaskID: t.ID, Author: r.From, Content: t.Content, Urgent: t.Urgent, CreatedAt: object.Timestamp(r.At),
	}
}

func addNote(td taskDecision, r *wire.AddNote) (*wire.NoteReply, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.more != nil && len(k.more.notes) >= maxNotes {
		return nil, errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "too_many_notes"},
			"task %s has %d notes, and takes no more", k.label(), maxNotes)
	}
	f := &taskNoted{ID: k.view.ID, Name: k.view.Name, Content: r.Content, Urgent: r.Urgent, Request: td.mark()}
	td.fact("", k.view.ID, f)
	if holder := k.view.AssignedTo; r.Urgent && !k.view.State.Final() && holder != td.from.Name {
		td.tell(td.state.agents.byID[holder], k, wire.NoticeUpdated, "Note: "+r.Content)
	}
	records := td.out.Records
	return &wire.NoteReply{Note: f.Note(&records[len(records)-1])}, nil
}

func listNotes(td taskDecision, r *wire.TaskID) (*wire.NoteList, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.more != nil {
		td.pages = append(td.pages, history.Page{Task: k.view.ID, Notes: k.more.notes})
	}
	return &wire.NoteList{Notes: []wire.Note{}}, nil
}

// taskPlanned records the plan of an agent for its task.
type taskPlanned struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Plan    wire.Raw    `json:"plan"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskPlanned) kind() string { return events.TaskPlanned }

func (t *taskPlanned) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	d := k.view.Details.Copy()
	d.Plan, d.PlanFeedback = t.Plan, ""
	s.rewrite(k, r, func() { k.view.Details = d })
	s.move(k, wire.TaskPlanReview)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// rewrite changes texts or documents of a task, and remembers the record.
func (s *core) rewrite(k *task, r *wire.Record, change func()) {
	m := k.needsMore()
	m.parts = append(m.parts, r.Seq)
	change()
	k.lighten()
}

// maxChanges is the maximum number of changes of a task, with those of its plan.
const maxChanges = 10_000

// changeable returns an error if a task was changed too often.
func (t *task) changeable() *wire.Error {
	if t.more == nil || len(t.more.parts) < maxChanges {
		return nil
	}
	return errorf(wire.CodeConflict, details{"taskId": t.view.ID, "reason": "too_many_changes"},
		"task %s was changed %d times, and takes no more changes", t.label(), maxChanges)
}

// taskRevise records the feedback on a plan.
type taskRevise struct {
	ID       string      `json:"task"`
	Name     string      `json:"name"`
	Agent    string      `json:"agent"`
	Feedback string      `json:"feedback"`
	Request  *requestKey `json:"request,omitzero"`
}

func (*taskRevise) kind() string { return events.TaskPlanReturned }

func (t *taskRevise) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	d := k.view.Details.Copy()
	d.PlanFeedback = t.Feedback
	k.view.Details = d
	s.move(k, wire.TaskPlanning)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

func submitPlan(td taskDecision, r *wire.SubmitPlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.held(r.TaskID, "planned")
	switch {
	case err != nil:
		return nil, err
	case k.view.State != wire.TaskPlanning:
		return nil, wrongState(k, "planned")
	}
	if err := k.changeable(); err != nil {
		return nil, err
	}
	td.fact("", k.view.ID, &taskPlanned{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Plan: r.Plan, Request: td.mark()})
	return td.replyWith(k), nil
}

// review returns a task whose plan the caller may approve or return.
func (td taskDecision) review(id, verb string) (*task, *wire.Error) {
	k, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && k.view.AssignedTo == td.from.Name:
		return nil, errorf(wire.CodeDenied, details{"taskId": k.view.ID}, "who wrote a plan does not judge it")
	case k.view.State != wire.TaskPlanReview:
		return nil, wrongState(k, verb)
	}
	return k, nil
}

func approvePlan(td taskDecision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "begun: there is no plan to approve")
	switch {
	case err != nil:
		return nil, err
	case td.state.tasks.graph.Open(k.node) > 0:
		return nil, td.state.tasks.waits(k)
	}
	td.start(k, td.mark())
	td.tell(td.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, "Plan approved. The task is yours to do.")
	return td.replyWith(k), nil
}

func revisePlan(td taskDecision, r *wire.RevisePlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "sent back: there is no plan to revise")
	if err != nil {
		return nil, err
	}
	td.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskRevise{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Feedback: r.Feedback, Request: td.mark(),
	})
	td.tell(td.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, fmt.Sprintf("Plan to be revised: %s", r.Feedback))
	return td.replyWith(k), nil
}
