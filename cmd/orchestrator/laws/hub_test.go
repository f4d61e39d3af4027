package laws

import (
	"fmt"
	"go/ast"
	"testing"

	"orchestrator/cmd/orchestrator/laws/source"
)

// TestLawHub checks that a hub is a list of parts: Hub has parts and options, and their state is in the parts. No part
// grows into a second Hub.
func TestLawHub(t *testing.T) {
	const mostFields = 12
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		if f.Folder != "supervisor/hub" || f.Test {
			return
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := declared.Type.(*ast.StructType)
			switch {
			case !ok:
			case declared.Name.Name != "Hub":
				if n := fields.Fields.NumFields(); n > mostFields {
					guilty(declared, fmt.Sprintf("%s has %d fields: make parts of it", declared.Name.Name, n))
				}
			default:
				for _, field := range fields.Fields.List {
					switch field.Type.(type) {
					case *ast.StarExpr, *ast.Ident:
					default:
						guilty(field, "a Hub has only parts and options: state belongs to a part")
					}
				}
			}
			return true
		})
	})
}
