package wire

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// MarshalJSONTo implements json.MarshalerTo. The documents come from the details or from the
// decoded fields.
func (s SubmitTask) MarshalJSONTo(e *jsontext.Encoder) error {
	type plain SubmitTask // without this method
	if s.Details.StructuredSpec == nil && s.Spec != nil {
		s.Details.StructuredSpec = s.Spec.Document
	}
	if s.Details.Requirements == nil && s.Requirements != nil {
		text, err := object.Encode(s.Requirements)
		if err != nil {
			return err
		}
		s.Details.Requirements = text
	}
	return json.MarshalEncode(e, plain(s))
}

// MarshalJSONTo implements json.MarshalerTo. A document to be removed is encoded as null.
func (u UpdateTask) MarshalJSONTo(e *jsontext.Encoder) error {
	type plain UpdateTask // without this method
	said := struct {
		Plain        plain `json:",embed"`
		Spec         any   `json:"structured_spec,omitzero"`
		Requirements any   `json:"requirements,omitzero"`
	}{Plain: plain(u)}
	switch {
	case u.Spec != nil:
		said.Spec = u.Spec
	case slices.Contains(u.Without, "structured_spec"):
		said.Spec = object.Raw("null")
	}
	switch {
	case u.Requirements != nil:
		said.Requirements = u.Requirements
	case slices.Contains(u.Without, "requirements"):
		said.Requirements = object.Raw("null")
	}
	return json.MarshalEncode(e, said)
}

// MarshalJSONTo implements the encoder's interface.
func (a AddDependency) MarshalJSONTo(e *jsontext.Encoder) error {
	b := object.AppendText([]byte(`{"taskId":`), a.TaskID)
	b = object.AppendMember(b, "dependsOnTaskId", a.Dependency.On)
	b = object.AppendOptional(b, "dependencyType", a.Dependency.Type)
	b = object.AppendOptional(b, "contractKey", a.Dependency.Contract)
	return e.WriteValue(append(b, '}'))
}
