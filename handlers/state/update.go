package state

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// TaskUpdated records changes of a task. A nil field is unchanged.
type TaskUpdated struct {
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
	Request            *RequestKey `json:"request,omitzero"`
}

func (*TaskUpdated) kind() string { return events.TaskUpdated }

func (t *TaskUpdated) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	s.Tasks.unqueue(k)
	s.rewrite(k, r, func() {
		v := k.View.Shown()
		t.change(&v)
		k.View = stored(&v)
		if t.StructuredSpec != nil || t.Requirements != nil || len(t.Without) > 0 {
			t.reread(k)
		}
	})
	k.urgency = hub.Urgency(k.View.Priority)
	s.Tasks.Enqueue(k)
	s.saveTaskReply(r, t.Request, k)
}

// reread decodes the changed documents of a task again. Unchanged documents may be only in the log.
func (t *TaskUpdated) reread(k *Task) {
	m := k.EnsureExtra()
	if t.StructuredSpec != nil || slices.Contains(t.Without, "structured_spec") {
		m.Promises, m.MaxFiles = nil, 0
	}
	if t.Requirements != nil || slices.Contains(t.Without, "requirements") {
		m.wants = nil
	}
	k.readDocuments()
}

// change applies the changes to a task.
func (t *TaskUpdated) change(v *wire.Task) {
	v.Name = t.Name
	Set(&v.Description, t.Description)
	Set(&v.Type, t.Type)
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
	Set(&d.TargetRepo, t.TargetRepo)
	Set(&d.ProjectID, t.ProjectID)
	Set(&d.AcceptanceCriteria, t.AcceptanceCriteria)
	if t.StructuredSpec != nil || slices.Contains(t.Without, "structured_spec") {
		d.StructuredSpec = t.StructuredSpec
	}
	if t.Requirements != nil || slices.Contains(t.Without, "requirements") {
		d.Requirements = t.Requirements
	}
	v.Details = d.Filled()
}

// ChangesText reports whether the changes of a task change the order text for its agent.
func (t *TaskUpdated) ChangesText(k *Task) bool {
	return t.Name != k.View.Name || t.Description != nil || t.Payload != nil || t.TargetRepo != nil || t.AcceptanceCriteria != nil ||
		t.StructuredSpec != nil || t.Requirements != nil || len(t.Without) > 0
}

func Set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// TaskNoted records a note on a task. The note itself is only in the log.
type TaskNoted struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Content string      `json:"content"`
	Urgent  bool        `json:"urgent,omitzero"`
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskNoted) kind() string { return events.TaskNoted }

func (t *TaskNoted) apply(s *State, r *wire.Record) {
	m := s.Tasks.ByID[t.ID].EnsureExtra()
	m.Notes = append(m.Notes, r.Seq)
	s.saveReply(AgentOf(r.From), t.Request, &wire.NoteReply{Note: t.Note(r)}, nil)
}

func (t *TaskNoted) Note(r *wire.Record) wire.Note {
	return wire.Note{
		ID: fmt.Sprintf("n%d", r.Seq), TaskID: t.ID, Author: r.From, Content: t.Content, Urgent: t.Urgent, CreatedAt: object.Timestamp(r.At),
	}
}

// TaskPlanned records the plan of an agent for its task.
type TaskPlanned struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Plan    wire.Raw    `json:"plan"`
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskPlanned) kind() string { return events.TaskPlanned }

func (t *TaskPlanned) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	d := k.View.Details.Copy()
	d.Plan, d.PlanFeedback = t.Plan, ""
	s.rewrite(k, r, func() { k.View.Details = d })
	s.move(k, wire.TaskPlanReview)
	s.saveTaskReply(r, t.Request, k)
}

// rewrite changes texts or documents of a task, and remembers the record.
func (s *State) rewrite(t *Task, r *wire.Record, change func()) {
	m := t.EnsureExtra()
	m.Parts = append(m.Parts, r.Seq)
	change()
	t.lighten()
}

// MaxChanges is the maximum number of changes of a task, including the changes of its plan.
const MaxChanges = 10_000

// Changeable returns an error if a task was changed too often.
func (t *Task) Changeable() *wire.Error {
	if t.Extra == nil || len(t.Extra.Parts) < MaxChanges {
		return nil
	}
	return Errorf(wire.CodeConflict, Details{"taskId": t.View.ID, "reason": "too_many_changes"},
		"task %s was changed %d times, and takes no more changes", t.Label(), MaxChanges)
}

// TaskRevise records the feedback on a plan.
type TaskRevise struct {
	ID       string      `json:"task"`
	Name     string      `json:"name"`
	Agent    string      `json:"agent"`
	Feedback string      `json:"feedback"`
	Request  *RequestKey `json:"request,omitzero"`
}

func (*TaskRevise) kind() string { return events.TaskPlanReturned }

func (t *TaskRevise) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	d := k.View.Details.Copy()
	d.PlanFeedback = t.Feedback
	k.View.Details = d
	s.move(k, wire.TaskPlanning)
	s.saveTaskReply(r, t.Request, k)
}
