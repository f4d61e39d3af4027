package laws

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

// A row is a numbered requirement of a protocol, or, if it begins with S, an attack that must fail. A test declares the rows that it shows in a
// comment that ends with a full stop:
//
//	// Rows: B-21, B-26, B-45..B-50.     directly above a test function
//	# Rows: T-07.                        in a script or a story
//
// testdata/rows.md has the table. Every required row must be shown.

// highest is the last number of each kind of row, to detect typing errors.
var highest = map[string]int{"A": 165, "B": 86, "C": 103, "D": 44, "E": 86, "K": 25, "T": 64, "X": 7, "S": 16}

// A showing lists where a row is shown: test names by file.
type showing map[string][]string

// TestEveryRowIsShown checks that each required row is shown by a test.
func TestEveryRowIsShown(t *testing.T) {
	shown := shownRows(t)
	for _, r := range rows {
		if r.left == "" && len(shown[r.id]) == 0 {
			t.Errorf("%s is shown by no test: %s", r.id, r.what)
		}
	}
}

// shownRows returns the rows that tests declare to show.
func shownRows(t *testing.T) map[string]showing {
	t.Helper()
	const top = "../../.."
	found := make(map[string]showing)
	note := func(file, test, list string) {
		for _, id := range rowsIn(t, file, list) {
			if found[id] == nil {
				found[id] = make(showing)
			}
			if !slices.Contains(found[id][file], test) {
				found[id][file] = append(found[id][file], test)
			}
		}
	}
	require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != top && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		short, err := filepath.Rel(top, path)
		require.NoError(t, err)
		file := filepath.ToSlash(short)
		switch {
		case strings.HasSuffix(file, "_test.go"):
			rowsOfTests(t, path, func(test, list string) { note(file, test, list) })
		case strings.HasSuffix(file, ".txtar"), strings.HasPrefix(file, "handlers/testdata/story/"):
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, list := range rowsLines(string(text), "# ") {
				note(file, "", list)
			}
		}
		return nil
	}))
	return found
}

// rowsOfTests calls note for each list of rows above a test of a file. Lists elsewhere are an
// error, because they show no test.
func rowsOfTests(t *testing.T, path string, note func(test, list string)) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	tests := make(map[*ast.CommentGroup]string)
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Doc != nil && testName.MatchString(f.Name.Name) {
			tests[f.Doc] = f.Name.Name
		}
	}
	for _, comment := range file.Comments {
		for _, list := range rowsLines(comment.Text(), "") {
			require.NotEmpty(t, tests[comment], "%s: Rows stand above a test function, nowhere else", fset.Position(comment.Pos()))
			note(tests[comment], list)
		}
	}
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)[A-Z]`)

// rowsLines returns the lists of rows in a text. A list may span several lines, up to its full
// stop.
func rowsLines(text, prefix string) []string {
	var lists []string
	open := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if list, ok := strings.CutPrefix(line, prefix+"Rows: "); ok {
			lists, open = append(lists, list), true
		} else if open {
			lists[len(lists)-1] += " " + strings.TrimPrefix(line, prefix)
		}
		open = open && !strings.HasSuffix(line, ".") && line != ""
	}
	return lists
}

var rowName = regexp.MustCompile(`^([A-Z])-(\d\d+)$`)

// rowsIn reads a list such as "B-21, B-45..B-50."
func rowsIn(t *testing.T, file, list string) []string {
	t.Helper()
	list, ended := strings.CutSuffix(strings.TrimSpace(list), ".")
	require.True(t, ended, "%s: a list of rows ends with a point: %s", file, list)
	var ids []string
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "..")
		if !isRange {
			last = first
		}
		from, to := rowName.FindStringSubmatch(first), rowName.FindStringSubmatch(last)
		require.True(t, from != nil && to != nil && from[1] == to[1], "%s: %q is no row, and no range of rows", file, part)
		low, _ := strconv.Atoi(from[2])
		high, _ := strconv.Atoi(to[2])
		require.True(t, 1 <= low && low <= high && high <= highest[from[1]], "%s: there is no row %s", file, strings.TrimSpace(part))
		for n := low; n <= high; n++ {
			ids = append(ids, fmt.Sprintf("%s-%02d", from[1], n))
		}
	}
	return ids
}

// TestRowTable checks that testdata/rows.md is up to date: a table of all rows and the tests
// that show them.
func TestRowTable(t *testing.T) {
	t.Parallel()
	const file = "testdata/rows.md"
	fresh := rowTable(t)
	if *source.Update {
		require.NoError(t, os.WriteFile(file, []byte(fresh), 0o644))
		return
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	has, should := strings.Split(string(kept), "\n"), strings.Split(fresh, "\n")
	for i := range min(len(has), len(should)) {
		require.Equal(t, should[i], has[i], "%s:%d: go test ./cmd/orchestrator/laws -run TestRowTable -update", file, i+1)
	}
	require.Equal(t, len(should), len(has), file)
}

// rowTable returns the table of rows and the tests that show them.
func rowTable(t *testing.T) string {
	t.Helper()
	shown := shownRows(t)
	known := make(map[string]row)
	for _, r := range rows {
		known[r.id] = r
	}
	ids := make([]string, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	for id := range shown {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { // A-99 is before A-100
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString("| Row | What it asks for, and the tests that show it |\n|---|---|\n")
	for _, id := range ids {
		cell := known[id].what
		if cell != "" {
			cell += ": "
		}
		switch {
		case len(shown[id]) > 0:
			cell += shown[id].String()
		case known[id].left != "":
			cell += known[id].left
		default:
			cell += "shown by nothing"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", id, cell)
	}
	return b.String()
}

// String returns the tests, file by file.
func (s showing) String() string {
	files := make([]string, 0, len(s))
	for file := range s {
		files = append(files, file)
	}
	slices.Sort(files)
	var parts []string
	for _, file := range files {
		tests := s[file]
		slices.Sort(tests)
		parts = append(parts, strings.TrimSpace("`"+file+"` "+strings.Join(tests, ", ")))
	}
	return strings.Join(parts, "; ")
}

func TestListsOfRows(t *testing.T) {
	require.Equal(t, []string{"B-21", "T-07", "B-45", "B-46"}, rowsIn(t, "f", "B-21, T-07, B-45..B-46."))
	require.Equal(t, []string{"B-01, B-02."}, rowsLines("What it does.\n\nRows: B-01,\nB-02.\nMore text.\n", ""))
	require.Equal(t, []string{"B-01.", "B-02."}, rowsLines("# Rows: B-01.\ntext\n# Rows: B-02.\n", "# "))
	require.Equal(t, "`a` TestB, TestC; `b`", showing{"b": {""}, "a": {"TestC", "TestB"}}.String())
}
