package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

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
					Detail: fmt.Sprintf("The name %q is taken at %s.", a.Name, place(first.NameRange)),
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
	var names []string
	for name := range l.exprs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return l.exprs[a].Range.Start.Byte - l.exprs[b].Range.Start.Byte
	})
	return names
}

// work evaluates one local after those that it mentions. The value of an invalid local is
// unknown.
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
	if len(needs) > len(visible) { // something is missing: suggest from all
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
		Code: "config/local-cycle", Summary: "Locals need one another",
		Detail: fmt.Sprintf("None of these can be worked out first: %s.", strings.Join(chain, " -> ")),
	})
}
