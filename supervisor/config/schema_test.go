package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// The schema of the JSON form is generated from the reader. Every attribute of a file gets the same
// value, such as a map, and the problems of the reader tell the types: "delay is text in quotes, not a
// map". So the schema depends on the texts of problems.

// A probe is a body that has each name once, all with the same value.
type probe struct {
	path  string
	value cty.Value
	names map[string]bool // of attributes; of blocks if true
}

func (p *probe) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content := &hcl.BodyContent{Attributes: hcl.Attributes{}}
	for _, a := range schema.Attributes {
		path := p.path + a.Name
		p.names[path] = false
		at := hcl.Range{Filename: path}
		content.Attributes[a.Name] = &hcl.Attribute{Name: a.Name, Expr: hcl.StaticExpr(p.value, at), Range: at, NameRange: at}
	}
	for _, h := range schema.Blocks {
		path := p.path + h.Type
		p.names[path] = true
		block := &hcl.Block{Type: h.Type, Body: &probe{path: path + ".", value: p.value, names: p.names}}
		if len(h.LabelNames) > 0 {
			p.names[path+"."] = true
			block.Labels, block.LabelRanges = []string{"any"}, []hcl.Range{{}}
		}
		content.Blocks = append(content.Blocks, block)
	}
	return content, nil
}

func (p *probe) PartialContent(*hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	return &hcl.BodyContent{}, p, nil // the reader asks for all of a body later
}

func (p *probe) JustAttributes() (hcl.Attributes, hcl.Diagnostics) { return nil, nil }
func (p *probe) MissingItemRange() hcl.Range                       { return hcl.Range{} }

// problemsWith reads a file with the same value for every attribute. It returns the names of the
// file, and the first problem of each attribute.
func problemsWith(value cty.Value) (map[string]bool, map[string]Problem) {
	r := &reader{options: Options{NoEnv: true}, sources: map[string]*source{}, agents: map[string]*block{}, actors: map[string]string{}}
	r.config = standard("/shop/orchestrator.hcl")
	r.functions = r.functionTable()
	body := &probe{value: value, names: map[string]bool{}}
	r.file(body)
	found := map[string]Problem{}
	for _, p := range r.problems {
		if _, again := found[p.Range.Filename]; !again {
			found[p.Range.Filename] = p
		}
	}
	return body.names, found
}

// unchecked are the attributes that the reader takes as expressions, with their contents.
var unchecked = map[string]jsonObject{
	"agent.env":              {"type": "object", "additionalProperties": jsonObject{"type": []string{"string", "number", "boolean", "null"}}},
	"agent.replicas":         {"type": "integer", "minimum": 0, "maximum": maxReplicas},
	"agent.placement.labels": {"type": "object", "additionalProperties": jsonObject{"type": "string"}},
	"host.labels":            {"type": "object", "additionalProperties": jsonObject{"type": "string"}},
	"notify.secret":          {"$ref": "#/$defs/expression"},
	"notify.webhook":         {"type": "string"},
	"store.credentials":      {"$ref": "#/$defs/expression"},
	"variable.default":       {},
	"variable.type":          {"type": "string"},
}

type jsonObject = map[string]any

// A schemaMaker makes the schema of a file.
type schemaMaker struct {
	names    map[string]bool
	problems map[string]map[string]Problem // by the value that was given, then by attribute
	comments map[string]string             // of the manual page, by attribute and block
	defaults map[string]any
	blocks   jsonObject // the schemas of bodies, by the paths of their blocks
}

// problem returns the problem of an attribute with a value: map, text, texts, bool or number.
func (m *schemaMaker) problem(value, path string) Problem { return m.problems[value][path] }

// of returns the entry of a table for an attribute. The page shows the blocks of an agent once.
func of[V any](table map[string]V, path string) (v V, ok bool) {
	_, rest, _ := strings.Cut(path, ".")
	for _, name := range []string{path, alone(path), "agent." + alone(path), "defaults." + alone(path), rest} {
		if v, ok := table[name]; ok {
			return v, true
		}
	}
	return v, false
}

// attribute returns the schema of the value of an attribute, or of an expression for it.
func (m *schemaMaker) attribute(t *testing.T, path string) jsonObject {
	t.Helper()
	kind, ok := unchecked[path]
	if !ok {
		kind = m.typeOf(t, path)
	}
	switch {
	case kind["$ref"] != nil || len(kind) == 0: // an expression, or anything
		kind = maps.Clone(kind)
	default:
		kind = jsonObject{"if": jsonObject{"$ref": "#/$defs/expression"}, "else": kind}
	}
	if comment, ok := of(m.comments, path); ok {
		kind["description"] = comment
	}
	if value, ok := of(m.defaults, path); ok {
		kind["default"] = value
	}
	return kind
}

var between = regexp.MustCompile(`must be between (\S+) and (\S+)\.`)

// typeOf returns the schema of a value from the type that the reader expected in place of a map.
func (m *schemaMaker) typeOf(t *testing.T, path string) jsonObject {
	t.Helper()
	p := m.problem("map", path)
	require.Equal(t, "config/wrong-type", p.Code, "%s takes a map: add it to unchecked", path)
	_, want, _ := strings.Cut(strings.TrimSuffix(p.Detail, ", not a map."), " must be ")
	list := func(items jsonObject) jsonObject {
		several := []any{jsonObject{"type": "array", "items": items}}
		if m.problem("bool", path).Code == "" {
			several = append(several, jsonObject{"type": "boolean"})
		}
		if words := choices(m.problem("text", path)); words != nil {
			several = append(several, jsonObject{"enum": words})
		}
		if len(several) == 1 {
			return several[0].(jsonObject)
		}
		return jsonObject{"anyOf": several}
	}
	switch {
	case want == "text in quotes":
		return m.text(path)
	case want == "true or false":
		return jsonObject{"type": "boolean"}
	case want == "a whole number", want == "a number":
		number := jsonObject{"type": "integer"}
		if want == "a number" {
			number["type"] = "number"
		}
		if limits := between.FindStringSubmatch(m.problem("number", path).Detail); limits != nil {
			number["minimum"], number["maximum"] = json.Number(limits[1]), json.Number(limits[2])
		}
		return number
	case want == "a list of whole numbers":
		return list(jsonObject{"type": "integer"})
	case strings.HasPrefix(want, "a list of commands"):
		return list(jsonObject{"type": "array", "items": jsonObject{"type": "string"}})
	case strings.HasPrefix(want, "a list of "):
		if words := choices(m.problem("texts", path)); words != nil {
			return list(jsonObject{"enum": words})
		}
		return list(jsonObject{"type": "string"})
	}
	require.Fail(t, "no type", "%s is %s", path, want)
	return nil
}

func (m *schemaMaker) text(path string) jsonObject {
	switch p := m.problem("text", path); {
	case p.Code == "config/unknown-value":
		return jsonObject{"enum": choices(p)}
	case p.Code == "config/bad-duration" && strings.Contains(p.Detail, `such as "250ms"`):
		return jsonObject{"type": "string", "pattern": `^\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|^0$`}
	case p.Code == "config/bad-size":
		return jsonObject{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)$|^0$`, "minimum": 0, "maximum": 0}
	}
	return jsonObject{"type": "string"}
}

// choices returns the words that a value may have.
func choices(p Problem) []string {
	if p.Code != "config/unknown-value" {
		return nil
	}
	listed, _, _ := strings.Cut(p.Detail, ", not ")
	var words []string
	for _, word := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(listed, -1) {
		words = append(words, word[1])
	}
	return words
}

// block returns the schema of the body at a path, which ends in a dot unless it is the file.
func (m *schemaMaker) block(t *testing.T, path string) jsonObject {
	t.Helper()
	if path == "locals." {
		return jsonObject{"type": []string{"object", "array"}}
	}
	properties := jsonObject{"//": jsonObject{"description": "a comment"}}
	for _, full := range slices.Sorted(maps.Keys(m.names)) {
		name, inside := strings.CutPrefix(full, path)
		if !inside || name == "" || strings.Contains(name, ".") {
			continue
		}
		if !m.names[full] {
			properties[name] = m.attribute(t, full)
			continue
		}
		m.blocks[full] = m.block(t, full+".")
		block := jsonObject{"$ref": "#/$defs/" + full}
		if m.names[full+"."] { // it has a label
			block = jsonObject{"type": []string{"object", "array"}, "additionalProperties": block, "items": jsonObject{"type": "object", "additionalProperties": block}}
		}
		if comment, ok := of(m.comments, full); ok {
			block["description"] = comment
		}
		properties[name] = block
	}
	// Several bodies are an array.
	body := jsonObject{"type": []string{"object", "array"}, "properties": properties, "additionalProperties": false, "items": jsonObject{"$ref": "#/$defs/" + strings.TrimSuffix(path, ".")}}
	switch path {
	case "":
		body["type"] = "object"
		delete(body, "items")
	case "agent.": // the programs of the other agents are known
		body["if"] = jsonObject{"properties": jsonObject{"protocol": jsonObject{"enum": []string{"native", "messages", "acp", "raw"}}}}
		body["then"] = jsonObject{"required": []string{"command"}}
	}
	return body
}

// newSchema returns the schema of the JSON form of a configuration file.
func newSchema(t *testing.T) ([]byte, *schemaMaker) {
	t.Helper()
	m := &schemaMaker{comments: map[string]string{}, defaults: map[string]any{}, blocks: jsonObject{}}
	m.problems = make(map[string]map[string]Problem)
	for name, value := range map[string]cty.Value{
		"map": cty.EmptyObjectVal, "text": cty.StringVal("?"), "texts": cty.TupleVal([]cty.Value{cty.StringVal("?")}), "bool": cty.True, "number": cty.NumberFloatVal(-1e18),
	} {
		m.names, m.problems[name] = problemsWith(value)
	}
	for _, sample := range samples(t) {
		described("", sample, parsed(t, sample), m.comments)
	}
	text := reference()
	inJSON(t, "", text, parsed(t, text), m.defaults)
	delete(m.defaults, "agent.command")
	schema := m.block(t, "")
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "orchestrator.hcl.json"
	schema["description"] = "The JSON form of a configuration file: orchestrator help config"
	schema["properties"].(jsonObject)["$schema"] = jsonObject{"type": "string", "description": "where this schema is, for editors"}
	m.blocks["expression"] = jsonObject{"type": []string{"string", "null"}, "pattern": `[$%]\{`, "description": "an expression, such as ${var.name}, or null for the default"}
	schema["$defs"] = m.blocks
	out, err := json.MarshalIndent(schema, "", " ")
	require.NoError(t, err)
	return append(out, '\n'), m
}

// samples returns the samples of the manual page, with commented alternatives as attributes.
func samples(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(manualPage)
	require.NoError(t, err)
	var all []string
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 1 && !strings.HasPrefix(part, "json") {
			all = append(all, regexp.MustCompile(`(?m)^(\s*)# (\w+ += )`).ReplaceAllString(part, "$1$2"))
		}
	}
	return all
}

func parsed(t *testing.T, text string) *hclsyntax.Body {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(text), "sample", hcl.InitialPos)
	require.False(t, diags.HasErrors(), "%v\n%s", diags, text)
	return file.Body.(*hclsyntax.Body)
}

// described collects the comments behind attributes and the openings of blocks. The first counts.
func described(prefix, text string, body *hclsyntax.Body, into map[string]string) {
	note := func(path string, from int) {
		line, _, _ := strings.Cut(text[from:], "\n")
		if _, comment, ok := strings.Cut(line, "# "); ok && into[path] == "" {
			into[path] = strings.TrimSpace(comment)
		}
	}
	for _, a := range body.Attributes {
		note(prefix+a.Name, a.Expr.Range().End.Byte)
	}
	for _, b := range body.Blocks {
		note(prefix+b.Type, b.OpenBraceRange.End.Byte)
		described(prefix+b.Type+".", text, b.Body, into)
	}
}

// inJSON returns the JSON form of a file, and notes the values of attributes by their paths.
func inJSON(t *testing.T, prefix, text string, body *hclsyntax.Body, values map[string]any) jsonObject {
	t.Helper()
	out := jsonObject{}
	for _, a := range body.Attributes {
		at := a.Expr.Range()
		source := text[at.Start.Byte:at.End.Byte]
		value, diags := a.Expr.Value(nil)
		switch {
		case !diags.HasErrors():
			raw, err := ctyjson.Marshal(value, value.Type())
			require.NoError(t, err)
			out[a.Name] = json.RawMessage(raw)
			values[prefix+a.Name] = out[a.Name]
		case strings.HasPrefix(source, `"`):
			out[a.Name] = strings.Trim(source, `"`)
		case prefix+a.Name == "variable.type":
			out[a.Name] = source
		default:
			out[a.Name] = "${" + source + "}"
		}
	}
	for _, b := range body.Blocks {
		inner := inJSON(t, prefix+b.Type+".", text, b.Body, values)
		if len(b.Labels) > 0 {
			inner = jsonObject{b.Labels[0]: inner}
		}
		list, _ := out[b.Type].([]any)
		out[b.Type] = append(list, inner)
	}
	return out
}

// TestSchemaOfTheFile generates the schema and compares it with the one in the program. Then it
// checks the schema with every sample of the manual, and with the mistakes of each attribute.
func TestSchemaOfTheFile(t *testing.T) {
	t.Parallel()
	text, m := newSchema(t)
	if *update {
		require.NoError(t, os.WriteFile("schema.json", text, 0o644))
		Schema = text
	}
	require.Equal(t, string(text), string(Schema), "write it anew: go test ./supervisor/config -run TestSchemaOfTheFile -update")
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", document))
	schema, err := c.Compile("schema.json")
	require.NoError(t, err)
	validate := func(file jsonObject) error {
		text, err := json.Marshal(file)
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		return schema.Validate(value)
	}
	for _, sample := range samples(t) {
		form := inJSON(t, "", sample, parsed(t, sample), jsonObject{})
		for name := range form {
			if !m.names[name] { // it is a part of the block of an agent
				form["command"] = []string{"cat"}
				form = jsonObject{"agent": jsonObject{"any": form}}
				break
			}
		}
		require.NoError(t, validate(form), sample)
	}
	const agent = `"command":["cat"]`
	for path, block := range m.names {
		if block || unchecked[path] != nil {
			continue
		}
		names := strings.Split(path, ".")
		file := func(value any) jsonObject {
			for i := len(names) - 1; i >= 0; i-- {
				inner := jsonObject{names[i]: value}
				if i == 1 && names[0] == "agent" && names[1] != "command" {
					inner["command"] = []string{"cat"}
				}
				value = inner
				if i > 0 && m.names[strings.Join(names[:i], ".")+"."] {
					value = jsonObject{"any": value}
				}
			}
			return value.(jsonObject)
		}
		require.NoError(t, validate(file("${var.any}")), path)
		require.Error(t, validate(file(jsonObject{})), path)
	}
	for text, valid := range map[string]bool{
		`{"agnet":{}}`:                                                            false,
		`{"agent":{"a":{"dir":"."}}}`:                                             false, // no command
		`{"agent":{"a":{"protocol":"claude"}}}`:                                   true,
		`{"agent":{"a":{"protocol":"raw"}}}`:                                      false,
		`{"agent":{"a":[{` + agent + `}]}}`:                                       true,
		`{"agent":[{"a":{` + agent + `}},{"b":{` + agent + `}}]}`:                 true,
		`{"agent":{"a":{` + agent + `,"limits":{"memory":0}}}}`:                   true,
		`{"agent":{"a":{` + agent + `,"limits":{"memory":5}}}}`:                   false,
		`{"agent":{"a":{` + agent + `,"restart":{"policy":"sometimes"}}}}`:        false,
		`{"agent":{"a":{` + agent + `,"restart":{"policy":null,"delay":".5s"}}}}`: true,
		`{"agent":{"a":{` + agent + `,"restart":[{"delay":"1m30s","burst":1}]}}}`: true,
		`{"agent":{"a":{` + agent + `,"confine":{"network":[443]}}}}`:             true,
		`{"agent":{"a":{` + agent + `,"confine":{"network":"some"}}}}`:            false,
		`{"locals":{"a":1},"variable":{"v":{"default":["anything"]}}}`:            true,
	} {
		var file jsonObject
		require.NoError(t, json.Unmarshal([]byte(text), &file))
		require.Equal(t, valid, validate(file) == nil, text)
		_, problems := Load(write(t, "orchestrator.hcl.json", text), Options{})
		require.Equal(t, valid, problems.Errors() == 0, "%s\n%s", text, rendered(problems))
	}
}

// TestJSONForm checks that the JSON form of a file is read as the file itself, and may name its
// schema.
func TestJSONForm(t *testing.T) {
	t.Parallel()
	text := reference()
	form := inJSON(t, "", text, parsed(t, text), jsonObject{})
	form["$schema"], form["//"] = "orchestrator.schema.json", "a comment"
	out, err := json.Marshal(form)
	require.NoError(t, err)
	file := write(t, "testdata/orchestrator.hcl", text, "testdata/orchestrator.hcl.json", string(out))
	plain, same := bare(load(t, file, Options{})), bare(load(t, file+".json", Options{}))
	for i := range plain.Agents {
		plain.Agents[i].Place, same.Agents[i].Place = "", ""
	}
	require.Equal(t, plain, same)
}
