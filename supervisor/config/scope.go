package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// sensitive marks values that no message may quote.
const sensitive = mark("sensitive")

type mark string

// A scope holds what an expression may mention: roots such as var and local.
type scope struct {
	roots     map[string]cty.Value
	functions map[string]function.Function
}

func (s *scope) with(root string, v cty.Value) *scope {
	roots := maps.Clone(s.roots)
	roots[root] = v
	return &scope{roots: roots, functions: s.functions}
}

func (s *scope) context() *hcl.EvalContext {
	return &hcl.EvalContext{Variables: s.roots, Functions: s.functions}
}

// evaluate evaluates an expression. It first checks what the expression mentions, which gives
// better messages than the library does.
func (r *reader) evaluate(expr hcl.Expression, sc *scope) (cty.Value, bool) {
	usable, known := r.mentionsKnown(expr, sc)
	v, diags := work(expr, usable)
	r.diagnose(diags, "config/bad-expression", nil)
	if !known || diags.HasErrors() {
		return cty.DynamicVal, false
	}
	return v, true
}

// work is Expression.Value, but returns an error if a library function panics. A file must
// never crash the orchestrator.
func work(expr hcl.Expression, sc *scope) (v cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if recover() != nil {
			at := expr.Range()
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{
				Severity: hcl.DiagError,
				Summary:  "Expression cannot be evaluated",
				Detail:   "Please write it in a simpler way.",
				Subject:  &at,
			}}
		}
	}()
	return expr.Value(sc.context())
}

// mentionsKnown reports unknown names in an expression. The scope that it returns has a value
// for each of them, so that the rest of the expression is checked as well.
func (r *reader) mentionsKnown(expr hcl.Expression, sc *scope) (usable *scope, ok bool) {
	usable, ok = sc, true
	for _, t := range expr.Variables() {
		if p, at, bad := unknownMention(t, sc); bad {
			r.report(at, p)
			usable, ok = usable.with(t.RootName(), cty.DynamicVal), false
		}
	}
	return usable, ok
}

// unknownMention returns the problem of a reference such as var.modle.
func unknownMention(t hcl.Traversal, sc *scope) (Problem, hcl.Range, bool) {
	at := t.SourceRange()
	root, ok := sc.roots[t.RootName()]
	if !ok {
		return unknownRoot(t, sc), at, true
	}
	name, ok := step(t)
	if !ok || !root.IsKnown() || !root.Type().IsObjectType() || root.Type().HasAttribute(name) {
		return Problem{}, at, false
	}
	known := slices.Sorted(maps.Keys(root.Type().AttributeTypes()))
	kind := rootNames[t.RootName()]
	p := Problem{
		Code:    "config/unknown-" + strings.ReplaceAll(kind, " ", "-"),
		Summary: "Unknown " + kind,
		Detail:  fmt.Sprintf("There is no %s %q.", kind, name),
		Hint:    didYouMean(name, known),
	}
	if p.Hint == "" && len(known) > 0 && len(known) <= 12 {
		p.Hint = "There are: " + strings.Join(known, ", ") + "."
	}
	return p, at, true
}

// rootNames maps each root to the name of its members in messages.
var rootNames = map[string]string{
	"var":    "variable",
	"local":  "local",
	"secret": "secret",
	"self":   "attribute of self",
	"path":   "path",
}

func unknownRoot(t hcl.Traversal, sc *scope) Problem {
	name := t.RootName()
	switch {
	case name == "secret":
		return Problem{
			Code:    "config/secret-outside-env",
			Summary: "Secret outside of env",
			Detail:  "A secret can be used only in the env of an agent, so that it is never stored or shown.",
		}
	case name == "self":
		return Problem{
			Code:    "config/unknown-reference",
			Summary: "No self here",
			Detail:  "self.name and self.index exist only inside of an agent block, and not in replicas.",
		}
	}
	p := Problem{
		Code:    "config/unknown-reference",
		Summary: "Unknown reference",
		Detail:  fmt.Sprintf("There is no %q; an expression may mention %s.", name, quotedList(slices.Sorted(maps.Keys(sc.roots)))),
	}
	p.Hint = didYouMean(name, slices.Collect(maps.Keys(sc.roots)))
	if len(t) == 1 { // a root is never mentioned by itself
		p.Hint = fmt.Sprintf("For the text itself use quotes: %q.", name)
	}
	return p
}

// step returns the first name after the root, as in var.model and var["model"].
func step(t hcl.Traversal) (string, bool) {
	if len(t) < 2 {
		return "", false
	}
	switch s := t[1].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// mentioned returns the names that an expression uses of a root. all is true if it uses the
// whole root.
func mentioned(expr hcl.Expression, root string) (names []string, all bool) {
	for _, t := range expr.Variables() {
		if t.RootName() != root {
			continue
		}
		name, ok := step(t)
		if !ok {
			all = true
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, all
}
