package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A short file can ask for a lot: thirty locals, each twice the one before, take eight gigabytes. Expressions are
// weighed before they are evaluated, and the results of functions while they are.

const (
	// maxText is the longest text that an expression makes, in bytes.
	maxText = 1 << 20
	// maxWork bounds one expression: the size of its steps, of the values that it mentions, counted once for each round of
	// a loop, and of the results of its functions.
	maxWork = 4 << 20
	// maxLoad bounds all expressions of a file.
	maxLoad = 64 << 20
	// elementSize is the size of a value beside its text, and the weight of one step of an evaluation.
	elementSize = 32
	// maxRange is the most elements that range returns.
	maxRange = 1024
)

// A weighing is an upper bound of the work of an expression, found without evaluating the whole.
type weighing struct {
	context   *hcl.EvalContext // with bounded forms of the functions that are called
	functions map[string]function.Function
	spent     int // bytes and elements of the results of functions
	work      int
	over      *hcl.Range // the place where work passed maxWork
	sensitive bool       // a sensitive value takes part
	calls     []*hclsyntax.FunctionCallExpr
	lent      map[hclsyntax.Expression]bool // arguments, which functions use without a copy
	loops     []loop
	scopes    int // how many of loops surround the present node
}

// A loop is a for expression while its nodes are being weighed.
type loop struct {
	of      *hclsyntax.ForExpr
	names   map[string]struct{}
	rounds  int // 0: not known yet
	largest int // size of the largest element
}

// weigh returns the weighing of an expression.
func weigh(expr hcl.Expression, sc *scope) *weighing {
	w := &weighing{
		context:   &hcl.EvalContext{Variables: sc.roots, Functions: map[string]function.Function{}},
		functions: sc.functions,
	}
	if native, ok := expr.(hclsyntax.Expression); ok {
		_ = hclsyntax.Walk(native, w)
		return w
	}
	literal, _ := expr.Value(nil) // of JSON: its texts are templates
	_ = cty.Walk(literal, func(_ cty.Path, v cty.Value) (bool, error) {
		if v.Type().IsObjectType() {
			for name := range v.Type().AttributeTypes() {
				w.template(name, expr.Range())
			}
		}
		if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			w.template(v.AsString(), expr.Range())
		}
		return true, nil
	})
	return w
}

func (w *weighing) template(text string, at hcl.Range) {
	if !strings.Contains(text, "${") && !strings.Contains(text, "%{") {
		return
	}
	if parsed, diags := hclsyntax.ParseTemplate([]byte(text), at.Filename, at.Start); !diags.HasErrors() {
		_ = hclsyntax.Walk(parsed, w)
	}
}

// Enter implements hclsyntax.Walker.
func (w *weighing) Enter(node hclsyntax.Node) hcl.Diagnostics {
	switch e := node.(type) {
	case *hclsyntax.ForExpr:
		w.loops = append(w.loops, loop{of: e})
	case hclsyntax.ChildScope:
		l := &w.loops[w.scopes]
		l.names = e.LocalNames
		if l.rounds == 0 && w.over == nil {
			l.rounds, l.largest = w.rounds(l.of.CollExpr)
		}
		w.scopes++
	case *hclsyntax.FunctionCallExpr:
		w.call(e)
		w.add(elementSize, e.Range())
	case *hclsyntax.LiteralValueExpr:
		total, _ := measure(e.Val)
		w.add(total, e.Range())
	case *hclsyntax.ScopeTraversalExpr:
		n := w.mention(e)
		if w.lent[e] {
			n = elementSize
		}
		w.add(n, e.Range())
	case hclsyntax.Expression:
		w.add(elementSize, e.Range())
	}
	return nil
}

// call notes a call, and makes its function known to the evaluation.
func (w *weighing) call(e *hclsyntax.FunctionCallExpr) {
	w.calls = append(w.calls, e)
	w.sensitive = w.sensitive || e.Name == "file" || e.Name == "env"
	for _, arg := range e.Args {
		if w.lent == nil {
			w.lent = map[hclsyntax.Expression]bool{}
		}
		w.lent[arg] = true
	}
	if f, ok := w.functions[e.Name]; ok {
		w.context.Functions[e.Name] = bounded(e.Name, f, &w.spent)
		return
	}
	for name, f := range w.functions { // the library suggests one of them
		w.context.Functions[name] = bounded(name, f, &w.spent)
	}
}

// Exit implements hclsyntax.Walker.
func (w *weighing) Exit(node hclsyntax.Node) hcl.Diagnostics {
	switch node.(type) {
	case *hclsyntax.ForExpr:
		w.loops = w.loops[:len(w.loops)-1]
	case hclsyntax.ChildScope:
		w.scopes--
	}
	return nil
}

// add counts n, once in each round of the loops around it.
func (w *weighing) add(n int, at hcl.Range) {
	for i := range w.loops[:w.scopes] {
		n = min(n, maxWork+1) * max(w.loops[i].rounds, 1)
	}
	if w.work += min(n, maxWork+1); w.work > maxWork && w.over == nil {
		w.over = &at
	}
}

// mention returns the size of the value of a reference.
func (w *weighing) mention(e *hclsyntax.ScopeTraversalExpr) int {
	for _, l := range slices.Backward(w.loops[:w.scopes]) {
		if _, ok := l.names[e.Traversal.RootName()]; ok {
			return max(l.largest, elementSize)
		}
	}
	v, diags := e.Value(w.context)
	if diags.HasErrors() {
		return elementSize
	}
	w.sensitive = w.sensitive || v.ContainsMarked()
	total, _ := measure(v)
	return total
}

// rounds returns how often a loop over a collection goes round, and the size of its largest element. The collection
// has been weighed.
func (w *weighing) rounds(collection hclsyntax.Expression) (rounds, largest int) {
	for _, t := range collection.Variables() {
		for i := range w.loops[:w.scopes] {
			if _, ok := w.loops[i].names[t.RootName()]; ok {
				largest = max(largest, w.loops[i].largest)
				rounds += max(w.loops[i].largest/elementSize, 1)
			}
		}
	}
	if rounds > 0 { // it depends on the loops around it
		if _, called := collection.(*hclsyntax.FunctionCallExpr); called {
			rounds += maxRange
		}
		return rounds, largest
	}
	v, diags := collection.Value(w.context)
	if diags.HasErrors() {
		return 1, 1
	}
	w.sensitive = w.sensitive || v.ContainsMarked()
	bare, _ := v.UnmarkDeep()
	if !bare.IsKnown() || bare.IsNull() || !bare.CanIterateElements() {
		return 1, 1
	}
	for it := bare.ElementIterator(); it.Next(); rounds++ {
		key, element := it.Element()
		of, _ := measure(element)
		name, _ := measure(key)
		largest = max(largest, of, name)
	}
	return max(rounds, 1), largest
}

// measure returns the size of a value, and the length of its longest text. Each element counts with its size in memory.
func measure(v cty.Value) (total, longest int) {
	bare, _ := v.UnmarkDeep()
	measureInto(bare, &total, &longest)
	return total, longest
}

func measureInto(v cty.Value, total, longest *int) {
	*total += elementSize
	switch {
	case *total > maxLoad || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.String:
		n := len(v.AsString())
		*total, *longest = *total+n, max(*longest, n)
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && *total <= maxLoad; {
			key, element := it.Element()
			if key.Type() == cty.String {
				measureInto(key, total, longest)
			}
			measureInto(element, total, longest)
		}
	}
}

// bounded returns a function with results of bounded size, together with the results of all functions that share spent.
func bounded(name string, f function.Function, spent *int) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type:     f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if growth(name, args) > maxText {
				return cty.NilVal, errResult
			}
			v, err := f.Call(args)
			if err != nil {
				return v, err
			}
			total, longest := measure(v)
			if *spent += total; *spent > maxWork || longest > maxText {
				return cty.NilVal, errResult
			}
			return v, nil
		},
	})
}

var errResult = fmt.Errorf("its result is too large: a text may have %d MiB, and all values of one expression %d MiB", maxText/mib, maxWork/mib)

// growth returns an upper bound of the result of a function that can return much more than it is given.
func growth(name string, args []cty.Value) (n int) {
	texts := make([]string, 0, len(args))
	sum, largest := 0, 0
	for _, arg := range args {
		bare, _ := arg.UnmarkDeep()
		if !bare.IsWhollyKnown() || bare.IsNull() {
			return 0
		}
		if bare.Type() == cty.String {
			texts = append(texts, bare.AsString())
		}
		of, _ := measure(bare)
		sum, largest = sum+of, max(largest, of)
	}
	switch {
	case name == "replace" && len(texts) == 3:
		return strings.Count(texts[0], texts[1])*len(texts[2]) + len(texts[0])
	case name == "join" && len(texts) > 0:
		return sum + sum*len(texts[0])
	case name == "format" && len(texts) > 0:
		return len(texts[0]) + strings.Count(texts[0], "%")*(largest+widest(texts[0]))
	}
	return 0
}

// widest returns the largest number in a text.
func widest(text string) (most int) {
	n := 0
	for i := range len(text) {
		if c := text[i]; c >= '0' && c <= '9' {
			n = min(10*n+int(c-'0'), maxWork)
			most = max(most, n)
			continue
		}
		n = 0
	}
	return most
}

// tooLarge returns the diagnostic of an expression that exceeds a bound.
func tooLarge(at hcl.Range) hcl.Diagnostics {
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Expression too large", Subject: &at,
		Detail: fmt.Sprintf("A text may have %d MiB, and all values of one expression %d MiB.", maxText/mib, maxWork/mib),
	}}
}

// harmless are the summaries of diagnostics with details that never quote a value.
var harmless = []string{
	"Call to unknown function", "Condition is null", "Expression too large",
	"Inconsistent conditional result types", "Invalid operand", "Invalid template interpolation value",
	"Iteration over non-iterable value", "Iteration over null value", "Not enough function arguments", "Null condition",
	"Too many function arguments",
}

// withhold removes parts of diagnostics that may quote a sensitive value. The message of a function that got one may
// hold any part of it, so only the names of the function and of the parameter are left.
func (w *weighing) withhold(diags hcl.Diagnostics) hcl.Diagnostics {
	if !w.sensitive {
		return diags
	}
	for i, d := range diags {
		if slices.Contains(harmless, d.Summary) {
			continue
		}
		call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
		if ok && w.plain(d) {
			continue
		}
		hidden := *d
		hidden.Detail = "A sensitive value takes part, so no more is shown."
		if ok {
			hidden.Detail = fmt.Sprintf("%s cannot use its arguments. One of them is sensitive, so no more is shown.", call.CalledFunctionName())
			if named := argumentPrefix().FindStringSubmatch(d.Detail); named != nil {
				hidden.Detail = fmt.Sprintf("%s cannot use its argument %q. A sensitive value takes part, so no more is shown.", call.CalledFunctionName(), named[1])
			}
		}
		diags[i] = &hidden
	}
	return diags
}

// plain reports whether no argument of the function that failed is sensitive.
func (w *weighing) plain(d *hcl.Diagnostic) bool {
	for _, call := range w.calls {
		if hcl.Expression(call) != d.Expression && !slices.ContainsFunc(call.Args, func(a hclsyntax.Expression) bool { return hcl.Expression(a) == d.Expression }) {
			continue
		}
		return !slices.ContainsFunc(call.Args, func(a hclsyntax.Expression) bool {
			v, diags := a.Value(d.EvalContext)
			return diags.HasErrors() || v.ContainsMarked()
		})
	}
	return false
}
