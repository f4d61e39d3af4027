package generator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

// A Generator writes schemas.
type Generator struct {
	Root      string              // the folder of the module
	Documents []schema.Document   // all documents: members refer to them
	Words     map[string][]string // lists of words, by their names in schema tags and the names of their Go types

	comments comments
}

// A writer writes one schema.
type writer struct {
	*Generator
	*schema.Document
	unordered bool  // members keep the order of their tags, with the description last
	err       error // the first one
}

// Document returns the schema of a document, without examples.
func (g *Generator) Document(d *schema.Document) (schema.Node, error) {
	w := &writer{Generator: g, Document: d}
	node := schema.Node{{Key: "title", Value: d.Title}}
	if d.About != "" {
		node = append(node, schema.Member{Key: "description", Value: d.About})
	}
	switch {
	case d.Head != nil:
		node = append(node, w.message()...)
	case d.Of != nil:
		node = append(node, w.object(reflect.TypeOf(d.Of), "")...)
	}
	node = merged(node, d.Rules)
	if parts := w.parts(); len(parts) > 0 {
		node = append(node, schema.Member{Key: "$defs", Value: parts})
	}
	if w.err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, w.err)
	}
	return ordered(node), nil
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// MembersOf returns the members of a payload and the required ones. The schemas of members have the
// order of the tags.
func (g *Generator) MembersOf(d *schema.Document) (members schema.Node, needed []string, err error) {
	w := &writer{Generator: g, Document: d, unordered: true}
	w.members(reflect.TypeOf(d.Of), "", func(key string, member schema.Node, required bool) {
		members = append(members, schema.Member{Key: key, Value: member})
		if required {
			needed = append(needed, key)
		}
	}, func(string) {})
	return members, needed, w.err
}

// ordered returns a schema in the order of the files.
func (w *writer) ordered(node schema.Node) schema.Node {
	if w.unordered {
		return node
	}
	return ordered(node)
}

// message returns the members of a message: its type, the members of its head, and its payload.
func (w *writer) message() schema.Node {
	head := w.object(reflect.TypeOf(w.Head), "")
	payload := w.Payload
	if w.Of != nil {
		payload = w.value(reflect.TypeOf(w.Of), nil, "")
	}
	for i, member := range head {
		switch properties, _ := member.Value.(schema.Node); member.Key {
		case "properties":
			properties = append(schema.Node{{Key: "type", Value: schema.Const(w.Name)}}, properties...)
			if payload != nil {
				properties = append(properties, schema.Member{Key: "payload", Value: payload})
			}
			head[i].Value = properties
		case "required":
			needed := append([]any{"type"}, member.Value.([]any)...)
			if payload != nil {
				needed = append(needed, "payload")
			}
			head[i].Value = needed
		}
	}
	return head
}

// parts returns the formats and types that the document defines once.
func (w *writer) parts() (parts schema.Node) {
	for _, name := range w.Formats {
		parts = append(parts, schema.Member{Key: name, Value: ordered(append(schema.Type("string"), schema.Formats[name]...))})
	}
	for _, part := range w.Parts {
		if part.Name == "" {
			continue
		}
		var node schema.Node
		if part.About != "" {
			node = schema.Node{{Key: "description", Value: part.About}}
		}
		node = append(node, w.object(elem(reflect.TypeOf(part.Of)), part.Name)...)
		parts = append(parts, schema.Member{Key: part.Name, Value: ordered(merged(node, part.Rules))})
	}
	return parts
}

// object returns the schema of a struct. The path leads to it from the document.
func (w *writer) object(kind reflect.Type, path string) schema.Node {
	kind = elem(kind)
	var properties, node schema.Node
	var needed, others []any
	w.members(kind, path, func(key string, member schema.Node, required bool) {
		properties = append(properties, schema.Member{Key: key, Value: member})
		if required {
			needed = append(needed, key)
		}
	}, func(document string) { others = append(others, schema.Ref(document)) })
	node = schema.Type("object")
	if len(properties) > 0 {
		node = append(node, schema.Member{Key: "properties", Value: properties})
	}
	if len(needed) > 0 {
		node = append(node, schema.Member{Key: "required", Value: needed})
	}
	if len(others) > 0 {
		node = append(node, schema.Member{Key: "allOf", Value: others})
	}
	return node
}

// members passes the members of a struct to add. It passes the documents that are embedded in the
// struct to also. The members of any other embedded struct count as its own.
func (w *writer) members(owner reflect.Type, path string, add func(key string, member schema.Node, required bool), also func(document string)) {
	for field := range owner.Fields() {
		name, option, tagged := strings.Cut(field.Tag.Get("json"), ",")
		embedded := name == "" && (option == "embed" || field.Anonymous && !tagged)
		switch {
		case name == "-", name == "" && !embedded, field.Tag.Get("schema") == "-":
			continue
		case embedded:
			kind := elem(field.Type)
			if as := w.As[field.Name]; as != nil {
				kind = reflect.TypeOf(as)
			}
			if document := w.documentOf(kind); document != "" {
				also(document)
			} else {
				w.members(kind, path, add, also)
			}
			continue
		}
		if w.Body {
			if name = object.SnakeCase(name); name == "task_id" || name == "dependency_id" {
				continue
			}
		}
		limits := w.limits(field.Tag.Get("schema"))
		required := !strings.Contains(option, "omitzero") && !strings.Contains(option, "omitempty")
		required = required && !limits.has("optional") || limits.has("required")
		if w.Lenient && !required && !limits.has("strict") {
			limits = append(limits, limit{word: "null"})
		}
		place := strings.TrimPrefix(path+"."+name, ".")
		kind := field.Type
		if as := w.As[place]; as != nil {
			kind = reflect.TypeOf(as)
		}
		member := slices.Clone(w.Nodes[place])
		if member == nil {
			member = w.value(kind, limits, place)
		}
		if about := w.about(owner, field, place); about != "" {
			member = append(member, schema.Member{Key: "description", Value: about})
		}
		add(name, w.ordered(member), required)
	}
}

// about returns the description of a member.
func (w *writer) about(kind reflect.Type, field reflect.StructField, path string) string {
	if about, ok := w.Members[path]; ok {
		return about
	}
	if w.comments == nil {
		w.comments = make(comments)
	}
	about, err := w.comments.of(w.Root, kind, field.Name)
	if err != nil {
		w.fail("%w", err)
	}
	return about
}

// documentOf returns the name of the document that a Go type declares, or "".
func (w *writer) documentOf(kind reflect.Type) string {
	i := slices.IndexFunc(w.Generator.Documents, func(d schema.Document) bool {
		return d.Head == nil && d.Of != nil && elem(reflect.TypeOf(d.Of)) == kind
	})
	if i < 0 || kind.Kind() != reflect.Struct {
		return ""
	}
	return w.Generator.Documents[i].Name
}

// partOf returns the part that a Go type declares, or a zero Part.
func (w *writer) partOf(kind reflect.Type) schema.Part {
	i := slices.IndexFunc(w.Parts, func(p schema.Part) bool { return elem(reflect.TypeOf(p.Of)) == kind })
	if i < 0 {
		return schema.Part{}
	}
	return w.Parts[i]
}

func elem(kind reflect.Type) reflect.Type {
	if kind.Kind() == reflect.Pointer {
		return kind.Elem()
	}
	return kind
}

// merged returns a schema with the keywords of another. Keywords of the other replace its own.
func merged(node, other schema.Node) schema.Node {
	for _, member := range other {
		if i := slices.IndexFunc(node, func(m schema.Member) bool { return m.Key == member.Key }); i < 0 {
			node = append(node, member)
		} else {
			node[i] = member
		}
	}
	return node
}

// ranks gives the order of keywords in the files.
var ranks = func() map[string]int {
	all := make(map[string]int)
	for i, key := range []string{
		"$schema", "$id", "title", "$ref", "type", "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
		"description", "items", "properties", "patternProperties", "additionalProperties", "required", "if", "then", "else", "not", "anyOf", "oneOf", "allOf", "$defs", "examples",
	} {
		all[key] = i + 1
	}
	return all
}()

// ordered returns a schema with its keywords in the order of the files. A keyword that stands
// twice has its last value.
func ordered(node schema.Node) schema.Node {
	last := make(map[string]any)
	for _, member := range node {
		last[member.Key] = member.Value
	}
	keys := slices.SortedFunc(maps.Keys(last), func(a, b string) int { return ranks[a] - ranks[b] })
	sorted := make(schema.Node, 0, len(keys))
	for _, key := range keys {
		sorted = append(sorted, schema.Member{Key: key, Value: last[key]})
	}
	return sorted
}
