package config

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// value is an attribute's value, known and not null, on its way into Config.
type value struct {
	r         *reader
	name      string // of the attribute
	expr      hcl.Expression
	cty       cty.Value // without marks
	sensitive bool
}

// value evaluates an attribute. It is false when there is nothing to read: the
// expression has a mistake, which is then reported, or its value is null, which
// means the default, or it is not known because of Options.NoEnv.
func (r *reader) value(expr hcl.Expression, name string, sc *scope) (value, bool) {
	v, ok := r.evaluate(expr, sc)
	if !ok || !v.IsWhollyKnown() {
		return value{}, false
	}
	bare, marks := v.UnmarkDeep()
	if bare.IsNull() {
		return value{}, false
	}
	return value{r: r, name: name, expr: expr, cty: bare, sensitive: len(marks) > 0}, true
}

// reject reports a value that does not do. The detail may quote it only by way
// of quoted.
func (v value) reject(code, summary, detail, hint string) {
	v.r.report(v.expr.Range(), Problem{Code: "config/" + code, Summary: summary, Detail: detail, Hint: hint})
}

func (v value) warn(code, summary, detail, hint string) {
	v.r.report(v.expr.Range(), Problem{Severity: SeverityWarning, Code: "config/" + code, Summary: summary, Detail: detail, Hint: hint})
}

func (v value) quoted() string {
	if v.sensitive {
		return "(sensitive)"
	}
	if v.cty.Type() == cty.String {
		return fmt.Sprintf("%q", v.cty.AsString())
	}
	if s, err := convert.Convert(v.cty, cty.String); err == nil {
		return s.AsString()
	}
	return kindOf(v.cty)
}

// suggest is didYouMean, unless that would give the value away.
func (v value) suggest(wrong string, known []string) string {
	if v.sensitive {
		return ""
	}
	return didYouMean(wrong, known)
}

// wrongKind reports a list where a number should be, and the like.
func (v value) wrongKind(want string) {
	v.reject("wrong-type", "Wrong type", fmt.Sprintf("%s is %s, not %s.", v.name, want, kindOf(v.cty)), "")
}

func kindOf(v cty.Value) string {
	ty := v.Type()
	switch {
	case v.IsNull():
		return "null"
	case ty == cty.String:
		return "text"
	case ty == cty.Number:
		return "a number"
	case ty == cty.Bool:
		return "true or false"
	case ty.IsListType(), ty.IsTupleType(), ty.IsSetType():
		return "a list"
	case ty.IsMapType(), ty.IsObjectType():
		return "a map"
	}
	return "something else"
}

func (v value) asText() (string, bool) {
	s, err := convert.Convert(v.cty, cty.String)
	if err != nil || s.IsNull() {
		v.wrongKind("text in quotes")
		return "", false
	}
	return s.AsString(), true
}

func (v value) asNumber(want string) (*big.Float, bool) {
	n, err := convert.Convert(v.cty, cty.Number)
	if err != nil || n.IsNull() {
		v.wrongKind(want)
		return nil, false
	}
	return n.AsBigFloat(), true
}

// items are the elements of a list, each with its own place where the file
// spells the list out.
func (v value) items(want string) ([]value, bool) {
	ty := v.cty.Type()
	if !ty.IsListType() && !ty.IsTupleType() && !ty.IsSetType() {
		v.wrongKind(want)
		return nil, false
	}
	exprs, diags := hcl.ExprList(v.expr)
	spelled := !diags.HasErrors() && len(exprs) == v.cty.LengthInt()
	var items []value
	for i, element := range v.cty.AsValueSlice() {
		item := v
		item.cty = element
		item.name = "each element of " + v.name
		if spelled {
			item.expr = exprs[i]
		}
		items = append(items, item)
	}
	return items, true
}
