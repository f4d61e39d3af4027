package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// The schema of the JSON form is generated from the reader itself. Every attribute of a file is
// given the same value, and what the reader objects to says which type each of them has.

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

// objections reads a file in which every attribute has a value. It returns the names of the file
// and the first problem of each attribute.
func objections(value cty.Value) (map[string]bool, map[string]Problem) {
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

// unchecked are the attributes that the reader takes as expressions, with what they hold.
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

// A schemaMaker has what the reader said of each value.
type schemaMaker struct {
	names                               map[string]bool
	toMap, toText, toTexts, toBool, toN map[string]Problem
	comments                            map[string]string
	defaults                            map[string]any
	blocks                              jsonObject // the schemas of bodies, by the paths of their blocks
}

func (m *schemaMaker) attribute(t *testing.T, path string) jsonObject {
	t.Helper()
	kind, ok := unchecked[path]
	if ok {
		kind = maps.Clone(kind)
	} else {
		kind = m.typeOf(t, path)
	}
	if kind["type"] != "string" || kind["enum"] != nil || kind["pattern"] != nil {
		kind = jsonObject{"anyOf": append(alternatives(kind), jsonObject{"$ref": "#/$defs/expression"})}
	}
	if len(unchecked[path]) == 1 && unchecked[path]["$ref"] != nil || path == "variable.default" {
		kind = maps.Clone(unchecked[path])
	}
	if said := cmp.Or(m.comments[path], m.comments[alone(path)]); said != "" {
		kind["description"] = said
	}
	for _, full := range []string{path, "defaults." + alone(path)} {
		if value, ok := m.defaults[full]; ok {
			kind["default"] = value
		}
	}
	return kind
}

func alternatives(kind jsonObject) []any {
	if several, ok := kind["anyOf"].([]any); ok {
		return several
	}
	return []any{kind}
}

var between = regexp.MustCompile(`is between (\S+) and (\S+)\.`)

// typeOf returns the schema of a value from what the reader expected in place of a map.
func (m *schemaMaker) typeOf(t *testing.T, path string) jsonObject {
	t.Helper()
	p := m.toMap[path]
	require.Equal(t, "config/wrong-type", p.Code, "%s takes a map: add it to unchecked", path)
	_, want, _ := strings.Cut(strings.TrimSuffix(p.Detail, ", not a map."), " is ")
	list := func(items jsonObject) jsonObject {
		several := []any{jsonObject{"type": "array", "items": items}}
		if m.toBool[path].Code == "" {
			several = append(several, jsonObject{"type": "boolean"})
		}
		if words := choices(m.toText[path]); words != nil {
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
		if limits := between.FindStringSubmatch(m.toN[path].Detail); limits != nil {
			number["minimum"], number["maximum"] = json.Number(limits[1]), json.Number(limits[2])
		}
		return number
	case want == "a list of whole numbers":
		return list(jsonObject{"type": "integer"})
	case strings.HasPrefix(want, "a list of commands"):
		return list(jsonObject{"type": "array", "items": jsonObject{"type": "string"}})
	case strings.HasPrefix(want, "a list of "):
		if words := choices(m.toTexts[path]); words != nil {
			return list(jsonObject{"enum": words})
		}
		return list(jsonObject{"type": "string"})
	}
	require.Fail(t, "no type", "%s is %s", path, want)
	return nil
}

func (m *schemaMaker) text(path string) jsonObject {
	switch p := m.toText[path]; {
	case p.Code == "config/unknown-value":
		return jsonObject{"enum": choices(p)}
	case p.Code == "config/bad-duration" && strings.Contains(p.Detail, `such as "250ms"`):
		return jsonObject{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case p.Code == "config/bad-size":
		return jsonObject{"type": "string", "pattern": `^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)$|^0$`}
	}
	return jsonObject{"type": "string"}
}

// choices returns the words of which a value may be one.
func choices(p Problem) []string {
	if p.Code != "config/unknown-value" {
		return nil
	}
	said, _, _ := strings.Cut(p.Detail, ", not ")
	var words []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(said, -1) {
		words = append(words, m[1])
	}
	return words
}

// block returns the schema of the body at a path, which ends in a dot unless it is the file.
func (m *schemaMaker) block(t *testing.T, path string) jsonObject {
	t.Helper()
	if path == "locals." {
		return jsonObject{"type": "object"}
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
		body := jsonObject{"$ref": "#/$defs/" + full}
		if m.names[full+"."] {
			body = jsonObject{"type": "object", "additionalProperties": body}
		}
		body = jsonObject{"anyOf": []any{body, jsonObject{"type": "array", "items": body}}}
		if said := cmp.Or(m.comments[full], m.comments[alone(full)]); said != "" {
			body["description"] = said
		}
		properties[name] = body
	}
	body := jsonObject{"type": "object", "properties": properties, "additionalProperties": false}
	if path == "agent." {
		body["required"] = []string{"command"}
	}
	return body
}

// newSchema returns the schema of the JSON form of a configuration file.
func newSchema(t *testing.T) ([]byte, *schemaMaker) {
	t.Helper()
	m := &schemaMaker{comments: map[string]string{}, defaults: map[string]any{}, blocks: jsonObject{}}
	m.names, m.toMap = objections(cty.EmptyObjectVal)
	_, m.toText = objections(cty.StringVal("?"))
	_, m.toTexts = objections(cty.TupleVal([]cty.Value{cty.StringVal("?")}))
	_, m.toBool = objections(cty.True)
	_, m.toN = objections(cty.NumberFloatVal(-1e18))
	for _, sample := range samples(t) {
		described("", sample, parsed(t, sample), m.comments)
	}
	text, err := os.ReadFile("testdata/defaults.hcl")
	require.NoError(t, err)
	inJSON(t, "", string(text), parsed(t, string(text)), m.defaults)
	for _, own := range []string{"orchestrator.name", "agent.command"} {
		delete(m.defaults, own)
	}
	schema := m.block(t, "")
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "orchestrator.hcl.json"
	schema["description"] = "The JSON form of a configuration file: orchestrator help config"
	schema["properties"].(jsonObject)["$schema"] = jsonObject{"type": "string", "description": "where this schema is, for editors"}
	m.blocks["expression"] = jsonObject{"type": "string", "pattern": `[$%]\{`, "description": "an expression, such as ${var.name}"}
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
		if _, said, ok := strings.Cut(line, "# "); ok && into[path] == "" {
			into[path] = strings.TrimSpace(said)
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
	for path, block := range m.names {
		if block || unchecked[path] != nil {
			continue
		}
		var wrong any = jsonObject{}
		names := strings.Split(path, ".")
		for i := len(names) - 1; i >= 0; i-- {
			wrong = jsonObject{names[i]: wrong}
			if i > 0 && m.names[strings.Join(names[:i], ".")+"."] {
				wrong = jsonObject{"any": wrong}
			}
		}
		require.Error(t, validate(wrong.(jsonObject)), path)
	}
	require.Error(t, validate(jsonObject{"agnet": jsonObject{}}))
	require.Error(t, validate(jsonObject{"agent": jsonObject{"a": jsonObject{"dir": "."}}}), "an agent without a command")
}

// TestJSONForm checks that the JSON form of a file is read as the file itself, and may name its
// schema.
func TestJSONForm(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/defaults.hcl")
	require.NoError(t, err)
	form := inJSON(t, "", string(text), parsed(t, string(text)), jsonObject{})
	form["$schema"], form["//"] = "orchestrator.schema.json", "a comment"
	out, err := json.Marshal(form)
	require.NoError(t, err)
	file := write(t, "orchestrator.hcl.json", string(out))
	same := write(t, "orchestrator.hcl", string(text))
	a, b := bare(load(t, file, Options{})), bare(load(t, same, Options{}))
	require.Equal(t, strings.ReplaceAll(fmt.Sprintf("%+v", b.Agents[0].Command), filepath.Dir(same), filepath.Dir(file)), fmt.Sprintf("%+v", a.Agents[0].Command))
	require.Equal(t, b.Agents[0].Limits, a.Agents[0].Limits)
	require.Equal(t, b.Scheduler, a.Scheduler)
	require.Equal(t, b.HTTP, a.HTTP)
}
