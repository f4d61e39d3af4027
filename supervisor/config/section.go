package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/gocty"

	"orchestrator/supervisor/settings"
)

// A section lists the names that one kind of body may hold, once for all that is done with them: a row
// is read, has a default, and is compared at a reload. A section is created for each body, because its
// rows name the part of Config that the body sets. Attributes that the file does not set keep their
// defaults.
type section struct {
	title      string // its name in messages: `Agent "coder"`
	path       string // its key in Config.places: agent.coder
	attributes []attribute
	children   []child
}

// An attribute is one name = value.
type attribute struct {
	name string
	read func(value)
	// raw reads the expression instead, for values that are evaluated later or in a special
	// way.
	raw     func(*hcl.Attribute)
	initial any // the default, as a file has it; nil without one
	reload
}

// A derived is a default that depends on the folder of the file. setDefaults leaves it out.
type derived string

// A reload is the comparison of a row in two configurations.
type reload struct {
	needs settings.Action // of a change; "" if the row is a part of one that is compared
	held  []any           // pointers to the variables that the row sets
}

// A child is one kind of block within a body.
type child struct {
	kind  string
	label string // the meaning of its label, or "" if it has none
	many  bool

	attributes []attribute
	children   []child
	check      func(b *hcl.Block, set map[string]hcl.Range) // may be nil
	read       func(*hcl.Block)                             // replaces these three
	reload                                                  // of the block as a whole
}

// attr returns an attribute with a value that read stores in into.
func attr[T any](name string, into *T, read func(into *T, v value)) attribute {
	return attribute{name: name, read: func(v value) { read(into, v) }, reload: reload{held: []any{into}}}
}

// raw returns an attribute that gives its expression to read.
func raw(name string, read func(*hcl.Attribute), held ...any) attribute {
	return attribute{name: name, raw: read, reload: reload{held: held}}
}

// of names the variables that are compared, if they are not the target.
func (a attribute) of(held ...any) attribute {
	a.held = held
	return a
}

// live, restarts and refused return the attribute with the need of a change, and with its default.
func (a attribute) live(initial any) attribute     { return a.with(settings.ActionLive, initial) }
func (a attribute) restarts(initial any) attribute { return a.with(settings.ActionRestart, initial) }
func (a attribute) refused(initial any) attribute  { return a.with(settings.ActionRefused, initial) }

// initially returns the attribute of a block that is compared as a whole, with its default.
func (a attribute) initially(initial any) attribute { return a.with("", initial) }

func (a attribute) with(needs settings.Action, initial any) attribute {
	a.needs, a.initial = needs, initial
	return a
}

// live and restarts return a block that is compared as a whole, with the need of a change.
func (c child) live(held ...any) child {
	c.reload = reload{needs: settings.ActionLive, held: held}
	return c
}

func (c child) restarts(held ...any) child {
	c.reload = reload{needs: settings.ActionRestart, held: held}
	return c
}

// body returns the section of a block at a path.
func (c child) body(path string) section {
	return section{title: "Block " + c.kind, path: path, attributes: c.attributes, children: c.children}
}

// setDefaults stores the defaults of a section and of the blocks in it.
func (r *reader) setDefaults(s section) {
	for _, a := range s.attributes {
		if _, is := a.initial.(derived); is || a.initial == nil || a.raw != nil {
			continue
		}
		ty, _ := gocty.ImpliedType(a.initial) // a test reads all of them from a file
		v, _ := gocty.ToCtyValue(a.initial, ty)
		a.read(value{r: r, name: a.name, expr: hcl.StaticExpr(v, hcl.Range{}), cty: v})
	}
	for _, c := range s.children {
		r.setDefaults(c.body(c.kind))
	}
}

// A row is an attribute or a block that is compared at a reload.
type row struct {
	name string
	reload
}

// rows returns the rows of a section, each with its name behind a prefix.
func (s section) rows(prefix string) (all []row) {
	for _, a := range s.attributes {
		if a.needs != "" {
			all = append(all, row{name: prefix + a.name, reload: a.reload})
		}
	}
	for _, c := range s.children {
		if c.needs != "" {
			all = append(all, row{name: prefix + c.kind, reload: c.reload})
		} else {
			all = append(all, c.body("").rows(prefix+c.kind+".")...)
		}
	}
	return all
}

func (s *section) schema() *hcl.BodySchema {
	schema := &hcl.BodySchema{}
	for _, a := range s.attributes {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: a.name})
	}
	for _, c := range s.children {
		header := hcl.BlockHeaderSchema{Type: c.kind}
		if c.label != "" {
			header.LabelNames = []string{c.label}
		}
		schema.Blocks = append(schema.Blocks, header)
	}
	return schema
}

func (s *section) names() []string {
	var names []string
	for _, a := range s.attributes {
		names = append(names, a.name)
	}
	for _, c := range s.children {
		names = append(names, c.kind)
	}
	return names
}

func (s *section) hasAttribute(name string) bool {
	return slices.ContainsFunc(s.attributes, func(a attribute) bool { return a.name == name })
}

func (s *section) hasChild(kind string) bool {
	return slices.ContainsFunc(s.children, func(c child) bool { return c.kind == kind })
}

// read reads a body and returns the positions of its attributes.
func (r *reader) read(body hcl.Body, sc *scope, s section) map[string]hcl.Range {
	content, diags := body.Content(s.schema())
	r.diagnose(diags, "config/bad-body", &s)
	set := map[string]hcl.Range{}
	if content == nil {
		return set
	}
	for _, a := range s.attributes {
		found, ok := content.Attributes[a.name]
		if !ok {
			continue
		}
		set[a.name] = found.Range
		r.config.places[s.path+"."+a.name] = place(found.NameRange)
		if a.raw != nil {
			a.raw(found)
			continue
		}
		if v, ok := r.value(found.Expr, a.name, sc); ok {
			a.read(v)
		}
	}
	for _, c := range s.children {
		if c.read == nil {
			c.read = func(b *hcl.Block) { r.block(b, c, s.path+"."+c.kind, sc) }
		}
		r.children(content.Blocks, c)
	}
	return set
}

// readFresh reads the body of a block that has no variables before, and begins with the defaults.
func (r *reader) readFresh(body hcl.Body, sc *scope, s section) map[string]hcl.Range {
	r.setDefaults(s)
	return r.read(body, sc, s)
}

// block reads a block as its child describes it.
func (r *reader) block(b *hcl.Block, c child, path string, sc *scope) {
	if set := r.read(b.Body, sc, c.body(path)); c.check != nil {
		c.check(b, set)
	}
}

func (r *reader) children(blocks hcl.Blocks, c child) {
	var first *hcl.Block
	for _, b := range blocks {
		if b.Type != c.kind {
			continue
		}
		if first != nil && !c.many {
			r.report(b.DefRange, Problem{
				Code: "config/duplicate-block", Summary: "Duplicate block",
				Detail: fmt.Sprintf("Only one %s block is allowed; the first is at %s.", c.kind, place(first.DefRange)),
			})
			continue
		}
		if first == nil {
			first = b
		}
		c.read(b)
	}
}

// strange recognizes a file of a completely different kind. A parser would report a hundred
// mistakes in it, but not the real one.
func strange(text []byte, isJSON bool) (Problem, bool) {
	p := Problem{Code: "config/not-hcl", Summary: "Not a configuration file"}
	first := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		p.Detail, p.Hint = "It is UTF-16.", "Save it as UTF-8."
	case bytes.IndexByte(text, 0) >= 0:
		p.Detail = "It is not text: it contains NUL bytes."
	case !isJSON && bytes.HasPrefix(first, []byte("{")):
		p.Detail, p.Hint = "It looks like JSON.", "Rename it to orchestrator.hcl.json, or write it in HCL."
	default:
		return Problem{}, false
	}
	return p, true
}

// CodeEmptyFile is the code of the warning about a file without declarations.
const CodeEmptyFile = "config/empty-file"

// warnOfEmpty warns about an empty file, which is valid but seldom intended.
func (r *reader) warnOfEmpty(body hcl.Body, name string) {
	if declaresNothing(body) {
		r.report(hcl.Range{Filename: name}, Problem{
			Severity: SeverityWarning, Code: CodeEmptyFile, Summary: "File is empty",
			Detail: "It declares no agent, so there is nothing to start.",
			Hint:   `Declare an agent: agent "coder" { command = ["python3", "coder.py"] }`,
		})
	}
}

// declaresNothing reports whether a file has neither attributes nor blocks.
func declaresNothing(body hcl.Body) bool {
	if native, ok := body.(*hclsyntax.Body); ok {
		return len(native.Attributes) == 0 && len(native.Blocks) == 0
	}
	members, problems := body.JustAttributes() // of JSON, including members that stand for blocks
	return len(members) == 0 && !problems.HasErrors()
}

// rewordSyntax explains a colon in place of an equals sign, which the parser does not
// recognize. It returns false for a mistake that follows from single quotes.
func (r *reader) rewordSyntax(p *Problem, at hcl.Range) bool {
	src := r.sources[at.Filename]
	if src == nil || p.Summary != "Argument or block definition required" || at.End.Byte > len(src.text) {
		return true
	}
	name := r.sources.nameAt(at)
	switch after := bytes.TrimLeft(src.text[at.End.Byte:], " \t"); {
	case bytes.HasPrefix(after, []byte("'")):
		return false // single quotes have their own message
	case bytes.HasPrefix(after, []byte(":")):
		p.Detail = "HCL uses no colon here."
		p.Hint = fmt.Sprintf("Write an attribute as %s = …, and a block as %s { … }.", name, name)
	}
	return true
}

// placeOf returns a hint if an attribute at the top of the file belongs in an agent block.
func placeOf(name string, known *section) string {
	if known.title != "The file" {
		return ""
	}
	agent := new(reader).agentSection(new(Agent), nil, nil, false)
	if !agent.hasAttribute(name) {
		return ""
	}
	return fmt.Sprintf("It belongs in an agent block: agent \"NAME\" { %s = … }", name)
}

// meansCommand reports whether an agent has a misspelled command attribute. The missing command
// is then not reported as well.
func meansCommand(b *hcl.Block) bool {
	native, ok := b.Body.(*hclsyntax.Body)
	if !ok {
		return false
	}
	for name := range native.Attributes {
		if nearest(name, []string{"command"}) != "" {
			return true
		}
	}
	return false
}

// listed returns a hint with all names that a section may hold.
func (s *section) listed() string {
	return fmt.Sprintf("It can have %s.", strings.ReplaceAll(quotedList(s.names()), `"`, ""))
}

// missing reports that a block lacks a required attribute.
func (r *reader) missing(b *hcl.Block, detail, hint string) {
	r.report(b.DefRange, Problem{Code: "config/missing-attribute", Summary: "Missing attribute", Detail: detail, Hint: hint})
}
