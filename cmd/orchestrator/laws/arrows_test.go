package laws

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

const (
	// maxBack is the largest share of the arrows of a package that run back, in percent.
	maxBack = 25
	// fewArrows is the number of arrows below which the share says little.
	fewArrows = 20
)

// TestLawArrows checks that the files of a package form floors. An arrow runs from a file to each file that declares a name
// that the first one uses. The floors are the order with the fewest arrows that run back, as far as a search finds it.
func TestLawArrows(t *testing.T) {
	for folder, p := range listed(t) {
		names, arrows := p.arrows(t)
		total := len(arrows)
		if total < fewArrows {
			continue
		}
		floors, back := sortFloors(names, arrows)
		share := 100 * back / total
		if !assert.LessOrEqual(t, share, maxBack, "%s: %d of %d arrows between its files run back", folder, back, total) {
			t.Logf("floors of %s: %s", folder, strings.Join(floors, ", "))
		}
	}
}

// A listing is the output of the go command about the packages of the product.
type listing struct {
	path, dir string
	files     []string
	exports   map[string]string // the files of export data, by package
}

// listed returns the packages of the product with their folders.
func listed(t *testing.T) map[string]*listing {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{.Export}}\t{{range .GoFiles}}{{.}} {{end}}", "./...")
	cmd.Dir = source.Path("")
	text, err := cmd.Output()
	require.NoError(t, err)
	all, exports := make(map[string]*listing), make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		part := strings.Split(lines.Text(), "\t")
		exports[part[0]] = part[2]
		if folder, is := strings.CutPrefix(part[0], source.Module+"/"); is && !source.IsTest(folder) {
			all[folder] = &listing{path: part[0], dir: part[1], files: strings.Fields(part[3]), exports: exports}
		}
	}
	return all
}

// check parses the files of a package and checks its types.
func (l *listing) check(t *testing.T) (fset *token.FileSet, files []*ast.File, pkg *gotypes.Package, info *gotypes.Info) {
	t.Helper()
	fset, info = token.NewFileSet(), &gotypes.Info{
		Uses: make(map[*ast.Ident]gotypes.Object), Selections: make(map[*ast.SelectorExpr]*gotypes.Selection),
	}
	for _, name := range l.files {
		file, err := parser.ParseFile(fset, filepath.Join(l.dir, name), nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	config := gotypes.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(l.exports[path]) })}
	pkg, err := config.Check(l.path, fset, files, info)
	require.NoError(t, err)
	return fset, files, pkg, info
}

// An arrow runs from a file to another one.
type arrow struct{ from, to string }

// arrows returns the files of a package, and the arrows between them.
func (l *listing) arrows(t *testing.T) ([]string, map[arrow]bool) {
	t.Helper()
	fset, files, pkg, info := l.check(t)
	names, arrows := make(map[string]bool), make(map[arrow]bool)
	file := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	for _, f := range files {
		from := file(f.Pos())
		ast.Inspect(f, func(n ast.Node) bool {
			id, is := n.(*ast.Ident)
			if !is || info.Uses[id] == nil || !isTop(info.Uses[id], pkg) {
				return true
			}
			if to := file(info.Uses[id].Pos()); to != from {
				arrows[arrow{from, to}], names[from], names[to] = true, true, true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names)), arrows
}

// isTop reports whether a package declares an object at its top, as a field or as a method.
func isTop(o gotypes.Object, pkg *gotypes.Package) bool {
	if o.Pkg() != pkg {
		return false
	}
	v, is := o.(*gotypes.Var)
	return !is || v.IsField() || v.Parent() == pkg.Scope()
}

// sortFloors sorts files so that few arrows run back, and returns how many do. It moves one file at a time to its best floor, and
// begins anew from several orders.
func sortFloors(names []string, arrows map[arrow]bool) (best []string, back int) {
	random := rand.New(rand.NewPCG(1, 2))
	best, back = settle(names, arrows)
	for range 40 {
		next := slices.Clone(best)
		for range len(next)/3 + 2 {
			i, j := random.IntN(len(next)), random.IntN(len(next))
			next[i], next[j] = next[j], next[i]
		}
		if order, n := settle(next, arrows); n < back {
			best, back = order, n
		}
	}
	return best, back
}

// settle moves files to better floors until no single move helps.
func settle(names []string, arrows map[arrow]bool) (order []string, back int) {
	order = slices.Clone(names)
	for moved := true; moved; {
		moved = false
		for i := range order {
			file := order[i]
			rest := slices.Delete(slices.Clone(order), i, i+1)
			if at := floorOf(file, i, rest, arrows); at != i {
				order, moved = slices.Insert(rest, at, file), true
			}
		}
	}
	for i := range order {
		for _, above := range order[:i] {
			if arrows[arrow{order[i], above}] {
				back++
			}
		}
	}
	return order, back
}

// floorOf returns where among the rest a file has the fewest arrows that run back. It keeps its floor unless another is better.
func floorOf(file string, now int, rest []string, arrows map[arrow]bool) int {
	cost := make([]int, len(rest)+1) // less than at the top
	for i, other := range rest {
		cost[i+1] = cost[i]
		if arrows[arrow{file, other}] {
			cost[i+1]++
		}
		if arrows[arrow{other, file}] {
			cost[i+1]--
		}
	}
	if at := slices.Index(cost, slices.Min(cost)); cost[at] < cost[now] {
		return at
	}
	return now
}
