package main

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
)

// What the protocol asks for has a number, a row. Tests say which rows they
// show, in a comment that ends with a point:
//
//	// Rows: B-21, B-26, B-45..B-50.     directly above a test function
//	# Rows: T-07.                        in a script or a story
//
// The protocol page of the manual has the table of it, and no row may be shown
// by nothing.

// row is one thing that the protocol asks for.
type row struct {
	id   string
	what string
	left string // why no test shows it; "" for those that one must show
}

// rows are those that must be shown, and those that need not. The rows of
// further protocols are added here when the orchestrator speaks them.
var rows = []row{
	{id: "B-01", what: "messages are JSON objects, both ways over stdin and stdout"},
	{id: "B-02", what: "one message a line"},
	{id: "B-03", what: "an object with a type is a message"},
	{id: "B-04", what: "what is no JSON is log"},
	{id: "B-05", what: "JSON without a type is log"},
	{id: "B-06", what: "stderr is log, always"},
	{id: "B-07", what: "agents that know no messages work as ever"},
	{id: "B-08", what: "they are told of tasks all the same"},
	{id: "B-09", what: "long and binary lines stop nothing"},
	{id: "B-10", what: "the last line counts, with or without its end"},
	{id: "B-11", what: "the library for agents matches answers to questions"},
	{id: "B-12", what: "the type is one that is known"},
	{id: "B-13", what: "the id is a text, and is needed"},
	{id: "B-14", what: "the timestamp is ISO 8601, and requests need it"},
	{id: "B-15", what: "who speaks need not say so"},
	{id: "B-16", what: "the payload is an object"},
	{id: "B-17", what: "the five published requests are answered"},
	{id: "B-18", what: "the four events are heeded"},
	{id: "B-19", what: "answers are for the orchestrator to say"},
	{id: "B-20", what: "so are notifications"},
	{id: "B-21", what: "every request has exactly one answer"},
	{id: "B-22", what: "the form of a grant"},
	{id: "B-23", what: "the form of a refusal"},
	{id: "B-24", what: "correlationId is the id, letter for letter"},
	{id: "B-25", what: "an answer has an id of its own"},
	{id: "B-26", what: "answers may overtake one another"},
	{id: "B-27", what: "what makes no sense is INVALID_REQUEST"},
	{id: "B-28", what: "what nobody knows is INVALID_MESSAGE_TYPE"},
	{id: "B-29", what: "who waits for too long is told so, once"},
	{id: "B-30", what: "a repeat has no second effect"},
	{id: "B-31", what: "progress is a sign of life"},
	{id: "B-32", what: "long work is told of by events", left: "advice to authors of agents: there is nothing to show"},
	{id: "B-33", what: "agents by role; a wrong one is given back"},
	{id: "B-34", what: "agents by status"},
	{id: "B-35", what: "agents that have all of some capabilities"},
	{id: "B-36", what: "an agent is told with all five keys"},
	{id: "B-37", what: "agents see each other, and themselves"},
	{id: "B-38", what: "tasks by status"},
	{id: "B-39", what: "tasks by required role"},
	{id: "B-40", what: "at most so many tasks"},
	{id: "B-41", what: "how a task is listed"},
	{id: "B-42", what: "an agent's own tasks, and no others"},
	{id: "B-43", what: "a task has a type"},
	{id: "B-44", what: "a task has a name"},
	{id: "B-45", what: "a task may have a description"},
	{id: "B-46", what: "a task's payload arrives as it left"},
	{id: "B-47", what: "a required role is respected"},
	{id: "B-48", what: "required capabilities are respected, all of them"},
	{id: "B-49", what: "what a task depends on is done first"},
	{id: "B-50", what: "priority decides who is first"},
	{id: "B-51", what: "what is submitted is queued, and told whole"},
	{id: "B-52", what: "a task is asked for by its id"},
	{id: "B-53", what: "its result comes back as it was reported"},
	{id: "B-54", what: "what is not there is NOT_FOUND"},
	{id: "B-55", what: "another agent's task is UNAUTHORIZED"},
	{id: "B-56", what: "a queued task goes to an idle agent that fits"},
	{id: "B-57", what: "tasks are started, completed and failed"},
	{id: "B-58", what: "a question reaches a person, escaped"},
	{id: "B-59", what: "a question may have options"},
	{id: "B-60", what: "a question may say how long it waits"},
	{id: "B-61", what: "the answer, and when it was given"},
	{id: "B-62", what: "people have means to answer"},
	{id: "B-63", what: "events are never answered"},
	{id: "B-64", what: "progress is shown"},
	{id: "B-65", what: "log entries have a level and a context"},
	{id: "B-66", what: "errors are recorded, and may fail a task"},
	{id: "B-67", what: "questions without an answer are shown"},
	{id: "B-68", what: "events about another agent's task change nothing"},
	{id: "B-69", what: "the form of a notification"},
	{id: "B-70", what: "an agent is told of its task"},
	{id: "B-71", what: "an agent is told that its task is off"},
	{id: "B-72", what: "an agent is told that its time ends"},
	{id: "B-73", what: "lines to an agent are never torn"},
	{id: "B-74", what: "there are six error codes and no more"},
	{id: "B-75", what: "a fault of ours is INTERNAL_ERROR, and the next is served"},
	{id: "B-76", what: "every message is held against its schema"},
	{id: "B-77", what: "agents ask for their own tasks alone"},
	{id: "B-78", what: "nobody speaks in another's name"},
	{id: "B-79", what: "100 messages a second, and no more"},
	{id: "B-80", what: "what people are shown is escaped"},
	{id: "B-81", what: "every request is in the audit trail"},
	{id: "B-82", what: "compression", left: "announced for later by the protocol"},
	{id: "B-83", what: "a binary form", left: "announced for later by the protocol"},
	{id: "B-84", what: "batches: until then a list is log", left: "announced for later by the protocol"},
	{id: "B-85", what: "agents that publish to each other", left: "announced for later by the protocol"},
	{id: "B-86", what: "remote agents", left: "announced for later by the protocol"},
	{id: "T-01", what: "a chunk is no line"},
	{id: "T-02", what: "an echo starts no loop"},
	{id: "T-03", what: "JSON that is no message"},
	{id: "T-04", what: "an agent that never reads"},
	{id: "T-05", what: "an agent on a terminal"},
	{id: "T-06", what: "ids with a prefix"},
	{id: "T-07", what: "two timeouts, one answer"},
	{id: "T-08", what: "filters are strict, and keys are always all there"},
	{id: "T-22", what: "whose a task is"},
	{id: "T-24", what: "a flood costs whoever makes it"},
	{id: "T-48", what: "documents of others pass digit for digit"},
	{id: "T-49", what: "the stop of three kinds of agents"},
	{id: "T-57", what: "an agent dies with its task"},
	{id: "T-58", what: "two who write at once"},
	// Where these messages meet other protocols: what there is to show of it
	// here is shown, the rest comes with them.
	{id: "K-01", what: "one set of states for all tasks", left: elsewhere},
	{id: "K-02", what: "one order of priorities", left: elsewhere},
	{id: "K-04", what: "what becomes of a task whose upstream came to nothing", left: elsewhere},
	{id: "K-05", what: "roles and capabilities", left: elsewhere},
	{id: "K-06", what: "what the six codes say, and what a reason beside them", left: elsewhere},
	{id: "K-12", what: "progress is a fraction here", left: elsewhere},
	{id: "K-20", what: "a result is an object or a text", left: elsewhere},
	{id: "K-21", what: "to cancel is to tell", left: elsewhere},
	{id: "K-22", what: "one list of questions for people", left: elsewhere},
	{id: "T-21", what: "a diamond of dependencies", left: elsewhere},
	{id: "T-23", what: "a replay is not a second request", left: elsewhere},
	{id: "T-31", what: "progress of 1 is not the end", left: elsewhere},
	{id: "T-44", what: "an upstream that fails", left: elsewhere},
	{id: "T-46", what: "there are no circles", left: elsewhere},
	{id: "T-59", what: "a cancel and an end at the same time", left: elsewhere},
	{id: "T-61", what: "1 is the most urgent", left: elsewhere},
}

const elsewhere = "it comes with other protocols"

// highest is the last number of each kind of row, so that a slip of the pen is
// noticed.
var highest = map[string]int{"A": 165, "B": 86, "C": 103, "D": 44, "E": 86, "K": 23, "T": 64, "X": 7}

// showing is where a row is shown: test names by file.
type showing map[string][]string

// TestEveryRowIsShown: what the protocol asks for is shown by a test.
func TestEveryRowIsShown(t *testing.T) {
	shown := shownRows(t)
	for _, r := range rows {
		if r.left == "" && len(shown[r.id]) == 0 {
			t.Errorf("%s is shown by no test: %s", r.id, r.what)
		}
	}
}

// shownRows finds what every test says that it shows.
func shownRows(t *testing.T) map[string]showing {
	t.Helper()
	const top = "../.."
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

// rowsOfTests calls note for what stands above the tests of a file. Above
// anything else it would be a promise that nobody keeps.
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

// rowsLines finds the lists of rows in a text. One may go on over several
// lines, until its point.
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

// rowTable is the table of which test shows which row.
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

// String lists tests, file by file.
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
