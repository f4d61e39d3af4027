package sdk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schemas "orchestrator/wire/schema"
)

// A schema is a part of a JSON Schema. Types of the SDKs are generated from it.
type schema struct {
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Ref         string             `json:"$ref"`
	Type        oneOrMore          `json:"type"`
	Enum        []*string          `json:"enum"`
	Items       *schema            `json:"items"`
	Properties  members            `json:"properties"`
	Values      *schema            `json:"additionalProperties"`
	Required    []string           `json:"required"`
	AnyOf       []*schema          `json:"anyOf"`
	Defs        map[string]*schema `json:"$defs"`
}

// A member is a member of an object, with its schema.
type member struct {
	name   string
	schema *schema
}

// members are the members of an object in the order of the schema.
type members []member

// UnmarshalJSON implements json.Unmarshaler.
func (m *members) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		s := new(schema)
		if err := d.Decode(s); err != nil {
			return err
		}
		*m = append(*m, member{name: name.(string), schema: s})
	}
	return nil
}

// oneOrMore is a text or a list of texts.
type oneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(o))
	}
	*o = []string{""}
	return json.Unmarshal(text, &(*o)[0])
}

// needs reports whether a member of an object is required.
func (s *schema) needs(name string) bool { return slices.Contains(s.Required, name) }

// member returns the schema of a member of an object, or nil.
func (s *schema) member(name string) *schema {
	for _, m := range s.Properties {
		if m.name == name {
			return m.schema
		}
	}
	return nil
}

// ref returns the path of the schema that a schema refers to, or "". Only definitions of session
// messages are referred to.
func (s *schema) ref() string {
	for _, each := range append([]*schema{s}, s.AnyOf...) {
		if name, ok := strings.CutPrefix(each.Ref, "#/$defs/"); ok {
			return sessionMessage + name
		}
		if each.Ref != "" {
			return strings.TrimPrefix(each.Ref, "urn:orchestrator:")
		}
	}
	return ""
}

// types returns the types of a value except null.
func (s *schema) types() []string {
	return slices.DeleteFunc(slices.Clone(s.Type), func(each string) bool { return each == "null" })
}

// nullable reports whether a value may be null.
func (s *schema) nullable() bool { return slices.Contains(s.Type, "null") }

// words returns the texts that a value may be, if they are listed.
func (s *schema) words() []string {
	var all []string
	for _, word := range s.Enum {
		if word != nil {
			all = append(all, *word)
		}
	}
	return all
}

// schemaAt returns a schema by its path: the name of a document, a # and a definition in it, or a
// / and a member. The items of a list count as the list.
func schemaAt(t *testing.T, path string) *schema {
	t.Helper()
	parts := strings.Split(path, "/")
	name, definition, _ := strings.Cut(parts[0], "#")
	text, ok := schemas.Text(name)
	require.True(t, ok, "there is no schema %s", name)
	found := new(schema)
	require.NoError(t, json.Unmarshal(text, found), name)
	if definition != "" {
		found = found.Defs[definition]
	}
	for _, part := range parts[1:] {
		require.NotNil(t, found, path)
		found = found.member(part)
		if found != nil && found.Items != nil {
			found = found.Items
		}
	}
	require.NotNil(t, found, path)
	return found
}
