package config

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// sensitive marks values that no message may quote.
const sensitive = mark("sensitive")

type mark string

// A scope holds the names that an expression may mention: roots such as var and local.
type scope struct {
	roots     map[string]cty.Value
	functions map[string]function.Function
}

func (s *scope) with(root string, v cty.Value) *scope {
	roots := maps.Clone(s.roots)
	roots[root] = v
	return &scope{roots: roots, functions: s.functions}
}

// evaluate evaluates an expression. It first checks the references of the expression, which gives better messages than
// the library does.
func (r *reader) evaluate(expr hcl.Expression, sc *scope) (cty.Value, bool) {
	usable, known := r.mentionsKnown(expr, sc)
	v, diags := work(expr, usable)
	if total, _ := measure(v); !diags.HasErrors() {
		if r.worked += total; r.worked > maxLoad {
			diags = tooLarge(expr.Range())
		}
	}
	r.diagnose(diags, "config/bad-expression", nil)
	if !known || diags.HasErrors() {
		return cty.DynamicVal, false
	}
	return v, true
}

// work is Expression.Value with bounds. It returns an error if a library function panics: a file must
// never crash the orchestrator. Its diagnostics quote no sensitive value.
func work(expr hcl.Expression, sc *scope) (v cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if recover() != nil {
			at := expr.Range()
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{
				Severity: hcl.DiagError,
				Summary:  "Expression cannot be evaluated",
				Detail:   "Write it in a simpler way.",
				Subject:  &at,
			}}
		}
	}()
	w := weigh(expr, sc)
	if w.over != nil {
		return cty.DynamicVal, tooLarge(*w.over)
	}
	v, diags = expr.Value(w.context)
	total, longest := measure(v)
	if !diags.HasErrors() && (longest > maxText || total > maxWork) {
		return cty.DynamicVal, tooLarge(expr.Range())
	}
	return v, w.withhold(diags)
}

// mentionsKnown reports unknown names in an expression. The returned scope has a value for each unknown name, so that
// the rest of the expression is checked as well.
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
		Code: "config/unknown-" + strings.ReplaceAll(kind, " ", "-"), Summary: "Unknown " + kind,
		Detail: fmt.Sprintf("The %s %q does not exist.", kind, name),
		Hint:   didYouMean(name, known),
	}
	if p.Hint == "" && len(known) > 0 && len(known) <= 12 {
		p.Hint = "Available: " + strings.Join(known, ", ") + "."
	} else if p.Hint == "" && kind == "variable" && len(known) == 0 && hclsyntax.ValidIdentifier(name) {
		p.Hint = fmt.Sprintf("Declare it: variable %q {}", name)
	}
	return p, at, true
}

// rootNames maps each root to the name of its members in messages.
var rootNames = map[string]string{
	"var": "variable", "local": "local", "secret": "secret", "self": "attribute of self", "path": "path",
}

func unknownRoot(t hcl.Traversal, sc *scope) Problem {
	name := t.RootName()
	switch {
	case name == "secret":
		return Problem{
			Code: "config/secret-outside-env", Summary: "Secret outside of env",
			Detail: "A secret can be used only in the env of an agent, so that it is never stored or shown.",
		}
	case name == "self":
		return Problem{
			Code: "config/unknown-reference", Summary: "No self here",
			Detail: "self.name and self.index exist only inside an agent block, and not in replicas.",
		}
	}
	p := Problem{
		Code: "config/unknown-reference", Summary: "Unknown reference",
		Detail: fmt.Sprintf("%q is not defined; an expression can use %s.", name, quotedList(slices.Sorted(maps.Keys(sc.roots)))),
	}
	p.Hint = didYouMean(name, slices.Collect(maps.Keys(sc.roots)))
	if of, ok := step(t); ok && name == "env" {
		p.Hint = fmt.Sprintf("Write env(%q).", of)
	} else if len(t) == 1 { // a root is never mentioned by itself
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

// functionTable returns the functions that expressions may call. env and file return sensitive
// values, because their content may be secret.
func (r *reader) functionTable() map[string]function.Function {
	return map[string]function.Function{
		"abspath": r.pathFunction(func(path string) (cty.Value, error) { return cty.StringVal(path), nil }),
		"env":     r.envFunction(),
		"file":    r.pathFunction(r.readFile),

		"tobool":   stdlib.MakeToFunc(cty.Bool),
		"tonumber": stdlib.MakeToFunc(cty.Number),
		"tostring": stdlib.MakeToFunc(cty.String),

		"coalesce":   stdlib.CoalesceFunc,
		"compact":    stdlib.CompactFunc,
		"concat":     stdlib.ConcatFunc,
		"contains":   stdlib.ContainsFunc,
		"distinct":   stdlib.DistinctFunc,
		"element":    stdlib.ElementFunc,
		"flatten":    stdlib.FlattenFunc,
		"format":     stdlib.FormatFunc,
		"join":       stdlib.JoinFunc,
		"jsondecode": stdlib.JSONDecodeFunc,
		"jsonencode": stdlib.JSONEncodeFunc,
		"keys":       stdlib.KeysFunc,
		"length":     stdlib.LengthFunc,
		"lookup":     stdlib.LookupFunc,
		"lower":      stdlib.LowerFunc,
		"max":        stdlib.MaxFunc,
		"merge":      stdlib.MergeFunc,
		"min":        stdlib.MinFunc,
		"range":      stdlib.RangeFunc,
		"replace":    stdlib.ReplaceFunc,
		"sort":       stdlib.SortFunc,
		"split":      stdlib.SplitFunc,
		"substr":     stdlib.SubstrFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"upper":      stdlib.UpperFunc,
		"values":     stdlib.ValuesFunc,
	}
}

// hush returns s marked as sensitive, and remembers it for masked.
func (r *reader) hush(s string) cty.Value {
	r.remember(s)
	return cty.StringVal(s).Mark(sensitive)
}

func (r *reader) remember(s string) {
	// A short value would also match parts of ordinary words.
	const shortest = 8
	if len(s) >= shortest {
		r.sensitive = append(r.sensitive, s)
	}
}

func (r *reader) envFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "env takes a name and one default")
			}
			if r.options.NoEnv {
				return cty.UnknownVal(cty.String).Mark(sensitive), nil
			}
			name := args[0].AsString()
			if value, ok := lookup(r.options.Environ, name); ok {
				return r.hush(strings.ToValidUTF8(value, "\uFFFD")), nil
			}
			if len(args) == 2 {
				return args[1].Mark(sensitive), nil
			}
			return cty.NilVal, function.NewArgErrorf(0,
				"Environment variable %q is not set; give a default as the second argument, env(%q, \"...\")", name, name)
		},
	})
}

func (r *reader) readFile(file string) (cty.Value, error) {
	r.values = append(r.values, file)
	text, err := readAll(context.Background(), file)
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "%s cannot be read: %v", file, cause(err))
	}
	return r.hush(strings.ToValidUTF8(string(text), "\uFFFD")), nil
}

// pathFunction returns a function of a path, which do gets as an absolute one.
func (r *reader) pathFunction(do func(path string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return do(r.config.absolute(args[0].AsString()))
		},
	})
}

// absolute resolves a path of the file: ~/ is the home folder, everything else
// is relative to the file.
func (c *Config) absolute(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok && c.home != "" {
		return filepath.Join(c.home, rest)
	}
	if p == "~" && c.home != "" {
		return c.home
	}
	return within(c.Dir, p)
}

// within returns p, relative to dir unless it is absolute.
func within(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// expression returns a func that compiles a regular expression at its first call. Every command
// links this package, but most read no file.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
