package wire

import (
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Details holds the members that few tasks have. A Details is never modified in place.
type Details struct {
	StructuredSpec     Raw                 `json:"structured_spec,omitzero"`
	Requirements       Raw                 `json:"requirements,omitzero"`
	TargetRepo         string              `json:"targetRepo,omitzero"`
	AcceptanceCriteria []string            `json:"acceptanceCriteria,omitzero"`
	ProjectID          string              `json:"projectId,omitzero"`
	SessionID          string              `json:"sessionId,omitzero"`
	ParentTaskID       string              `json:"parentTaskId,omitzero"` // the task of its submitter
	Plan               Raw                 `json:"plan,omitzero"`         // an object or a text
	PlanFeedback       string              `json:"planFeedback,omitzero"` // why the plan is to be changed
	Help               *Help               `json:"help,omitzero"`
	Context            *delegation.Context `json:"context,omitzero"` // as the next two, from a TaskRequest
	Routing            *delegation.Routing `json:"routing,omitzero"`
	Observability      *delegation.Trace   `json:"observability,omitzero"` // of a task of submit-task too
}

// Help is a question that the agent of a task asked a person, and its answer.
type Help struct {
	QuestionID string `json:"questionId"`
	Question   string `json:"question"`
	Context    Raw    `json:"context,omitzero"`
	Answer     string `json:"answer,omitzero"`
	AnsweredAt string `json:"answeredAt,omitzero"`
}

// empty reports whether d has no members.
func (d *Details) empty() bool {
	return d == nil || d.StructuredSpec == nil && d.Requirements == nil && d.TargetRepo == "" &&
		len(d.AcceptanceCriteria) == 0 && d.ProjectID == "" && d.SessionID == "" && d.ParentTaskID == "" &&
		d.Plan == nil && d.PlanFeedback == "" && d.Help == nil && d.Context == nil && d.Routing == nil && d.Observability == nil
}

// Filled returns d, or nil if d is empty.
func (d *Details) Filled() *Details {
	if d.empty() {
		return nil
	}
	return d
}

// Brief returns d without the members that can be large, or nil if nothing is left.
func (d *Details) Brief() *Details {
	if d == nil {
		return nil
	}
	brief := *d
	brief.StructuredSpec, brief.Requirements, brief.Plan, brief.Help = nil, nil, nil, nil
	brief.Context, brief.Routing, brief.Observability = nil, nil, nil
	return brief.Filled()
}

// Copy returns a shallow copy of d that may be modified. The copy of nil is empty.
func (d *Details) Copy() *Details {
	if d == nil {
		return new(Details)
	}
	whole := *d
	return &whole
}

func (d *Details) append(b []byte) []byte {
	if d == nil {
		return b
	}
	b = object.AppendRaw(b, "structured_spec", d.StructuredSpec)
	b = object.AppendRaw(b, "requirements", d.Requirements)
	b = object.AppendOptional(b, "targetRepo", d.TargetRepo)
	if len(d.AcceptanceCriteria) > 0 {
		b = object.AppendTexts(b, "acceptanceCriteria", d.AcceptanceCriteria)
	}
	b = object.AppendOptional(b, "projectId", d.ProjectID)
	b = object.AppendOptional(b, "sessionId", d.SessionID)
	b = object.AppendOptional(b, "parentTaskId", d.ParentTaskID)
	b = object.AppendRaw(b, "plan", d.Plan)
	b = object.AppendOptional(b, "planFeedback", d.PlanFeedback)
	if d.Help != nil {
		b = appendEncoded(b, "help", d.Help)
	}
	if d.Context != nil {
		b = appendEncoded(b, "context", d.Context)
	}
	if d.Routing != nil {
		b = appendEncoded(b, "routing", d.Routing)
	}
	if d.Observability != nil {
		b = appendEncoded(b, "observability", d.Observability)
	}
	return b
}

// appendEncoded appends a member by reflection. Few tasks have such members.
func appendEncoded(b []byte, key string, value any) []byte {
	spelled, err := object.Encode(value)
	if err != nil {
		return b // strings and decoded values can always be encoded
	}
	return object.AppendRaw(b, key, spelled)
}
