package generator

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// comments has the comments of the fields and types of packages, by the path of the package. The
// key of a field is Type.Field.
type comments map[string]map[string]string

// of returns the comment of a field of a struct, on one line.
func (c comments) of(root string, kind reflect.Type, field string) (string, error) {
	_, folder, _ := strings.Cut(kind.PkgPath(), "/") // behind the name of the module
	found, known := c[folder]
	if !known {
		found = make(map[string]string)
		if err := read(filepath.Join(root, folder), found); err != nil {
			return "", fmt.Errorf("reading the comments of %s: %w", folder, err)
		}
		c[folder] = found
	}
	return found[kind.Name()+"."+field], nil
}

// read reads the comments of the structs of a folder.
func read(folder string, found map[string]string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := declared.Type.(*ast.StructType); ok {
				readFields(declared.Name.Name, fields, found)
			}
			return true
		})
	}
	return nil
}

func readFields(kind string, fields *ast.StructType, found map[string]string) {
	for _, field := range fields.Fields.List {
		text := field.Doc.Text()
		if text == "" {
			text = field.Comment.Text()
		}
		names := field.Names
		if kind, embedded := field.Type.(*ast.Ident); embedded && names == nil {
			names = []*ast.Ident{kind}
		}
		for _, name := range names {
			found[kind+"."+name.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
}
