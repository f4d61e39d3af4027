package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A variable is a declaration with its value.
type variable struct {
	name      string
	at        hcl.Range // position of the label
	kind      cty.Type
	optional  *typeexpr.Defaults
	sensitive bool
	value     cty.Value // cty.NilVal until it is set
	failed    bool      // an invalid value was given
}

// variables reads the declarations and returns the object named var. Each variable gets the
// value of the source with the highest precedence.
func (r *reader) variables(blocks hcl.Blocks) cty.Value {
	seen := map[string]hcl.Range{}
	declared := map[string]*variable{}
	for _, b := range blocks {
		if r.unique(seen, b) {
			declared[b.Labels[0]] = r.declaration(b)
		}
	}
	r.assign(declared)
	for name, v := range declared {
		if v.sensitive {
			r.config.withheld["ORC_VAR_"+name] = true
		}
	}
	object := map[string]cty.Value{}
	for name, v := range declared {
		object[name] = r.settled(v)
	}
	return cty.ObjectVal(object)
}

func (r *reader) declaration(b *hcl.Block) *variable {
	v := &variable{name: b.Labels[0], at: b.LabelRanges[0], kind: cty.DynamicPseudoType}
	if !hclsyntax.ValidIdentifier(v.name) {
		r.report(v.at, Problem{
			Code: "config/bad-name", Summary: "Bad name",
			Detail: "A variable is called var.NAME, so its name has letters, digits, - and _ only, and starts with a letter.",
		})
	}
	var fallback *hcl.Attribute
	r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Variable %q", v.name),
		path:  "variable." + v.name,
		attributes: []attribute{
			{name: "type", raw: func(a *hcl.Attribute) { r.variableType(v, a) }},
			{name: "default", raw: func(a *hcl.Attribute) { fallback = a }},
			attr("description", text(new(string))),
			attr("sensitive", truth(&v.sensitive)),
		},
	})
	if fallback != nil {
		if value, ok := r.evaluate(fallback.Expr, r.scope); ok {
			r.give(v, value, fallback.Expr.Range(), "its default")
		} else {
			v.failed = true
		}
	}
	return v
}

func (r *reader) variableType(v *variable, a *hcl.Attribute) {
	kind, optional, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
	r.diagnose(diags, "config/bad-type", nil)
	if !diags.HasErrors() {
		v.kind, v.optional = kind, optional
	}
}

// give sets a variable, replacing a value of lower precedence. who names the source of the
// value.
func (r *reader) give(v *variable, value cty.Value, at hcl.Range, who string) {
	if v.sensitive {
		r.rememberAll(value)
	}
	if v.optional != nil && !value.IsNull() && value.IsWhollyKnown() {
		bare, marks := value.UnmarkDeep()
		value = v.optional.Apply(bare).WithMarks(marks)
	}
	converted, err := convert.Convert(value, v.kind)
	if err != nil {
		r.report(at, Problem{
			Code: "config/wrong-type", Summary: "Wrong type of variable",
			Detail: fmt.Sprintf("Variable %q has the type %s; %s is %s.",
				v.name, typeexpr.TypeString(v.kind), who, kindOf(value)),
		})
		v.failed = true
		return
	}
	v.value = converted
}

// settled returns the value that expressions see. A variable without a value is unknown, so
// that it is reported once and not at each use.
func (r *reader) settled(v *variable) cty.Value {
	if v.value == cty.NilVal || v.failed {
		if !v.failed {
			r.report(v.at, Problem{
				Code: "config/missing-variable", Summary: "Variable without a value",
				Detail: fmt.Sprintf("Variable %q has no default and was given no value.", v.name),
				Hint:   fmt.Sprintf("Give one with --var %s=… or ORC_VAR_%s=….", v.name, v.name),
			})
		}
		return cty.DynamicVal
	}
	if v.sensitive {
		return v.value.Mark(sensitive)
	}
	return v.value
}

// rememberAll remembers every text within a value for masked.
func (r *reader) rememberAll(v cty.Value) {
	bare, _ := v.UnmarkDeep()
	_ = cty.Walk(bare, func(_ cty.Path, leaf cty.Value) (bool, error) {
		if leaf.IsKnown() && !leaf.IsNull() && leaf.Type().IsPrimitiveType() {
			if s, err := convert.Convert(leaf, cty.String); err == nil {
				r.sensitive = append(r.sensitive, s.AsString())
			}
		}
		return true, nil
	})
}
