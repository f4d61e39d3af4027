package handlers

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

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
	Request            *requestKey `json:"request,omitzero"`
}

func (*taskUpdated) kind() string { return events.TaskUpdated }

func (t *taskUpdated) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.tasks.unqueue(k)
	s.rewrite(k, r, func() {
		t.change(&k.view)
		if t.StructuredSpec != nil || t.Requirements != nil || len(t.Without) > 0 {
			t.reread(k)
		}
	})
	k.urgency = wire.Urgency(k.view.Priority)
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
	td.fact("", k.view.ID, f)
	if o := wire.OddPriority(r.Priority); o != nil {
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
