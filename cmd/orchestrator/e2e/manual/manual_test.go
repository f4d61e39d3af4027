package manual

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// The manual has an entry for everything that a user may look up. The tests read the list of
// these things from the code, so that new ones are not forgotten.

// has fails for the words that a page lacks, with their place in the code.
func has(t *testing.T, topic string, form func(word string) string, words map[string]string) {
	t.Helper()
	page, err := help.ReadTopic(topic)
	require.NoError(t, err)
	for word, from := range words {
		if !regexp.MustCompile("(?m)" + form(regexp.QuoteMeta(word))).MatchString(page) {
			t.Errorf("%s: %s has no entry in help/%s.md", from, word, topic)
		}
	}
}

// The forms of entries: a word in a sentence, and the first word of a row.
func quotedWord(word string) string { return "`" + word + "`" }
func firstInRow(word string) string { return "^\\| [^|]*`" + word + "`" }
func bareWord(word string) string   { return "\\b" + word + "\\b" }

// rowsOf returns the first words of the rows of a page.
func rowsOf(t *testing.T, topic string) (words []string) {
	t.Helper()
	page, err := help.ReadTopic(topic)
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(page, -1) {
		words = append(words, row[1])
	}
	return words
}

// texts returns the string literals of a file.
func texts(f *source.File) map[string]ast.Node {
	found := make(map[string]ast.Node)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && spelled(literal) != "" {
			found[spelled(literal)] = literal
		}
		return true
	})
	return found
}

// environs matches the names of environment variables that a user may set or find.
var environs = regexp.MustCompile(`^((ORC|OTEL|XDG)_[A-Z_]*[A-Z]|NO_COLOR|TERM|NOTIFY_SOCKET|PAGER|EDITOR|BROWSER|TRACEPARENT)=?$`)

func TestEveryVariableHasAnEntry(t *testing.T) {
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "cmd/...", "supervisor/...", "agents/...", "handlers/...") {
		for text, node := range texts(&f) {
			if environs.MatchString(text) {
				found[strings.TrimSuffix(text, "=")] = f.At(node)
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool { // and all variables that are read by name
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			switch name := spelled(call.Args[len(call.Args)-1]); source.Called(n) {
			case "os.Getenv", "os.LookupEnv", "a.env":
				found[name] = f.At(n)
			}
			return true
		})
	}
	delete(found, "") // variables read under a computed name
	require.Greater(t, len(found), 20)
	has(t, "environment", quotedWord, found)
	for _, name := range rowsOf(t, "environment") { // all explained variables are read or set
		if strings.HasPrefix(name, "ORC_") && name != "ORC_VAR_name" {
			require.Contains(t, found, name)
		}
	}
}

func TestEverySignalHasAnEntry(t *testing.T) {
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "cmd/orchestrator", "cmd/orchestrator/cli", "cmd/orchestrator/serve") {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "SIG") {
				found[selector.Sel.Name] = f.At(n)
			}
			return true
		})
	}
	require.Greater(t, len(found), 5)
	has(t, "signals", bareWord, found)
}

func TestEveryFigureHasAnEntry(t *testing.T) {
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "supervisor/telemetry") {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if to, ok := n.Fun.(*ast.Ident); ok && to.Name == "describe" {
					found[spelled(n.Args[0])] = f.At(n)
				}
			case *ast.CompositeLit:
				if name := member(n, "Name"); name != nil && member(n, "Namespace") != nil {
					found[spelled(name)] = f.At(n)
				}
			}
			return true
		})
	}
	require.Greater(t, len(found), 15)
	has(t, "http", firstInRow, found)
}

// member returns the value of a key in a literal.
func member(literal *ast.CompositeLit, name string) ast.Expr {
	for _, item := range literal.Elts {
		if pair, ok := item.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

func TestEveryKindOfEventHasAnEntry(t *testing.T) {
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "wire/...") {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && f.Folder == "wire/events" && len(spec.Values) == 1 {
				found[spelled(spec.Values[0])] = f.At(n)
			}
			return true
		})
	}
	require.Greater(t, len(found), 80)
	has(t, "events", firstInRow, found)
	require.Len(t, rowsOf(t, "events"), len(found), "a row for what there is not, or two for one")
}

func TestEveryOperationHasAnEntry(t *testing.T) {
	protocol, err := help.ReadTopic("protocol")
	require.NoError(t, err)
	routes, err := help.ReadTopic("routes")
	require.NoError(t, err)
	for _, o := range wire.Operations {
		require.Contains(t, protocol, "\n### request:"+o.Name+"\n")
		require.Contains(t, protocol, "\n| `"+o.Name+"` |")
		require.Contains(t, routes, "\n| `POST /api/v1/operations/"+o.Name+"` |")
	}
}

func TestEveryToolHasAnEntry(t *testing.T) {
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "wire/...") {
		for text, node := range texts(&f) {
			if f.Path == "wire/stdio/tool.go" && strings.HasPrefix(text, "bus_") && !strings.Contains(text, " ") {
				found[text] = f.At(node)
			}
		}
	}
	require.Len(t, found, 4)
	has(t, "bus", quotedWord, found)
}

// Every code has an entry with its cause and cure, under the name that users see.
func TestEveryCodeHasAnEntry(t *testing.T) {
	all, err := cli.CodeEntries()
	require.NoError(t, err)
	explains := func(code, from string) {
		t.Helper()
		heads := make(map[string]bool)
		for _, e := range all {
			if e.Code == code {
				heads[e.Head] = true
			}
		}
		if !heads["Meaning"] && !heads["Problem"] {
			t.Errorf("%s: no page has the meaning of %s", from, code)
		}
		if !heads["Fix"] {
			t.Errorf("%s: no page has a fix for %s", from, code)
		}
	}
	for _, c := range wireCodes(t) {
		heard, _ := heardCode(t, c.code)
		explains(heard, "wire/object/error.go")
	}
	for code, from := range codesAnywhere(t) {
		explains(code, from)
	}
	for _, reason := range reasonsOfTheCode(t) {
		explains(reason, "a reason")
	}
	for code, from := range faultCodes(t) {
		explains(code, from)
	}
	codes := configCodes(t)
	for code, from := range codes {
		explains(code, from)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(codes)), rowsOf(t, "config-codes"))
}

// codesAnywhere returns all error codes: constants of type wire.Code, the codes of HTTP and the
// command line, and the numbers of JSON-RPC.
func codesAnywhere(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "wire/...", "handlers/...", "supervisor/...", "cmd/...") {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if number, ok := spec.Values[0].(*ast.UnaryExpr); ok && strings.HasPrefix(spec.Names[0].Name, "rpc") {
				found["-"+number.X.(*ast.BasicLit).Value] = f.At(n)
			}
			switch of := spec.Type.(type) {
			case *ast.Ident:
				ok = of.Name == "Code" && f.Folder == "wire" || of.Name == "Code" && f.Folder == "wire/object"
			case *ast.SelectorExpr:
				ok = of.Sel.Name == "Code"
			default:
				ok = false
			}
			if ok {
				found[spelled(spec.Values[0])] = f.At(n)
			}
			return true
		})
	}
	require.Contains(t, found, "not_running")
	require.Contains(t, found, "method")
	require.Contains(t, found, "-32601")
	return found
}

// faultCodes returns the codes that the source of a delegated task may get.
func faultCodes(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, f := range source.Shipped(t, "wire/...") {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "Fault") && spelled(spec.Values[0]) != "" {
				found[spelled(spec.Values[0])] = f.At(n)
			}
			return true
		})
	}
	require.NotEmpty(t, found)
	return found
}

// madeCodes lists the suffixes of configuration codes that are composed at run time: from the
// block, or from a name in an expression.
var madeCodes = map[string][]string{
	"config/duplicate-": {"variable", "secret", "agent", "host", "member", "repo", "task"},
	"config/unknown-":   {"variable", "local", "secret", "path", "attribute-of-self"},
}

// configCodes returns the codes of configuration mistakes and their places.
func configCodes(t *testing.T) map[string]string {
	t.Helper()
	codes, made := make(map[string]string), 0
	for _, f := range source.Shipped(t, "supervisor/config") {
		for text, node := range texts(&f) {
			if strings.HasPrefix(text, "config/") && !strings.HasSuffix(text, "-") && text != "config/" {
				codes[text] = f.At(node)
			}
			for _, end := range madeCodes[text] {
				codes[text+end] = f.At(node)
			}
			if strings.HasPrefix(text, "config/") && strings.HasSuffix(text, "-") {
				made++
				require.NotEmpty(t, madeCodes[text], f.At(node))
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if to, ok := call.Fun.(*ast.SelectorExpr); ok && (to.Sel.Name == "reject" || to.Sel.Name == "warn") {
				require.NotEmpty(t, spelled(call.Args[0]), f.At(n))
				codes["config/"+spelled(call.Args[0])] = f.At(n)
			}
			return true
		})
	}
	require.Len(t, madeCodes, made)
	require.Greater(t, len(codes), 50)
	return codes
}

// Exactly the exit codes are there.
func TestNoExitCodeIsMadeUp(t *testing.T) {
	page, err := help.ReadTopic("exit-codes")
	require.NoError(t, err)
	known := []string{"126"} // run: the exit code of env and shells for a program that cannot be executed
	for name, value := range constants(t) {
		if strings.HasPrefix(strings.ToLower(name), "exit") {
			known = append(known, value)
		}
	}
	var said []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(page, -1) {
		said = append(said, row[1])
	}
	require.ElementsMatch(t, known, said)
}

// TestTheFileKnowsActors checks that the bus accepts every actor and topic that the
// configuration accepts. Each has its own rules for them.
//
// Rows: E-13, E-54, E-69, E-70, E-71, E-72, E-73, E-75.
func TestTheFileKnowsActors(t *testing.T) {
	problems := func(text string) int {
		file := filepath.Join(t.TempDir(), "orchestrator.hcl")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, found := config.Load(file, config.Options{})
		return found.Errors()
	}
	long := strings.Repeat("q", 300)
	for _, actor := range []string{
		"GO", "W", "HO:h1", "PO:a.b-c_d", "IO:é", "S:db", "S:db:7", "W:7", "Bus", "Governor", "broadcast", "go", "HO:", "S:", "S::", "W:", "PO:a b",
		"PO:a:b", "PO:a\u00a0b", "PO:a\u200bb", "PO:\u202ed", "PO:" + long, "S:" + long, "PO:\a",
	} {
		taken := problems(fmt.Sprintf("agent \"a\" {\n  command = [\"x\"]\n  actor   = %q\n}", actor)) == 0
		allowed := mail.CheckActor(mail.ActorOfRun(actor, "7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100")) == ""
		require.False(t, taken && !allowed, "%q is an actor in the file alone", actor)
		require.True(t, taken || !allowed || len(actor) > 150, "%q is an actor on the bus alone", actor)
	}
	for _, topic := range []string{"a", "a.b", "build.finished", "", ".", "a..b", "a b", "a.*", "a\u200b", "a\ab", "é.ü", long} {
		taken := problems(fmt.Sprintf("bus {\n  topics = [%q]\n}\nagent \"a\" {\n  command = [\"x\"]\n}", topic)) == 0
		allowed := mail.CheckTopic(topic) == ""
		require.False(t, taken && !allowed, "%q is a topic in the file alone", topic)
		require.True(t, taken || !allowed || len(topic) > 150, "%q is a topic on the bus alone", topic)
	}
}

// The dashboard of Grafana has only figures that there are.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../../supervisor/web/assets/grafana.json")
	require.NoError(t, err)
	var dashboard struct{ Panels []struct{ Title string } }
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	page, err := help.ReadTopic("http")
	require.NoError(t, err)
	names := regexp.MustCompile(`orchestrator_(\w+)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Contains(t, page, "`"+strings.TrimSuffix(name[1], "_bucket")+"`")
	}
}
