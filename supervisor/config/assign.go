package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// autoVarFile is read if it is in the folder of the configuration.
const autoVarFile = "orchestrator.auto.vars.hcl"

// assign sets the values of variables, beginning with the source of lowest precedence.
func (r *reader) assign(declared map[string]*variable) {
	auto := filepath.Join(r.config.Dir, autoVarFile)
	if _, err := os.Stat(auto); err == nil {
		r.varFile(auto, autoVarFile, declared)
	}
	if !r.options.NoEnv {
		for name, v := range declared {
			if raw, ok := lookup(r.options.Environ, "ORC_VAR_"+name); ok {
				r.giveText(v, raw, "ORC_VAR_"+name)
			}
		}
	}
	for _, file := range r.options.VarFiles {
		r.varFile(file, file, declared)
	}
	for _, pair := range r.options.Vars {
		r.flagVar(pair, declared)
	}
}

func (r *reader) flagVar(pair string, declared map[string]*variable) {
	name, raw, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		r.report(hcl.Range{}, Problem{
			Code: "config/bad-var", Summary: "Bad --var",
			Detail: "A variable is given as --var name=value.",
		})
		return
	}
	v, ok := declared[name]
	if !ok {
		r.report(hcl.Range{}, undeclared(name, "--var "+name, declared))
		return
	}
	r.giveText(v, raw, "--var "+name)
}

func undeclared(name, who string, declared map[string]*variable) Problem {
	return Problem{
		Code: "config/unknown-variable", Summary: "Unknown variable",
		Detail: fmt.Sprintf("%s is for a variable the file does not declare.", who),
		Hint:   didYouMean(name, slices.Collect(maps.Keys(declared))),
	}
}

// giveText parses a value that was given as text. For a text, number or bool it is the value
// itself, otherwise an expression such as ["a", "b"].
func (r *reader) giveText(v *variable, raw, who string) {
	if v.sensitive {
		r.remember(raw)
	}
	if v.kind == cty.DynamicPseudoType || v.kind.IsPrimitiveType() {
		value := cty.StringVal(strings.ToValidUTF8(raw, "\uFFFD"))
		if v.kind == cty.Number && hugeNumeral(raw) {
			r.report(v.at, hugeNumber())
			v.failed = true
			return
		}
		r.give(v, value, v.at, who)
		return
	}
	value, ok := parseText(raw, r.scope)
	if !ok {
		r.report(v.at, Problem{
			Code: "config/bad-var", Summary: "Bad value of variable",
			Detail: fmt.Sprintf("%s is no list or map as it would stand in the file.", who),
		})
		v.failed = true
		return
	}
	r.give(v, value, v.at, who)
}

func parseText(raw string, sc *scope) (cty.Value, bool) {
	if _, _, bad := excess([]byte(raw), "", false); bad || int64(len(raw)) > maxSource {
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
func (r *reader) varFile(file, name string, declared map[string]*variable) {
	body, ok := r.open(file, name, true)
	if !ok {
		return
	}
	attributes, diags := body.JustAttributes()
	r.diagnose(diags, "config/bad-body", nil)
	for _, a := range attributes {
		v, ok := declared[a.Name]
		if !ok {
			r.report(a.NameRange, undeclared(a.Name, a.Name, declared))
			continue
		}
		if value, ok := r.evaluate(a.Expr, &scope{roots: map[string]cty.Value{}}); ok {
			r.give(v, value, a.Expr.Range(), "the value here")
		} else {
			v.failed = true
		}
	}
}
