package laws

import (
	"go/ast"
	gotypes "go/types"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLawDecisionsAssignNothing checks that decisions assign no field of a State, which changes by facts alone. Facts, copies
// and values of one turn are not parts of a State.
func TestLawDecisionsAssignNothing(t *testing.T) {
	const decisions, state = "handlers", "orchestrator/handlers/state"
	fset, files, _, info := listed(t)[decisions].check(t)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			for _, e := range assigned(n) {
				if owner := keeper(info, e, state); owner != "" {
					assert.Failf(t, "a decision changes the State", "%s: %s, of a state.%s", fset.Position(e.Pos()), gotypes.ExprString(e), owner)
				}
			}
			return true
		})
	}
}

// assigned returns the expressions that a node assigns.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "clear" || id.Name == "delete") {
			return n.Args[:1]
		}
	}
	return nil
}

// keeper returns the type of a package that has a field which an expression is below, unless the type is a fact.
func keeper(info *gotypes.Info, e ast.Expr, pkg string) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			if s := info.Selections[x]; s != nil && s.Kind() == gotypes.FieldVal {
				kind := gotypes.Unalias(s.Recv())
				p, shared := kind.(*gotypes.Pointer)
				if shared {
					kind = gotypes.Unalias(p.Elem())
				} else if id, ok := x.X.(*ast.Ident); ok && info.Uses[id] != nil {
					return "" // its own copy
				}
				if named, ok := kind.(*gotypes.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == pkg && !isFact(named) {
					return named.Obj().Name()
				}
			}
			e = x.X
		default:
			return ""
		}
	}
}

// isFact reports whether a type can be applied to a State.
func isFact(named *gotypes.Named) bool {
	apply, _, _ := gotypes.LookupFieldOrMethod(gotypes.NewPointer(named), true, named.Obj().Pkg(), "apply")
	return apply != nil
}
