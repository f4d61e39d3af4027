package config

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

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
	v.reject("wrong-type", "Wrong type", fmt.Sprintf("%s must be %s, not %s.", v.name, want, kindOf(v.cty)), "")
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

// asQuoted is asText without numbers and booleans, which HCL converts to text: for a name, they are mistakes.
func (v value) asQuoted() (string, bool) {
	if v.cty.Type() != cty.String {
		v.wrongKind("text in quotes")
		return "", false
	}
	return v.asText()
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

// The functions in this file read attributes: into a variable, if the value is allowed. One with
// arguments returns such a function.

func text(into *string, v value) {
	if s, ok := v.asText(); ok {
		*into = s
	}
}

// word reads a text that is not empty.
func word(into *string, v value) {
	s, ok := v.asText()
	if ok && s == "" {
		v.reject("empty", "Empty value", v.name+" must not be empty.", "")
		return
	}
	if ok {
		*into = s
	}
}

// quoted is word for a name, which a number or a boolean is not.
func quoted(into *string, v value) {
	if _, ok := v.asQuoted(); ok {
		word(into, v)
	}
}

// choice reads one of a few words.
func choice(words ...string) func(*string, value) {
	return func(into *string, v value) {
		s, ok := v.asText()
		if !ok {
			return
		}
		if !slices.Contains(words, s) {
			v.reject("unknown-value", "Unknown value",
				fmt.Sprintf("%s must be %s, not %s.", v.name, quotedList(words), v.quoted()), v.suggest(s, words))
			return
		}
		*into = s
	}
}

// chosen reads one of a few words, and reports whether it is word.
func chosen(word string, words ...string) func(*bool, value) {
	return func(into *bool, v value) {
		s := ""
		if choice(words...)(&s, v); s != "" {
			*into = s == word
		}
	}
}

func truth(into *bool, v value) {
	b, err := convert.Convert(v.cty, cty.Bool)
	if err != nil || b.IsNull() {
		v.wrongKind("true or false")
		return
	}
	*into = b.True()
}

// whole reads an integer between least and most.
func whole(least, most int) func(*int, value) {
	return func(into *int, v value) {
		n, ok := v.asNumber("a whole number")
		if !ok {
			return
		}
		i, accuracy := n.Int64()
		switch {
		case !n.IsInt():
			v.reject("bad-number", "Not a whole number", fmt.Sprintf("%s must be a whole number.", v.name), "")
		case accuracy != big.Exact || i < int64(least) || i > int64(most):
			v.reject("out-of-range", "Number out of range",
				fmt.Sprintf("%s must be between %d and %d.", v.name, least, most), "")
		default:
			*into = int(i)
		}
	}
}

// count is whole for a larger type.
func count(least, most int) func(*int64, value) {
	return func(into *int64, v value) {
		n := int(*into)
		whole(least, most)(&n, v)
		*into = int64(n)
	}
}

// ratio reads a number between least and most.
func ratio(least, most float64) func(*float64, value) {
	return func(into *float64, v value) {
		n, ok := v.asNumber("a number")
		if !ok {
			return
		}
		f, _ := n.Float64()
		if f < least || f > most {
			v.reject("out-of-range", "Number out of range",
				fmt.Sprintf("%s must be between %v and %v.", v.name, least, most), "")
			return
		}
		*into = f
	}
}

func duration(into *time.Duration, v value) {
	if v.cty.Type() == cty.Number {
		v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s must be a duration.", v.name), unitHint("Durations", v, "s"))
		return
	}
	s, ok := v.asText()
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && isDigits(s):
		v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s must be a duration.", v.name), unitHint("Durations", v, "s"))
	case err != nil:
		v.reject("bad-duration", "Bad duration",
			fmt.Sprintf("%s must be a duration such as \"250ms\", \"30s\" or \"2h\", not %s.", v.name, v.quoted()), "")
	case d < 0:
		v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s cannot be negative.", v.name), "")
	default:
		*into = d
	}
}

// longer reads a duration that is not zero.
func longer(into *time.Duration, v value) {
	d := time.Duration(-1)
	duration(&d, v)
	if d == 0 {
		v.reject("out-of-range", "Duration out of range", v.name+" must be longer than zero.", "")
	}
	if d > 0 {
		*into = d
	}
}

// milliseconds stores a duration that read reads, rounded up, because 0 is none.
func milliseconds(read func(*time.Duration, value)) func(*int64, value) {
	return func(into *int64, v value) {
		d := time.Duration(*into) * time.Millisecond
		read(&d, v)
		*into = (d + time.Millisecond - 1).Milliseconds()
	}
}

// size reads a number of bytes that is not below least.
func size(least int64) func(*int64, value) { return sizeUpTo(least, math.MaxInt64) }

// maxSaid is the largest message. It must fit into one fact of the record, which holds 32 MiB.
const maxSaid = 28 << 20

// sizeUpTo is size with an upper limit.
func sizeUpTo(least, most int64) func(*int64, value) {
	return func(into *int64, v value) {
		if n := v.cty; n.Type() == cty.Number && n.AsBigFloat().Sign() != 0 {
			v.reject("bad-size", "Bad size", fmt.Sprintf("%s must be a size.", v.name), unitHint("Sizes", v, "MiB"))
			return
		}
		s, ok := v.asText()
		if !ok {
			return
		}
		n, err := parseSize(s)
		switch {
		case err != nil && isDigits(s):
			v.reject("bad-size", "Bad size", fmt.Sprintf("%s must be a size.", v.name), unitHint("Sizes", v, "MiB"))
		case err != nil:
			v.reject("bad-size", "Bad size",
				fmt.Sprintf("%s must be a size such as \"64KiB\", \"16MiB\" or \"1GiB\", not %s: %v.", v.name, v.quoted(), err),
				v.sizeHint(s))
		case n < least:
			v.reject("out-of-range", "Size out of range",
				fmt.Sprintf("%s must be at least %d bytes.", v.name, least), "")
		case n > most:
			v.reject("out-of-range", "Size out of range",
				fmt.Sprintf("%s must be at most %d MiB.", v.name, most>>20), "Put larger content into a file, and its name into the message.")
		default:
			*into = n
		}
	}
}

func unitHint(what string, v value, unit string) string {
	if v.sensitive {
		return what + " need a unit."
	}
	if s, err := convert.Convert(v.cty, cty.String); err == nil {
		return fmt.Sprintf("%s need a unit: %q?", what, s.AsString()+unit)
	}
	return what + " need a unit."
}

// words reads a list of texts. An empty list becomes nil, so that lists can be compared.
func words(into *[]string, v value) {
	items, ok := v.items("a list of words")
	if !ok {
		return
	}
	var list []string
	for _, item := range items {
		s, ok := item.asText()
		if !ok {
			return
		}
		list = append(list, s)
	}
	*into = list
}

// numbers reads a list of whole numbers.
func numbers(least, most int) func(*[]int, value) {
	return func(into *[]int, v value) {
		items, ok := v.items("a list of whole numbers")
		if !ok {
			return
		}
		var list []int
		for _, item := range items {
			n := least - 1
			if whole(least, most)(&n, item); n < least {
				return
			}
			list = append(list, n)
		}
		*into = list
	}
}

// path reads the path of a file or folder and makes it absolute.
func path(absolute func(string) string) func(*string, value) {
	return func(into *string, v value) {
		var s string
		if word(&s, v); s != "" {
			*into = absolute(s)
		}
	}
}

// units are the units of sizes, longer names first so that the whole suffix is matched.
var units = []struct {
	name  string
	bytes int64
}{
	{name: "KiB", bytes: kib},
	{name: "MiB", bytes: mib},
	{name: "GiB", bytes: gib},
	{name: "KB", bytes: 1_000},
	{name: "MB", bytes: 1_000_000},
	{name: "GB", bytes: 1_000_000_000},
	{name: "B", bytes: 1},
}

var (
	errNoUnit   = errors.New("it has no unit")
	errNoNumber = errors.New("it is not a whole number with a unit")
	errTooLarge = errors.New("it is too large")
)

// parseSize parses a size such as "64KiB". Only "0" needs no unit.
func parseSize(s string) (int64, error) {
	if s == "0" {
		return 0, nil
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		if !isDigits(digits) {
			return 0, errNoNumber
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, errTooLarge
		}
		return n * u.bytes, nil
	}
	return 0, errNoUnit
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// sizeHint returns a hint with the size that was probably meant by "64k" or "16 mib".
func (v value) sizeHint(s string) string {
	if v.sensitive {
		return ""
	}
	compact := strings.ToUpper(strings.ReplaceAll(s, " ", ""))
	number := strings.TrimRight(compact, "KMGIB")
	if !isDigits(number) {
		return ""
	}
	for _, u := range units {
		unit := strings.ToUpper(u.name)
		if rest := compact[len(number):]; rest == unit || rest == unit[:1] {
			return "Did you mean " + strconv.Quote(number+u.name) + "?"
		}
	}
	return ""
}
