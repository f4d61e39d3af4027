// Package source reads the Go files and the pages of the module, for tests that judge them.
package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Module is the prefix of the module's packages.
const Module = "orchestrator"

// top is the module's top folder.
var top = sync.OnceValue(func() string {
	dir, _ := os.Getwd() // the folder of the tests
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
})

// Path returns the path of a file or folder of the module, given from its top.
func Path(name string) string { return filepath.Join(top(), name) }

// IsTest reports whether the package of a folder is for tests alone.
func IsTest(folder string) bool {
	return Matches([]string{"cmd/orchestrator/laws/...", "cmd/orchestrator/e2e/..."}, folder)
}

// A File is one Go file of the module.
type File struct {
	Path   string // relative to the top folder
	Folder string
	Test   bool // it is part of no program
	fset   *token.FileSet
	Syntax *ast.File
}

// Files returns the Go files of the module, which are read once.
func Files(t *testing.T) []File {
	files, err := read()
	require.NoError(t, err)
	require.Greater(t, len(files), 50, "the walk found nothing to judge")
	return slices.Clone(files)
}

var read = sync.OnceValues(func() (files []File, err error) {
	err = filepath.WalkDir(top(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != top() && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		short, err := filepath.Rel(top(), path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(short))
		files = append(files, File{
			Path: short, Folder: folder, Test: strings.HasSuffix(path, "_test.go") || IsTest(folder),
			fset: fset, Syntax: syntax,
		})
		return nil
	})
	return files, err
})

// At returns the place of a node.
func (f *File) At(node ast.Node) string {
	return f.Path + ":" + strconv.Itoa(f.fset.Position(node.Pos()).Line)
}

// Imports returns the imports of a file by path.
func (f *File) Imports() map[string]ast.Node {
	found := make(map[string]ast.Node)
	for _, spec := range f.Syntax.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[path] = spec
		}
	}
	return found
}

// Matches reports whether a folder matches a pattern. A pattern ending in /... is a folder and all below it.
func Matches(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		base, deep := strings.CutSuffix(pattern, "/...")
		return folder == base || deep && strings.HasPrefix(folder, base+"/")
	})
}

// Code returns the number of lines of a node that have more than comments.
func (f *File) Code(node ast.Node) int {
	lines := make(map[int]bool)
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.BasicLit: // a raw string has many lines
			for line := f.fset.Position(n.Pos()).Line; line <= f.fset.Position(n.End()).Line; line++ {
				lines[line] = true
			}
		default:
			lines[f.fset.Position(n.Pos()).Line] = true
			lines[f.fset.Position(n.End()-1).Line] = true
		}
		return true
	})
	return len(lines)
}

// Called returns the function that a node calls, as package.Name.
func Called(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return ""
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if base, ok := selector.X.(*ast.Ident); ok {
		return base.Name + "." + selector.Sel.Name
	}
	return ""
}

// Shipped returns the files of the program.
func Shipped(t *testing.T, folders ...string) []File {
	t.Helper()
	files := slices.DeleteFunc(Files(t), func(f File) bool { return f.Test || !Matches(folders, f.Folder) })
	require.NotEmpty(t, files)
	return files
}
