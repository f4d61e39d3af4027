package generator

import (
	"reflect"
	"slices"
	"strings"

	"orchestrator/wire/schema"
)

// A limit is a word of a schema tag, with its value if it has one.
type limit struct{ word, value string }

type limits []limit

func (l limits) has(word string) bool {
	return slices.ContainsFunc(l, func(l limit) bool { return l.word == word })
}

func (l limits) value(word string) string {
	for _, limit := range l {
		if limit.word == word {
			return limit.value
		}
	}
	return ""
}

// each returns the limits of the items of a list.
func (l limits) each() (items limits) {
	for _, limit := range l {
		if word, ok := strings.CutPrefix(limit.word, "each:"); ok {
			limit.word = word
			items = append(items, limit)
		}
	}
	return items
}

// limits splits a schema tag. Limits of lenient documents count only in those.
func (w *writer) limits(tag string) (all limits) {
	if tag == "" {
		return nil
	}
	for _, text := range strings.Split(tag, ",") {
		word, value, _ := strings.Cut(text, "=")
		if w.Lenient {
			word = strings.Replace(word, "in:", "", 1)
		}
		if !strings.Contains(word, "in:") {
			all = append(all, limit{word: word, value: value})
		}
	}
	return all
}

// value returns the schema of a value of a Go type.
func (w *writer) value(kind reflect.Type, limits limits, path string) schema.Node {
	kind = elem(kind)
	if limits.has("loose") {
		limits = slices.DeleteFunc(limits, func(l limit) bool { return l.word == "loose" })
		return schema.AnyOf(w.value(kind, limits, path), schema.Node{})
	}
	if document := w.documentOf(kind); document != "" && !limits.has("type") {
		return orNull(schema.Ref(document), limits)
	}
	if document := limits.value("ref"); document != "" {
		ref := orNull(schema.Ref(document), limits)
		if limits.has("type") {
			ref = append(nullable(w.bare(kind, limits, path)), ref...)
		}
		return ref
	}
	if part := w.partOf(kind); part.Name != "" {
		return orNull(schema.Ref("#/$defs/"+part.Name), limits)
	}
	if i := slices.IndexFunc(w.Formats, limits.has); i >= 0 {
		return orNull(schema.Ref("#/$defs/"+w.Formats[i]), limits)
	}
	node := w.bare(kind, limits, path)
	for _, limit := range limits {
		node = append(node, w.limited(limit)...)
	}
	if isList(kind) && !limits.has("any") && !limits.has("type") {
		node = append(node, schema.Member{Key: "items", Value: w.value(kind.Elem(), limits.each(), path)})
	}
	if limits.has("null") {
		node = nullable(node)
	}
	return w.ordered(node)
}

// isList reports whether a Go type is a list, and not JSON of any kind.
func isList(kind reflect.Type) bool {
	return kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8
}

// orNull returns a reference, or null if the limits allow it.
func orNull(ref schema.Node, limits limits) schema.Node {
	if !limits.has("null") {
		return ref
	}
	return schema.AnyOf(ref, schema.Type("null"))
}

// nullable returns a schema that also accepts null.
func nullable(node schema.Node) schema.Node {
	for i, member := range node {
		switch types := member.Value.(type) {
		case string:
			switch member.Key {
			case "type":
				node[i].Value = []any{types, "null"}
			case "const":
				node[i] = schema.Member{Key: "enum", Value: []any{types, nil}}
			}
		case []any:
			if member.Key == "type" || member.Key == "enum" {
				node[i].Value = append(slices.Clone(types), nil)
				if member.Key == "type" {
					node[i].Value.([]any)[len(types)] = "null"
				}
			}
		}
	}
	return node
}

// bare returns the schema of a Go type. Limits of its items count, and its own do not.
func (w *writer) bare(kind reflect.Type, limits limits, path string) schema.Node {
	if limits.has("any") || limits.has("enum") || limits.has("const") {
		return nil
	}
	if types := limits.value("type"); types != "" {
		return schema.Type(strings.Split(types, "|")...)
	}
	if words := w.Words[kind.String()]; words != nil && kind.Kind() == reflect.String {
		return schema.Enum(words...)
	}
	switch kind.Kind() {
	case reflect.String:
		return schema.Type("string")
	case reflect.Bool:
		return schema.Type("boolean")
	case reflect.Int, reflect.Int64:
		return schema.Type("integer")
	case reflect.Float64:
		return schema.Type("number")
	case reflect.Slice:
		if !isList(kind) { // JSON of any kind
			return nil
		}
		return schema.Type("array")
	case reflect.Map:
		if format := limits.value("keys"); format != "" {
			pattern, _ := schema.Formats[format][0].Value.(string)
			values := schema.Node{{Key: pattern, Value: w.value(kind.Elem(), limits.each(), path)}}
			return append(schema.Type("object"), schema.Member{Key: "patternProperties", Value: values}, schema.Member{Key: "additionalProperties", Value: false})
		}
		return append(schema.Type("object"), schema.Member{Key: "additionalProperties", Value: w.value(kind.Elem(), limits.each(), path)})
	case reflect.Struct:
		return merged(w.object(kind, path), w.partOf(kind).Rules)
	case reflect.Interface:
		return nil
	}
	w.fail("%s has no schema", kind)
	return nil
}

// keywords maps limits to the keywords of JSON Schema.
var keywords = map[string]string{
	"min": "minimum", "max": "maximum", "minlen": "minLength", "maxlen": "maxLength", "minitems": "minItems", "maxitems": "maxItems",
}

// limited returns the keywords of a limit.
func (w *writer) limited(l limit) schema.Node {
	if keyword := keywords[l.word]; keyword != "" {
		return schema.Node{{Key: keyword, Value: schema.Literal(l.value)}}
	}
	switch l.word {
	case "whole":
		return schema.Node{{Key: "minimum", Value: schema.Literal(l.value)}, {Key: "maximum", Value: schema.Literal("9007199254740991")}}
	case "ms":
		return schema.Node{{Key: "minimum", Value: schema.Literal(l.value)}, {Key: "maximum", Value: schema.Literal("31536000000")}}
	case "example":
		return schema.Node{{Key: "examples", Value: words(strings.Split(l.value, "|"))}}
	case "about":
		return schema.Node{{Key: "description", Value: l.value}}
	case "const":
		return schema.Const(l.value)
	case "enum":
		if words := w.Words[l.value]; words != nil {
			return schema.Enum(words...)
		}
		if !strings.Contains(l.value, "|") {
			w.fail("the list of words %s is not declared", l.value)
		}
		return schema.Enum(strings.Split(l.value, "|")...)
	case "null", "required", "optional", "strict", "type", "any", "keys", "own", "output":
		return nil
	}
	if strings.HasPrefix(l.word, "each:") {
		return nil
	}
	format, ok := schema.Formats[l.word]
	if !ok {
		w.fail("a schema tag has the unknown word %s", l.word)
	}
	return slices.DeleteFunc(slices.Clone(format), func(m schema.Member) bool { return m.Key == "description" })
}

func words(of []string) []any {
	all := make([]any, 0, len(of))
	for _, word := range of {
		all = append(all, word)
	}
	return all
}
