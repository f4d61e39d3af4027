// Package laws has the laws of this project. They check its sources and run no part of it.
package laws

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

// Each test fails with the name of its law and the place.

// mayImport lists the packages of the module that a package may import. A pattern ending in /...
// is a package and all below it that have no row of their own.
var mayImport = map[string][]string{
	"wire/object":                    {},
	"wire/line":                      {},
	"wire/session":                   {"wire/object"},
	"wire/delegation":                {"wire/object"},
	"wire/events":                    {},
	"wire/identity":                  {},
	"wire/hub":                       {"wire/object", "wire/events"},
	"wire/mail":                      {"wire/object"},
	"wire/schema":                    {},
	"wire/trace":                     {"wire/object"},
	"wire/dialect":                   {"wire/object", "wire/session", "wire/delegation"},
	"wire/stdio":                     {"wire", "wire/dialect", "wire/schema", "wire/object", "wire/session", "wire/delegation"},
	"wire":                           {"wire/schema", "wire/dialect", "wire/object", "wire/line", "wire/events", "wire/mail", "wire/session", "wire/delegation", "wire/hub", "wire/activity"},
	"wire/schema/generator":          {"wire/schema", "wire/object"},
	"wire/schema/documents":          {"wire", "wire/activity", "wire/mail", "wire/schema", "wire/object", "wire/session", "wire/delegation", "wire/hub"},
	"wire/control":                   {"wire", "wire/object", "wire/activity"},
	"wire/hostlink":                  {"wire"},
	"supervisor/child":               {},
	"supervisor/home":                {"supervisor/child"},
	"supervisor/budget":              {"wire/..."},
	"supervisor/notify":              {"wire/...", "supervisor/config", "supervisor/config/storeurl"},
	"supervisor/config":              {"wire/...", "supervisor/adapter", "supervisor/budget", "supervisor/hosts", "supervisor/settings", "supervisor/config/storeurl", "supervisor/config/envfile", "supervisor/config/problem"},
	"supervisor/config/...":          {},
	"handlers/...":                   {"wire/...", "handlers/..."},
	"supervisor/eventlog":            {"wire/..."},
	"supervisor/eventlog/...":        {"wire", "wire/events", "supervisor/eventlog", "supervisor/eventlog/logtest/series"},
	"supervisor/hosts":               {"wire/...", "supervisor/child", "supervisor/hosts/link"},
	"supervisor/hosts/link":          {"wire/hostlink"},
	"supervisor/runner":              {"wire/...", "supervisor/child", "supervisor/hosts/link", "supervisor/hosts"}, // hosts is the other side in its tests
	"supervisor/leadership":          {"wire", "wire/events", "supervisor/eventlog", "supervisor/eventlog/logtest"},
	"supervisor/telemetry":           {"wire/..."}, // cmd connects it to the other packages
	"supervisor/api/signin":          {"wire/identity"},
	"supervisor/api":                 {"supervisor/api/signin", "wire/..."},
	"supervisor/web":                 {"wire", "wire/control", "supervisor/api", "supervisor/api/signin"},
	"supervisor/web/vendorize":       {},
	"agents/...":                     {"wire/...", "agents/..."},
	"supervisor/adapter/...":         {"wire/...", "supervisor/adapter/...", "supervisor/child"}, // one file starts the child
	"wire/activity":                  {"wire/object"},
	"wire/tools":                     {"wire", "wire/mail", "wire/object", "wire/session"},
	"supervisor/stdin":               {"wire/..."},
	"supervisor/output":              {"wire/...", "handlers/state", "supervisor/child"}, // the state spells facts as text
	"supervisor/dispatch":            {"wire/...", "handlers", "handlers/access", "handlers/history", "handlers/state", "supervisor/stdin"},
	"supervisor/artifacts":           {"wire/...", "supervisor/dispatch", "supervisor/home"},
	"supervisor/settings":            {"wire/...", "supervisor/adapter", "supervisor/child", "supervisor/hosts", "supervisor/output", "supervisor/stdin"},
	"supervisor":                     {"wire/...", "handlers", "handlers/history", "handlers/state", "supervisor/settings", "supervisor/artifacts", "supervisor/child", "supervisor/home", "supervisor/adapter/...", "supervisor/dispatch", "supervisor/hosts", "supervisor/stdin", "supervisor/output"},
	"supervisor/hub":                 {"wire/...", "handlers", "supervisor", "supervisor/api", "supervisor/budget", "supervisor/child", "supervisor/config", "supervisor/dispatch", "supervisor/eventlog", "supervisor/eventlog/jetstream", "supervisor/eventlog/postgres", "supervisor/home", "supervisor/hosts", "supervisor/hosts/link", "supervisor/hub/team", "supervisor/leadership", "supervisor/notify", "supervisor/output", "supervisor/settings", "supervisor/telemetry", "supervisor/web", "supervisor/workspace"},
	"supervisor/hub/team":            {"wire/...", "handlers", "supervisor/settings", "supervisor/child", "supervisor/config", "supervisor/dispatch", "supervisor/workspace"},
	"supervisor/simulate":            {"wire/...", "handlers"},
	"supervisor/workspace":           {"wire/...", "supervisor/child"},
	"cmd/orchestrator/live":          {"cmd/orchestrator/term"},
	"cmd/orchestrator/term":          {"wire/..."},
	"cmd/orchestrator/help":          {},
	"cmd/orchestrator/build":         {},
	"cmd/orchestrator/first":         {"cmd/orchestrator/build", "cmd/orchestrator/first/form"}, // it must be initialized early: TestFirstIsEarly
	"cmd/orchestrator/first/form":    {},
	"cmd/orchestrator/site":          {"cmd/orchestrator/help", "cmd/orchestrator/term"},
	"cmd/orchestrator/client":        {"wire/...", "supervisor/api"},
	"cmd/orchestrator/cli":           {"wire/...", "supervisor/api", "supervisor/config", "cmd/orchestrator/client", "cmd/orchestrator/term", "cmd/orchestrator/help", "cmd/orchestrator/site", "cmd/orchestrator/build", "cmd/orchestrator/first/form"},
	"cmd/orchestrator/task":          verbsMayImport(),
	"cmd/orchestrator/session":       verbsMayImport(),
	"cmd/orchestrator/bus":           verbsMayImport("agents/bus"), // for the incident file
	"cmd/orchestrator/inbox":         verbsMayImport(),
	"cmd/orchestrator/demo":          verbsMayImport("agents", "cmd/orchestrator/serve"),
	"fixtures/lighthouse":            {"cmd/orchestrator/demo"},
	"cmd/orchestrator/project":       verbsMayImport("agents/python", "agents/typescript", "wire/...", "supervisor/config"),
	"cmd/orchestrator/join":          verbsMayImport("agents", "agents/mcp", "wire/..."),
	"cmd/orchestrator/access":        verbsMayImport("cmd/orchestrator/bus"),
	"cmd/orchestrator/agent":         verbsMayImport("cmd/orchestrator/task"),
	"cmd/orchestrator/why":           verbsMayImport("cmd/orchestrator/task", "cmd/orchestrator/session"),
	"cmd/orchestrator/ui":            verbsMayImport("supervisor/api/signin"),
	"cmd/orchestrator/watch":         verbsMayImport("cmd/orchestrator/inbox", "cmd/orchestrator/task", "cmd/orchestrator/live"),
	"cmd/orchestrator/serve":         verbsMayImport("wire/...", "handlers", "supervisor", "supervisor/settings", "supervisor/artifacts", "supervisor/child", "supervisor/home", "supervisor/output", "supervisor/config", "supervisor/eventlog", "supervisor/leadership", "supervisor/hosts/link", "supervisor/hub", "supervisor/hub/team", "supervisor/runner", "supervisor/api", "supervisor/notify", "supervisor/workspace", "cmd/orchestrator/console", "cmd/orchestrator/first/form", "cmd/orchestrator/serve/ownlog", "cmd/orchestrator/serve/systemd", "cmd/orchestrator/why", "agents", "agents/mcp"), // agents/mcp serves /mcp
	"cmd/orchestrator/notify":        verbsMayImport("supervisor/notify", "cmd/orchestrator/serve"),
	"cmd/orchestrator/serve/ownlog":  {"supervisor/output"},
	"cmd/orchestrator/serve/systemd": {},
	"cmd/orchestrator/console":       verbsMayImport("supervisor", "supervisor/output", "cmd/orchestrator/live"),
	"cmd/orchestrator/store":         verbsMayImport("supervisor/hub", "supervisor/config", "supervisor/dispatch", "supervisor/eventlog", "cmd/orchestrator/serve"),
	"cmd/orchestrator/check":         verbsMayImport("supervisor/simulate", "supervisor/hub", "supervisor/hub/team", "supervisor", "supervisor/adapter", "supervisor/child", "supervisor/output", "supervisor/config", "cmd/orchestrator/serve", "cmd/orchestrator/project"),
	"cmd/orchestrator":               {"cmd/orchestrator/app"},
	"cmd/orchestrator/app":           {"supervisor/home", "supervisor/child", "cmd/..."},
	"fixtures/...":                   {"wire/...", "agents/...", "fixtures/..."},
	"fixtures/crashes":               {"wire/...", "agents", "supervisor/eventlog", "fixtures/programs"},                      // it reads the record as it is on disk
	"fixtures/failover":              {"wire/...", "agents", "supervisor/eventlog", "fixtures/programs", "fixtures/pgserver"}, // the same
}

// verbsMayImport returns the packages that a package of commands may import, and more.
func verbsMayImport(more ...string) []string {
	return append([]string{"wire/...", "cmd/orchestrator/build", "cmd/orchestrator/cli", "cmd/orchestrator/client", "cmd/orchestrator/term"}, more...)
}

// onlyIn lists where packages outside the module may be imported.
var onlyIn = map[string][]string{
	"github.com/bmatcuk/doublestar":          {"handlers/scope"},
	"github.com/hashicorp/hcl":               {"supervisor/config"},
	"github.com/zclconf/go-cty":              {"supervisor/config"},
	"github.com/go-json-experiment/json":     {"wire/..."},
	"github.com/ncruces/go-sqlite3":          {"supervisor/eventlog"},
	"github.com/nats-io":                     {"supervisor/eventlog/jetstream", "fixtures/natsserver"},
	"github.com/jackc":                       {"supervisor/eventlog/postgres"},
	"modernc.org/sqlite":                     {}, // the second driver, only for tests
	"github.com/modelcontextprotocol/go-sdk": {"agents/mcp"},
	"github.com/chromedp":                    {"fixtures/browser"},
	"github.com/evanw/esbuild":               {"supervisor/web/vendorize", "agents/..."},
	"github.com/creack/pty":                  {"supervisor/child", "fixtures/screen"},
	"github.com/charmbracelet/x/vt":          {"fixtures/screen"},
	"charm.land":                             {"cmd/orchestrator/watch"},
	"github.com/spf13/cobra":                 {"cmd/..."},
	"github.com/google/jsonschema-go":        {"supervisor/config", "supervisor/hub/team", "agents/..."}, // the other one in go.mod takes 7 ms of each start
	"github.com/prometheus":                  {"supervisor/telemetry"},
	"go.opentelemetry.io":                    {"supervisor/telemetry"},
	"google.golang.org/protobuf":             {"supervisor/telemetry"},
	"net/http":                               {"supervisor/api", "supervisor/hub", "supervisor/web", "supervisor/telemetry", "supervisor/notify", "supervisor/eventlog/jetstream", "agents/...", "cmd/...", "fixtures/real", "fixtures/crashes", "fixtures/failover", "supervisor/web/vendorize"}, // telemetry, notify and jetstream are only clients, of a collector, of webhooks and of monitors; real serves a model
	"database/sql":                           {"supervisor/eventlog"},
	"os/exec":                                {"supervisor/child", "agents/...", "fixtures/bench", "fixtures/crashes", "fixtures/failover", "fixtures/programs", "fixtures/real", "fixtures/screen", "fixtures/picture", "fixtures/faults", "fixtures/privileged", "fixtures/pgserver", "fixtures/browser", "supervisor/web/vendorize"}, // bench measures it; the others run commands
}

// pure packages get time and randomness as values and have no side effects.
var (
	pure      = []string{"wire/...", "handlers/..."}
	impure    = []string{"os", "net", "net/http", "log", "context", "sync", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "syscall", "io/fs"}
	clockCall = regexp.MustCompile(`^time\.(Now|Sleep|After|AfterFunc|NewTimer|NewTicker|Tick|Since|Until)$`)
)

// judge calls see for every file of the module. See reports violations by calling guilty.
func judge(t *testing.T, see func(f *source.File, guilty func(node ast.Node, crime string))) {
	t.Helper()
	for _, f := range source.Files(t) {
		see(&f, func(node ast.Node, crime string) { t.Errorf("%s: %s", f.At(node), crime) })
	}
}

// childImportsParent lists the packages that import the one above them: engines and clients of its declarations, and
// the hub, which runs the supervisor with all parts beside it. None is added.
var childImportsParent = []string{
	"agents/mcp", "supervisor/adapter/acp", "supervisor/adapter/claude", "supervisor/adapter/codex", "supervisor/eventlog/jetstream",
	"supervisor/eventlog/logtest", "supervisor/eventlog/postgres", "supervisor/hub", "wire/control", "wire/hostlink", "wire/schema/documents", "wire/schema/generator", "wire/stdio", "wire/tools",
}

// TestLawParents checks that no package imports its parent, but those listed.
func TestLawParents(t *testing.T) {
	found := make(map[string]bool)
	for _, f := range source.Files(t) {
		parent := path.Dir(f.Folder)
		if _, imports := f.Imports()[source.Module+"/"+parent]; imports && !f.Test {
			found[f.Folder] = true
		}
	}
	assert.ElementsMatch(t, childImportsParent, slices.Collect(maps.Keys(found)), "draw the wall the other way, or remove the row of one that does not any more")
}

func TestLawImports(t *testing.T) {
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		if f.Test {
			return
		}
		may, found := mayImport[f.Folder]
		for pattern, list := range mayImport {
			if !found && source.Matches([]string{pattern}, f.Folder) {
				may, found = list, true
			}
		}
		if !found {
			guilty(f.Syntax.Name, "package "+f.Folder+" has no place in the house: add it to mayImport, with a reason")
		}
		for path, node := range f.Imports() {
			if ours, ok := strings.CutPrefix(path, source.Module+"/"); ok && !source.Matches(may, ours) {
				guilty(node, f.Folder+" must not know "+ours)
			}
			for other, places := range onlyIn {
				if (path == other || strings.HasPrefix(path, other+"/")) && !source.Matches(places, f.Folder) {
					guilty(node, path+" belongs in "+strings.Join(places, ", ")+" alone")
				}
			}
		}
	})
}

func TestLawPurity(t *testing.T) {
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		if f.Test || !source.Matches(pure, f.Folder) {
			return
		}
		for path, node := range f.Imports() {
			if slices.Contains(impure, path) {
				guilty(node, f.Folder+" is pure and must not know "+path)
			}
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if call := source.Called(node); clockCall.MatchString(call) {
				guilty(node, f.Folder+" is pure and must not call "+call)
			}
			switch node.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				guilty(node, f.Folder+" is pure and has no goroutines: the race detector is not run on it")
			}
			return true
		})
	})
}

func TestLawPackageComments(t *testing.T) {
	said, folders := make(map[string]int), make(map[string]*source.File)
	for _, f := range source.Files(t) {
		if f.Test {
			continue
		}
		folders[f.Folder] = &f
		if f.Syntax.Doc != nil {
			said[f.Folder]++
		}
	}
	for folder := range folders {
		require.Equal(t, 1, said[folder], "%s wants one package comment", folder)
	}
}

func TestLawNoInit(t *testing.T) {
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		for _, declaration := range f.Syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "init" {
				guilty(function, "no init: main is the only place that knows everything")
			}
		}
	})
}

// sleepers are the test functions that may sleep, because they poll.
var sleepers = []string{"waitFor", "waitForThat", "WaitFor", "waitForOutput"}

func TestLawNoSleepInTests(t *testing.T) {
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		if !f.Test {
			return
		}
		for _, declaration := range f.Syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || slices.Contains(sleepers, function.Name.Name) {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				switch source.Called(node) {
				case "time.Sleep":
					guilty(node, "no sleeping in tests")
				case "t.Skip", "t.Skipf", "t.SkipNow":
					guilty(node, "no skipping: what cannot be tested fails")
				case "require.Eventually", "assert.Eventually":
					guilty(node, "Eventually leaks and races: wait for what announces itself, or poll with waitFor")
				}
				return true
			})
		}
	})
}

// Sizes guide, and walls decide: a file is one idea, a function fits on a screen. Comments and blank
// lines are free, so that no law pays for folding code or for leaving a reason out.
const (
	maxFileCode     = 500
	maxFunctionCode = 60
	maxPackageCode  = 8000
	maxExported     = 200
	manyMethods     = 80 // a warning
	maxMethods      = 120
)

// largePackages have more code than maxPackageCode. Such a number may only fall: the package is split
// where its arrows already run one way.
var largePackages = map[string]int{}

// TestLawSizes checks the sizes of files and functions, and prints the size of the whole, which has no limit.
func TestLawSizes(t *testing.T) {
	files, lines := 0, 0
	for _, f := range source.Files(t) {
		if !f.Test {
			files, lines = files+1, lines+f.Code(f.Syntax)
		}
	}
	t.Logf("%d files, %d lines of code without tests", files, lines)
	judge(t, func(f *source.File, guilty func(ast.Node, string)) {
		if f.Test {
			return
		}
		if n := f.Code(f.Syntax); n > maxFileCode {
			guilty(f.Syntax.Name, fmt.Sprintf("%d lines of code are more than one idea: split the file", n))
		}
		for _, declaration := range f.Syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && f.Code(function) > maxFunctionCode {
				guilty(function, fmt.Sprintf("%s has %d lines of code", function.Name.Name, f.Code(function)))
			}
		}
	})
}

// TestLawSurface checks the sizes of packages. Functions that take a type first count as its methods,
// because turning one into the other changes nothing.
func TestLawSurface(t *testing.T) {
	sizes, exported, methods := make(map[string]int), make(map[string]int), make(map[string]int)
	types := make(map[string]bool)
	for _, f := range source.Files(t) {
		if f.Test {
			continue
		}
		sizes[f.Folder] += f.Code(f.Syntax)
		for _, declaration := range f.Syntax.Decls {
			for _, name := range declared(declaration) {
				if name.IsExported() {
					exported[f.Folder]++
				}
			}
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if owner := owner(d); owner != "" {
					methods[f.Folder+"."+owner]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						types[f.Folder+"."+spec.Name.Name] = true
					}
				}
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		most := max(maxPackageCode, largePackages[folder])
		assert.LessOrEqual(t, sizes[folder], most, "%s: draw the wall that is missing", folder)
		assert.LessOrEqual(t, exported[folder], maxExported, "%s exports too much: move names into the package of their topic", folder)
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		n := methods[name]
		if !types[name] { // a type of another package, or a basic one
			continue
		}
		if n > manyMethods {
			t.Logf("warning: %s has %d methods and functions that take it first", name, n)
		}
		assert.LessOrEqual(t, n, maxMethods, "%s has too many methods", name)
	}
}

// maxFunctionFields is the number of function-typed fields of all structs. It only falls. The others are callbacks of the
// SDK for its users, columns of tables, ends of what was begun, single functions that vary, and the fields of structs that
// several objects fill in, where one interface would join what nil keeps apart.
const maxFunctionFields = 175

// TestLawFunctionFields counts function-typed fields: an interface is better than the methods of one object.
func TestLawFunctionFields(t *testing.T) {
	count := 0
	for _, f := range source.Files(t) {
		if f.Test || strings.HasPrefix(f.Folder, "fixtures") {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if _, ok := field.Type.(*ast.FuncType); ok {
						count += max(1, len(field.Names))
					}
				}
			}
			return true
		})
	}
	require.LessOrEqual(t, count, maxFunctionFields)
	require.Greater(t, count, maxFunctionFields-5, "lower the limit")
}

// owner returns the type that a function belongs to: of its receiver, else of its first parameter.
func owner(function *ast.FuncDecl) string {
	if function.Recv != nil {
		return receiver(function)
	}
	if parameters := function.Type.Params.List; len(parameters) > 0 {
		kind := parameters[0].Type
		if star, ok := kind.(*ast.StarExpr); ok {
			kind = star.X
		}
		if id, ok := kind.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

// declared returns the names that a declaration adds to its package. A method adds none.
func declared(declaration ast.Decl) (names []*ast.Ident) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method belongs to.
func receiver(function *ast.FuncDecl) string {
	name := ""
	ast.Inspect(function.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
}

// TestLawTop checks that the top folder has only the listed entries.
func TestLawTop(t *testing.T) {
	allowed := []string{"cmd", "supervisor", "wire", "handlers", "agents", "fixtures", "go.mod", "go.sum", "orchestrator.hcl", "README.md", "LICENSE"}
	entries, err := filepath.Glob("../../../*")
	require.NoError(t, err)
	for _, entry := range entries {
		if name := filepath.Base(entry); !strings.HasPrefix(name, ".") {
			require.Contains(t, allowed, name)
		}
	}
}
