package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// A variables reads variables and gives them their values.
type variables struct {
	r        *reader
	declared map[string]*variable
}

// variables reads the declarations and returns the object named var. Each variable gets the
// value of the source with the highest precedence.
func (r *reader) variables(blocks hcl.Blocks) cty.Value {
	vs := &variables{r: r, declared: map[string]*variable{}}
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		if r.unique(seen, b) {
			vs.declared[b.Labels[0]] = vs.declaration(b)
		}
	}
	vs.assign()
	object := map[string]cty.Value{}
	for name, v := range vs.declared {
		if v.sensitive {
			r.config.withheld["ORC_VAR_"+name] = true
		}
		object[name] = vs.settled(v)
	}
	return cty.ObjectVal(object)
}

func (vs *variables) declaration(b *hcl.Block) *variable {
	v := &variable{name: b.Labels[0], at: b.LabelRanges[0], kind: cty.DynamicPseudoType}
	if !hclsyntax.ValidIdentifier(v.name) {
		vs.r.report(v.at, Problem{
			Code: "config/bad-name", Summary: "Bad name",
			Detail: "You refer to a variable as var.NAME, so its name can have only letters, digits, - and _, and must start with a letter.",
		})
	}
	var fallback *hcl.Attribute
	vs.r.read(b.Body, vs.r.scope, section{
		title: fmt.Sprintf("Variable %q", v.name),
		path:  "variable." + v.name,
		attributes: []attribute{
			{name: "type", raw: func(a *hcl.Attribute) { vs.variableType(v, a) }},
			{name: "default", raw: func(a *hcl.Attribute) { fallback = a }},
			attr("description", new(string), text),
			attr("sensitive", &v.sensitive, truth),
		},
	})
	if fallback != nil {
		if value, ok := vs.r.evaluate(fallback.Expr, vs.r.scope); ok {
			vs.give(v, value, fallback.Expr.Range(), "its default")
		} else {
			v.failed = true
		}
	}
	return v
}

func (vs *variables) variableType(v *variable, a *hcl.Attribute) {
	kind, optional, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
	vs.r.diagnose(diags, "config/bad-type", nil)
	if !diags.HasErrors() {
		v.kind, v.optional = kind, optional
	}
}

// give sets a variable, replacing a value of lower precedence. who names the source of the
// value.
func (vs *variables) give(v *variable, value cty.Value, at hcl.Range, who string) {
	if v.sensitive {
		vs.rememberAll(value)
	}
	if v.optional != nil && !value.IsNull() && value.IsWhollyKnown() {
		bare, marks := value.UnmarkDeep()
		value = v.optional.Apply(bare).WithMarks(marks)
	}
	converted, err := convert.Convert(value, v.kind)
	if err != nil {
		vs.r.report(at, Problem{
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
func (vs *variables) settled(v *variable) cty.Value {
	if v.value == cty.NilVal || v.failed {
		if !v.failed {
			vs.r.report(v.at, Problem{
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
func (vs *variables) rememberAll(v cty.Value) {
	bare, _ := v.UnmarkDeep()
	_ = cty.Walk(bare, func(_ cty.Path, leaf cty.Value) (bool, error) {
		if leaf.IsKnown() && !leaf.IsNull() && leaf.Type().IsPrimitiveType() {
			if s, err := convert.Convert(leaf, cty.String); err == nil {
				vs.r.sensitive = append(vs.r.sensitive, s.AsString())
			}
		}
		return true, nil
	})
}

// autoVarFile is read if it is in the folder of the configuration.
const autoVarFile = "orchestrator.auto.vars.hcl"

// assign sets the values of variables, beginning with the source of lowest precedence.
func (vs *variables) assign() {
	auto := filepath.Join(vs.r.config.Dir, autoVarFile)
	if _, err := os.Stat(auto); err == nil {
		vs.varFile(auto, autoVarFile)
	}
	if !vs.r.options.NoEnv {
		for name, v := range vs.declared {
			if raw, ok := lookup(vs.r.options.Environ, "ORC_VAR_"+name); ok {
				vs.giveText(v, raw, "ORC_VAR_"+name)
			}
		}
	}
	for _, file := range vs.r.options.VarFiles {
		vs.varFile(file, file)
	}
	for _, pair := range vs.r.options.Vars {
		vs.flagVar(pair)
	}
}

func (vs *variables) flagVar(pair string) {
	name, raw, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		vs.r.report(hcl.Range{}, Problem{
			Code: "config/bad-var", Summary: "Bad --var",
			Detail: "Use the form --var name=value.",
		})
		return
	}
	v, ok := vs.declared[name]
	if !ok {
		vs.r.report(hcl.Range{}, vs.undeclared(name, "--var "+name))
		return
	}
	vs.giveText(v, raw, "--var "+name)
}

func (vs *variables) undeclared(name, who string) Problem {
	return Problem{
		Code: "config/unknown-variable", Summary: "Unknown variable",
		Detail: fmt.Sprintf("%s sets a variable that the file does not declare.", who),
		Hint:   didYouMean(name, slices.Collect(maps.Keys(vs.declared))),
	}
}

// giveText parses a value that was given as text. For a text, number or bool it is the value
// itself, otherwise an expression such as ["a", "b"].
func (vs *variables) giveText(v *variable, raw, who string) {
	if v.sensitive {
		vs.r.remember(raw)
	}
	if v.kind == cty.DynamicPseudoType || v.kind.IsPrimitiveType() {
		value := cty.StringVal(strings.ToValidUTF8(raw, "\uFFFD"))
		if v.kind == cty.Number && hugeNumeral(raw) {
			vs.r.report(v.at, hugeNumber())
			v.failed = true
			return
		}
		vs.give(v, value, v.at, who)
		return
	}
	value, ok := parseText(raw, vs.r.scope)
	if !ok {
		vs.r.report(v.at, Problem{
			Code: "config/bad-var", Summary: "Bad value of variable",
			Detail: fmt.Sprintf("%s is not a list or map in the syntax of the file.", who),
		})
		v.failed = true
		return
	}
	vs.give(v, value, v.at, who)
}

func parseText(raw string, sc *scope) (cty.Value, bool) {
	if _, _, bad := excess([]byte(raw), "", false); bad || int64(len(raw)) > maxFile {
		return cty.NilVal, false
	}
	expr, diags := hclsyntax.ParseExpression([]byte(raw), "", hcl.InitialPos)
	if diags.HasErrors() || len(expr.Variables()) > 0 {
		return cty.NilVal, false
	}
	value, diags := work(expr, &scope{roots: sc.roots})
	return value, !diags.HasErrors()
}

// varFile reads a file of name = value lines.
func (vs *variables) varFile(file, name string) {
	body, ok := vs.r.open(file, name, true)
	if !ok {
		return
	}
	attributes, diags := body.JustAttributes()
	vs.r.diagnose(diags, "config/bad-body", nil)
	for _, a := range attributes {
		v, ok := vs.declared[a.Name]
		if !ok {
			vs.r.report(a.NameRange, vs.undeclared(a.Name, a.Name))
			continue
		}
		if value, ok := vs.r.evaluate(a.Expr, &scope{roots: map[string]cty.Value{}}); ok {
			vs.give(v, value, a.Expr.Range(), "the value here")
		} else {
			v.failed = true
		}
	}
}

// A locals evaluates locals in the order of their dependencies.
type locals struct {
	r       *reader
	exprs   map[string]*hcl.Attribute
	done    map[string]cty.Value
	pending []string       // the chain being evaluated
	at      map[string]int // index of a name in pending
}

// locals reads every locals block and returns the object named local.
func (r *reader) locals(blocks hcl.Blocks) cty.Value {
	l := &locals{r: r, exprs: map[string]*hcl.Attribute{}, done: map[string]cty.Value{}, at: map[string]int{}}
	for _, b := range blocks {
		attributes, diags := b.Body.JustAttributes()
		r.diagnose(diags, "config/bad-body", nil)
		for _, a := range attributes {
			if first, taken := l.exprs[a.Name]; taken {
				r.report(a.NameRange, Problem{
					Code: "config/duplicate-local", Summary: "Duplicate local",
					Detail: fmt.Sprintf("The name %q is already used at %s.", a.Name, place(first.NameRange)),
				})
				continue
			}
			l.exprs[a.Name] = a
		}
	}
	for _, name := range l.names() {
		l.work(name)
	}
	return cty.ObjectVal(l.done)
}

// names returns the names in file order, so that a cycle is reported where it begins.
func (l *locals) names() []string {
	return slices.SortedFunc(maps.Keys(l.exprs), func(a, b string) int {
		return l.exprs[a].Range.Start.Byte - l.exprs[b].Range.Start.Byte
	})
}

// work evaluates one local after the locals that it mentions. The value of an invalid local is unknown.
func (l *locals) work(name string) {
	if _, ok := l.done[name]; ok {
		return
	}
	a := l.exprs[name]
	needs, all := mentioned(a.Expr, "local")
	if all {
		needs = l.names()
	}
	l.at[name] = len(l.pending)
	l.pending = append(l.pending, name)
	visible := map[string]cty.Value{}
	ok := true
	for _, need := range needs {
		if l.exprs[need] == nil {
			continue // evaluate reports it
		}
		if i, waiting := l.at[need]; waiting {
			l.cycle(a, append(slices.Clone(l.pending[i:]), need))
			ok = false
			continue
		}
		l.work(need)
		visible[need] = l.done[need]
	}
	l.pending = l.pending[:len(l.pending)-1]
	delete(l.at, name)
	l.done[name] = cty.DynamicVal
	if !ok {
		return
	}
	if len(needs) > len(visible) { // a name is missing: suggest from all
		for other := range l.exprs {
			if _, ok := visible[other]; !ok {
				visible[other] = cty.DynamicVal
			}
		}
	}
	if v, ok := l.r.evaluate(a.Expr, l.r.scope.with("local", cty.ObjectVal(visible))); ok {
		l.done[name] = v
	}
}

func (l *locals) cycle(a *hcl.Attribute, chain []string) {
	l.r.report(a.Expr.Range(), Problem{
		Code: "config/local-cycle", Summary: "Locals depend on each other",
		Detail: fmt.Sprintf("These locals form a cycle: %s.", strings.Join(chain, " -> ")),
	})
}
