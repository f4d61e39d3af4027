package config

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A value is the known, non-null value of an attribute before it is stored in Config.
type value struct {
	r         *reader
	name      string // name of the attribute
	expr      hcl.Expression
	cty       cty.Value // without marks
	sensitive bool
}

// value evaluates an attribute. It returns false if the expression has a mistake, which it
// reports. It also returns false for null, which means the default, and for a value that is
// unknown because of Options.NoEnv.
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

// reject reports an invalid value. The detail may contain the value only through quoted.
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

// suggest is didYouMean, unless the suggestion would reveal a sensitive value.
func (v value) suggest(wrong string, known []string) string {
	if v.sensitive {
		return ""
	}
	return didYouMean(wrong, known)
}

// wrongKind reports a value of the wrong type.
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

// items returns the elements of a list. Each has its own position if the list is a literal.
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
