package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// A section describes what one kind of body may hold. It is created for each body, because its
// readers write to the part of Config that the body sets. Attributes that the file does not set
// keep their defaults.
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
	raw func(*hcl.Attribute)
}

// A child is one kind of block within a body.
type child struct {
	kind  string
	label string // the meaning of its label, or "" if it has none
	many  bool
	read  func(*hcl.Block)
}

func attr(name string, read func(value)) attribute { return attribute{name: name, read: read} }

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
	for _, a := range s.attributes {
		if a.name == name {
			return true
		}
	}
	return false
}

func (s *section) hasChild(kind string) bool {
	for _, c := range s.children {
		if c.kind == kind {
			return true
		}
	}
	return false
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
		r.children(content.Blocks, c)
	}
	return set
}

func (r *reader) children(blocks hcl.Blocks, c child) {
	var first *hcl.Block
	for _, b := range blocks {
		if b.Type != c.kind {
			continue
		}
		if first != nil && !c.many {
			r.report(b.DefRange, Problem{
				Code:    "config/duplicate-block",
				Summary: "Duplicate block",
				Detail:  fmt.Sprintf("There is one %s block at most; the first is at %s.", c.kind, place(first.DefRange)),
			})
			continue
		}
		if first == nil {
			first = b
		}
		c.read(b)
	}
}
