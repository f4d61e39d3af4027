package generator

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

// widest is the maximum length of a line with a whole value.
const widest = 120

// Text returns the file of a document, with its examples: a JSON list.
func (g *Generator) Text(d *schema.Document, examples []byte) ([]byte, error) {
	node, err := g.Document(d)
	if err != nil {
		return nil, err
	}
	list, err := parsed(jsontext.NewDecoder(bytes.NewReader(examples)))
	if err != nil {
		return nil, fmt.Errorf("the examples of %s: %w", d.Name, err)
	}
	node = append(schema.Node{
		{Key: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"},
		{Key: "$id", Value: "urn:orchestrator:" + d.Name},
	}, append(node, schema.Member{Key: "examples", Value: list})...)
	return Format(node), nil
}

// Line returns a value as JSON on one line.
func Line(value any) string { return string(appendLine(nil, value)) }

// Format returns a value as JSON with indents.
func Format(value any) []byte {
	return append(appendValue(nil, value, "", 0), '\n')
}

// appendValue appends a value, on one line if it fits. The line has used that many bytes.
func appendValue(b []byte, value any, indent string, used int) []byte {
	line := appendLine(nil, value)
	if len(indent)+used+len(line) <= widest && indent != "" {
		return append(b, line...)
	}
	inner := indent + "  "
	switch v := value.(type) {
	case schema.Node:
		if len(v) == 0 {
			break
		}
		b = append(b, '{')
		for i, member := range v {
			key := append(appendText(nil, member.Key), ": "...)
			b = append(separated(b, i, inner), key...)
			b = appendValue(b, member.Value, inner, len(key)+1)
		}
		return append(append(b, "\n"+indent...), '}')
	case []any:
		if len(v) == 0 {
			break
		}
		b = append(b, '[')
		for i, item := range v {
			b = appendValue(separated(b, i, inner), item, inner, 1)
		}
		return append(append(b, "\n"+indent...), ']')
	}
	return append(b, line...)
}

func separated(b []byte, i int, indent string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return append(b, "\n"+indent...)
}

// appendLine appends a value on one line.
func appendLine(b []byte, value any) []byte {
	switch v := value.(type) {
	case schema.Node:
		b = append(b, '{')
		for i, member := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendText(b, member.Key), ": "...)
			b = appendLine(b, member.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendLine(b, item)
		}
		return append(b, ']')
	case string:
		return appendText(b, v)
	case schema.Literal:
		return append(b, v...)
	}
	return fmt.Appendf(b, "%v", map[any]any{nil: "null", true: "true", false: "false"}[value])
}

// appendText appends a text with an escape for every control character, so that a file shows it.
func appendText(b []byte, text string) []byte {
	spelled := string(object.AppendText(nil, text))
	for _, c := range spelled {
		if c >= 0x7f && c < 0xa0 {
			spelled = strings.ReplaceAll(spelled, string(c), fmt.Sprintf(`\u%04x`, c))
		}
	}
	return append(b, spelled...)
}

// parsed reads the next value, with its members in order and its numbers digit for digit.
func parsed(from *jsontext.Decoder) (any, error) {
	switch from.PeekKind() {
	case '{':
		node := schema.Node{}
		_, err := from.ReadToken()
		for err == nil && from.PeekKind() != '}' {
			var key jsontext.Value
			if key, err = from.ReadValue(); err != nil {
				break
			}
			member := schema.Member{Key: string(object.Unquote(key))}
			member.Value, err = parsed(from)
			node = append(node, member)
		}
		if err == nil {
			_, err = from.ReadToken()
		}
		return node, err
	case '[':
		items := []any{}
		_, err := from.ReadToken()
		for err == nil && from.PeekKind() != ']' {
			var item any
			item, err = parsed(from)
			items = append(items, item)
		}
		if err == nil {
			_, err = from.ReadToken()
		}
		return items, err
	}
	value, err := from.ReadValue()
	return schema.Literal(value.Clone()), err
}
