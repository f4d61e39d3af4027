package manual

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/schema"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// The protocol page is written by hand except for the parts between marks. They are generated
// here from the code.

const protocolPage = "../../help/protocol.md"

// generated maps the name in a mark to the function that generates this part.
var generated = map[string]func(*testing.T) string{
	"operations":    operationsPart,
	"documents":     documentsPart,
	"events":        func(t *testing.T) string { return messagesPart(t, "event:") },
	"notifications": func(t *testing.T) string { return messagesPart(t, "notify:") },
	"codes":         codesPart,
	"reasons":       reasonsPart,
	"states":        statesPart,
}

var generatedPart = regexp.MustCompile(`(?s)(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->\n)`)

func TestProtocolPage(t *testing.T) {
	text, err := os.ReadFile(protocolPage)
	require.NoError(t, err)
	var there []string
	fresh := generatedPart.ReplaceAllStringFunc(string(text), func(part string) string {
		found := generatedPart.FindStringSubmatch(part)
		there = append(there, found[2])
		require.Contains(t, generated, found[2])
		return found[1] + generated[found[2]](t) + found[3]
	})
	for name := range generated {
		require.Contains(t, there, name, "the page has no marks for it")
	}
	if *source.Update {
		require.NoError(t, os.WriteFile(protocolPage, []byte(fresh), 0o644))
		return
	}
	has, should := strings.Split(string(text), "\n"), strings.Split(fresh, "\n")
	for i := range min(len(has), len(should)) {
		require.Equal(t, should[i], has[i], "%s:%d\n%s", protocolPage, i+1, mend)
	}
	require.Equal(t, len(should), len(has), mend)
}

const mend = "update it with: go test ./cmd/orchestrator/e2e/manual -run TestProtocolPage -update"

// operationsPart returns a table of all operations, and then each in detail.
func operationsPart(t *testing.T) string {
	var b, details strings.Builder
	b.WriteString("| Operation | Who | From | Description |\n|---|---|---|---|\n")
	for _, o := range handlers.Operations() {
		from := "extension"
		if o.Published {
			from = "published"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, o.Audience, from, o.Summary)
		s := schemaNamed(t, "request:"+o.Name)
		fmt.Fprintf(&details, "\n### request:%s\n\n%s\n\n", o.Name, s.meaning())
		if fields := s.at("properties", "payload").fields(t, ""); fields == "" {
			details.WriteString("Its payload may be empty.\n")
		} else {
			details.WriteString(fieldTable + fields)
		}
		fmt.Fprintf(&details, "\nAnswer: %s.\n", strings.Join(answerOf(reflect.TypeOf(o.Answer).Elem(), ""), ", "))
		details.WriteString(schemaNamed(t, "response:success").at("$defs", o.Operation.Answer.Name).described())
	}
	return b.String() + details.String()
}

// answerOf describes the members of an answer's type.
func answerOf(of reflect.Type, prefix string) []string {
	if of == reflect.TypeFor[wire.TaskAnswer]() {
		return []string{"a task response, as it is"}
	}
	var parts []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue // not a member, as for the schema
		}
		name = prefix + name
		switch {
		case field.Anonymous:
			parts = append(parts, answerOf(field.Type, prefix)...)
		case field.Type == reflect.TypeFor[wire.Raw]():
			parts = append(parts, fmt.Sprintf("`%s` (a document)", name))
		case field.Type.Kind() == reflect.Int || field.Type.Kind() == reflect.Int64:
			parts = append(parts, fmt.Sprintf("`%s` (a number)", name))
		case field.Type.Kind() == reflect.Slice:
			parts = append(parts, fmt.Sprintf("`%s` (a list of %s)", name, several(shown(field.Type.Elem()))))
		case field.Type.Kind() == reflect.Bool:
			parts = append(parts, fmt.Sprintf("`%s` (true or false)", name))
		case field.Type.Kind() == reflect.Struct && slices.Contains(schema.Names(), strings.ToLower(field.Type.Name())):
			parts = append(parts, fmt.Sprintf("`%s` (a %s)", name, strings.ToLower(field.Type.Name())))
		case field.Type.Kind() == reflect.Struct:
			parts = append(parts, answerOf(field.Type, name+".")...)
		default:
			parts = append(parts, fmt.Sprintf("`%s` (text)", name))
		}
	}
	return parts
}

// shown returns the name of a type as in the manual. It has the package when the name of the type
// alone is unclear.
func shown(of reflect.Type) string {
	switch name := of.Name(); {
	case of == reflect.TypeFor[mail.Message]():
		return "Mail"
	case of.PkgPath() == reflect.TypeFor[session.Message]().PkgPath() && !strings.HasSuffix(name, "View"):
		return "Session" + name
	default:
		return name
	}
}

// several returns the plural of a type's name.
func several(name string) string {
	words := strings.ToLower(regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(strings.TrimSuffix(name, "View"), "$1-$2"))
	if before, ok := strings.CutSuffix(words, "y"); ok {
		return before + "ies"
	}
	return words + "s"
}

// documentsPart describes the documents in answers: the schemas that are not messages.
func documentsPart(t *testing.T) string {
	var b strings.Builder
	for _, name := range schema.Names() {
		if strings.Contains(name, ":") {
			continue
		}
		s := schemaNamed(t, name)
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s%s", strings.ToUpper(name[:1])+name[1:], s.meaning(), fieldTable, s.fields(t, ""))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// messagesPart describes all messages of a kind, except requests.
func messagesPart(t *testing.T, prefix string) string {
	var b strings.Builder
	for _, name := range schema.Names() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		s := schemaNamed(t, name)
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s%s", name, s.meaning(), fieldTable, s.at("properties", "payload").followed(t).fields(t, ""))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// followed returns the schema that a schema refers to, or the schema itself.
func (s shape) followed(t *testing.T) shape {
	t.Helper()
	if name := s.word("$ref"); name != "" {
		return schemaNamed(t, strings.TrimPrefix(name, "urn:orchestrator:"))
	}
	return s
}

// A shape is a JSON Schema or a part of one, with its members in order.
type shape struct {
	text    jsontext.Value
	members map[string]jsontext.Value
	order   []string
}

func schemaNamed(t *testing.T, name string) shape {
	t.Helper()
	text, ok := schema.Text(name)
	require.True(t, ok, name)
	return schemaOf(text)
}

func schemaOf(text []byte) shape {
	s := shape{text: text, members: make(map[string]jsontext.Value)}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := decoder.Token(); err != nil || len(text) == 0 || text[0] != '{' {
		return s
	}
	for decoder.More() {
		key, _ := decoder.Token()
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		s.order = append(s.order, key.(string))
		s.members[key.(string)] = jsontext.Value(value)
	}
	return s
}

func (s shape) at(path ...string) shape {
	for _, key := range path {
		s = schemaOf(s.members[key])
	}
	return s
}

func (s shape) words(key string) []string {
	var list []*string
	_ = json.Unmarshal(s.members[key], &list)
	var found []string
	for _, word := range list {
		if word != nil {
			found = append(found, *word)
		}
	}
	return found
}

func (s shape) word(key string) string {
	var text string
	_ = json.Unmarshal(s.members[key], &text)
	return text
}

// meaning returns the description without the sentences that all messages share.
func (s shape) meaning() string {
	text := s.word("description")
	for _, said := range []string{"One JSON object on one line", "No event is ever answered", "An extension of the published protocol", "There is nothing to answer"} {
		text, _, _ = strings.Cut(text, " "+said)
	}
	return text
}

const fieldTable = "| Field | Needed | Type | Meaning |\n|---|---|---|---|\n"

// fields returns the rows of a table: the properties of an object and of its nested objects.
func (s shape) fields(t *testing.T, prefix string) string {
	t.Helper()
	var b strings.Builder
	properties := s.at("properties")
	for _, name := range properties.order {
		p := properties.at(name)
		needed := ""
		if slices.Contains(s.words("required"), name) {
			needed = "yes"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", prefix, name, needed, p.kind(), p.cell())
		b.WriteString(p.fields(t, prefix+name+"."))
		b.WriteString(p.at("items").fields(t, prefix+name+"[]."))
	}
	return b.String()
}

// cell returns the description of a value, with its words if only some are valid.
func (s shape) cell() string {
	meaning := s.word("description")
	if words := s.words("enum"); len(words) > 0 {
		meaning += " One of `" + strings.Join(words, "`, `") + "`."
	}
	return strings.ReplaceAll(meaning, "|", `\|`)
}

// described returns a table of the members that have a description, or "".
func (s shape) described() string {
	var b strings.Builder
	properties := s.at("properties")
	for _, name := range properties.order {
		if meaning := properties.at(name).cell(); meaning != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, meaning)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n| Field | Meaning |\n|---|---|\n" + b.String()
}

// kind returns the type of a value as one word.
func (s shape) kind() string {
	types := s.words("type")
	if one := s.word("type"); one != "" {
		types = []string{one}
	}
	if len(s.members["enum"]) > 0 {
		types = []string{"string"}
	}
	var kinds []string
	for _, name := range types {
		switch name {
		case "null":
			continue
		case "string":
			name = "text"
			if strings.Contains(s.word("pattern"), "[0-9]{2}:[0-9]{2}") {
				name = "time"
			}
		case "integer":
			name = "whole number"
		case "boolean":
			name = "true or false"
		case "array":
			name = "list"
			if s.at("items").word("type") == "string" {
				name = "list of texts"
			}
		}
		kinds = append(kinds, name)
	}
	return strings.Join(kinds, " or ")
}

// statesPart returns the table of task states and their statuses for agents.
func statesPart(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| `status` | `state` |\n|---|---|\n")
	for _, status := range wire.TaskStatuses {
		var states []string
		for _, state := range wire.TaskStates {
			if state.Status() == status {
				states = append(states, "`"+string(state)+"`")
			}
		}
		require.NotEmpty(t, states)
		fmt.Fprintf(&b, "| `%s` | %s |\n", status, strings.Join(states, ", "))
	}
	return b.String()
}

// The page has samples of lines and their kinds: a word, then the line.
func TestLinesOfTheProtocolPageAreWhatItSays(t *testing.T) {
	text, err := os.ReadFile(protocolPage)
	require.NoError(t, err)
	seen := make(map[string]int)
	given := func(id string) bool { return id == "task-7" }
	reader := stdio.Reader{Agent: "coder", Depth: project.CheckedDepth, Given: given}
	for _, found := range regexp.MustCompile(`(?m)^(log|request|event|refused)  +(\S.*)$`).FindAllStringSubmatch(string(text), -1) {
		is := ""
		switch reader.Parse([]byte(found[2])).(type) {
		case wire.Log:
			is = "log"
		case *wire.Request:
			is = "request"
		case *wire.AgentEvent:
			is = "event"
		case *wire.Refused:
			is = "refused"
		}
		require.Equal(t, found[1], is, found[2])
		seen[is]++
	}
	require.Len(t, seen, 4, "an example of each")
}
