package hub

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// This file encodes payloads for clients, where the members are not the encoding: a document is
// encoded unchanged, regardless of the members that were read from it.

// MarshalJSONTo implements json.MarshalerTo. A dependency that only blocks is encoded as a task
// id.
func (d Dependency) MarshalJSONTo(e *jsontext.Encoder) error {
	if (d.Type == "" || d.Type == DependsBlocks) && !d.Private {
		return e.WriteToken(jsontext.String(d.On))
	}
	b := append(object.AppendText(append([]byte{}, `{"depends_on_task_id":`...), d.On), `,"dependency_type":`...)
	b = object.AppendText(b, d.Type)
	b = object.AppendOptional(b, "contract_key", d.Contract)
	if d.Private {
		b = append(b, `,"private":true`...)
	}
	return e.WriteValue(append(b, '}'))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (d *Dependency) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	if from.PeekKind() == '"' {
		id, err := from.ReadToken()
		d.On, d.Type = id.String(), DependsBlocks
		return err
	}
	type plain Dependency // without this method
	return json.UnmarshalDecode(from, (*plain)(d))
}

// MarshalJSONTo implements json.MarshalerTo. It writes the document of the result.
func (r *Result) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(r.Document) }

// MarshalJSONTo implements json.MarshalerTo. It writes the document of the spec.
func (s *Spec) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(s.Document) }

// MarshalJSONTo implements json.MarshalerTo. It writes the document of the requirements, or one
// made from their fields.
func (r *Requirements) MarshalJSONTo(e *jsontext.Encoder) error {
	if r.Document != nil {
		return e.WriteValue(r.Document)
	}
	return json.MarshalEncode(e, RequirementsDocument{
		Schema: SchemaRequirements + schemaKnown, Repo: r.Repo, Languages: r.Languages, Environments: r.Environments,
		Tools: r.Tools, Tags: r.Tags, Prefer: r.Prefer,
	})
}

// MarshalJSONTo implements json.MarshalerTo. It writes the document of the capabilities, or one
// made from their fields.
func (c *Capabilities) MarshalJSONTo(e *jsontext.Encoder) error {
	document := c.Document
	if document == nil {
		document = c.Spell()
	}
	if document == nil {
		document = object.Raw("{}")
	}
	return e.WriteValue(document)
}
