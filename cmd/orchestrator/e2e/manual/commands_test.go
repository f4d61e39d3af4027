package manual

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/app"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
)

func testApp() *cli.App {
	return cli.New(cli.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, SocketPath: func(dir string) string { return dir },
		Root: app.Root, OpenRecord: serve.OpenRecord,
	})
}

// eachVerb calls do for every visible command.
func eachVerb(verb *cobra.Command, do func(*cobra.Command)) {
	for _, sub := range verb.Commands() {
		if !sub.Hidden {
			do(sub)
			eachVerb(sub, do)
		}
	}
}

// Every command has a summary, an example, and a text for each flag.
func TestEveryVerbIsExplained(t *testing.T) {
	root := app.Root(testApp())
	eachVerb(root, func(verb *cobra.Command) {
		name := verb.CommandPath()
		require.NotEmpty(t, verb.Short, "%s: Short", name)
		require.NotRegexp(t, `\.$`, verb.Short, "%s: Short is no sentence", name)
		require.Contains(t, verb.Example, name, "%s: Example", name)
		verb.Flags().VisitAll(func(flag *pflag.Flag) {
			require.NotEmpty(t, flag.Usage, "%s --%s", name, flag.Name)
		})
	})
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) { require.NotEmpty(t, flag.Usage, flag.Name) })
}

func TestOverviewHasEveryVerb(t *testing.T) {
	root := app.Root(testApp())
	shown := cli.Overview(root, false)
	for _, name := range cli.VerbNames(root) {
		require.Regexp(t, `(?m)^.{10}`+name+` `, shown)
	}
}

func TestEveryTopicHasAPage(t *testing.T) {
	pages, err := filepath.Glob("../../help/*.md")
	require.NoError(t, err)
	var names []string
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	require.ElementsMatch(t, help.TopicNames(), names)
}

// The page on exit codes has a row for every code that the program defines.
func TestEveryExitCodeIsExplained(t *testing.T) {
	page, err := help.Topics.ReadFile("exit-codes.md")
	require.NoError(t, err)
	exits, codes := 0, 0
	for name, value := range constants(t) {
		switch {
		case strings.HasPrefix(strings.ToLower(name), "exit"):
			exits++
			require.Contains(t, string(page), "\n| "+value+" | ", name)
		case strings.HasPrefix(strings.ToLower(name), "code"):
			codes++
			require.Contains(t, string(page), "\n| `"+strings.Trim(value, `"`)+"` | ", name)
		}
	}
	require.Greater(t, exits, 10)
	require.Greater(t, codes, 4)
}

// constants returns the constants of the package cli with their literal values.
func constants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range sources(t) {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 {
				if value, ok := spec.Values[0].(*ast.BasicLit); ok {
					found[spec.Names[0].Name] = value.Value
				}
			}
			return true
		})
	}
	return found
}

func sources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../cli/*.go")
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// All commands in the manual exist.
func TestCommandsOfTheManualExist(t *testing.T) {
	pages, err := filepath.Glob("../../help/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range typedCommands(string(text)) {
			if strings.Contains(line, " COMMAND") {
				continue // a syntax description
			}
			line, _, _ = strings.Cut(line, " | ") // the rest is another program
			line, _, _ = strings.Cut(line, " -- ")
			line = strings.TrimSuffix(line, " [flags]")
			verb, rest, err := app.Root(testApp()).Find(strings.Fields(line))
			require.NoError(t, err, "%s: orchestrator %s", page, line)
			require.True(t, verb.HasParent() && !(verb.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")), "%s: orchestrator %s", page, line)
			require.NoError(t, verb.ParseFlags(rest), "%s: orchestrator %s", page, line)
		}
	}
}

// All commands that the pages of the web view show exist, with their flags.
func TestCommandsOfThePagesExist(t *testing.T) {
	scripts, err := filepath.Glob("../../../../supervisor/web/assets/*.js")
	require.NoError(t, err)
	shown, value := regexp.MustCompile("[\"'`](orchestrator [a-z][^\"`'<]*)"), regexp.MustCompile(`\$\{[^}]*\}?`)
	found := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		for _, match := range shown.FindAllStringSubmatch(string(text), -1) {
			line := strings.ReplaceAll(match[1], "agent ${verb}", "agent stop") // or start, or restart
			words := strings.Fields(value.ReplaceAllString(line, "1"))[1:]
			verb, rest, err := app.Root(testApp()).Find(words)
			require.NoError(t, err, "%s: %s", script, match[1])
			require.True(t, verb.HasParent() && !(verb.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")), "%s: %s", script, match[1])
			if last := words[len(words)-1]; strings.HasPrefix(last, "-") && strings.HasSuffix(strings.TrimSpace(match[1]), last) {
				rest = append(rest, "1") // the value is put together elsewhere
			}
			require.NoError(t, verb.ParseFlags(rest), "%s: %s", script, match[1])
			found++
		}
	}
	require.Greater(t, found, 25)
}

// The samples on the configuration page together are a valid file, and so is the one of the JSON
// form.
func TestTheManualsConfigurationIsValid(t *testing.T) {
	page, err := help.Topics.ReadFile("config.md")
	require.NoError(t, err)
	var samples []string
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 1 {
			samples = append(samples, part)
		}
	}
	require.Len(t, samples, 18)
	form, ok := strings.CutPrefix(samples[17], "json\n")
	require.True(t, ok)
	agent := strings.TrimSuffix(strings.TrimSpace(samples[0]), "}") + strings.Join(samples[1:5], "") + samples[8] + "}\n" +
		"agent \"far\" {\n  command = [\"true\"]\n" + samples[6] + samples[7] + "}\n" + // blocks that the other one excludes
		strings.Replace(samples[5], `"coder"`, `"confined"`, 1)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))                          // for the workspace
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "shop/.git"), 0o700))                  // and the page of the confined agent
	require.NoError(t, os.WriteFile(filepath.Join(dir, "recipe.json"), []byte("{}"), 0o600)) // for the output
	file := filepath.Join(dir, "orchestrator.hcl")
	require.NoError(t, os.WriteFile(file, []byte(agent+strings.Join(samples[9:17], "")), 0o600))
	require.NoError(t, os.WriteFile(file+".json", []byte(form), 0o600))

	for _, file := range []string{file, file + ".json"} {
		_, problems := config.Load(file, config.Options{})
		var shown strings.Builder
		require.NoError(t, problems.Render(&shown, false))
		require.Empty(t, problems, shown.String())
	}
}

// The name of each block of the file leads to help.
func TestBlocksLeadSomewhere(t *testing.T) {
	page, err := help.ReadTopic("config")
	require.NoError(t, err)
	names, block := map[string]bool{}, regexp.MustCompile(`(?m)^\s*([a-z_]+)( "[^"]*")? \{`)
	for i, part := range strings.Split(page, "```") {
		if i%2 == 1 {
			for _, match := range block.FindAllStringSubmatch(part, -1) {
				names[match[1]] = true
			}
		}
	}
	require.Greater(t, len(names), 25)
	for name := range names {
		require.Zero(t, testApp().Run([]string{"help", name}), name)
	}
}

// typedCommands returns the commands in a page: sample lines and code spans.
func typedCommands(page string) []string {
	inline := regexp.MustCompile("`orchestrator\\s+([a-z][^`|]*)`")
	sample := regexp.MustCompile(`(?m)^orchestrator ([a-z].*)$`)
	var found []string
	for i, part := range strings.Split(page, "```") {
		pattern := inline
		if i%2 == 1 {
			pattern = sample
		}
		for _, match := range pattern.FindAllStringSubmatch(part, -1) {
			found = append(found, match[1])
		}
	}
	return found
}

// No line of help is wider than 80 columns, except a usage.
func TestHelpFitsTheScreen(t *testing.T) {
	var out bytes.Buffer
	shown := func(args ...string) string {
		out.Reset()
		a := testApp()
		a.Stdout = &out
		require.Zero(t, a.Run(args), args)
		return out.String()
	}
	check := func(name, text string) {
		sample := false
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if line != "" && line[0] != ' ' {
				sample = line == "Usage"
			}
			if !sample {
				assert.LessOrEqual(t, term.Width(line), 80, "%s: %s", name, line)
			}
		}
	}
	check("orchestrator", shown())
	check("help", shown("help"))
	eachVerb(app.Root(testApp()), func(verb *cobra.Command) {
		path := strings.Fields(verb.CommandPath())[1:]
		check(verb.CommandPath(), shown(append(path, "--help")...))
	})
}

var codeSpan = regexp.MustCompile("`[^`\n]+`")

// Commands and other code in the text and the tables of pages stay on one line if they fit, on terminals of 80 and
// 120 columns.
func TestCodeStaysOnOneLine(t *testing.T) {
	const indent = 6 // the widest indentation
	for _, chapter := range help.Chapters {
		page, err := help.ReadTopic(chapter.Topic)
		require.NoError(t, err)
		for lines := range term.Blocks(help.WithSections(chapter.Topic, page)) {
			text := strings.Join(lines, " ")
			if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "#") {
				continue
			}
			requireCodeSpans(t, chapter.Topic, text)
			for _, width := range []int{80, 100} { // wider terminals have lines of 100
				readable := term.Readable(strings.Join(lines, "\n"), false, width)
				for _, span := range codeSpan.FindAllString(text, -1) {
					if word := strings.ReplaceAll(strings.Trim(span, "`"), `\|`, "|"); term.Width(word) <= width-indent {
						assert.Contains(t, readable, word, "help %s, %d columns", chapter.Topic, width)
					}
				}
			}
		}
	}
}

// requireCodeSpans requires the commands in a text of a page to be code.
func requireCodeSpans(t *testing.T, topic, text string) {
	t.Helper()
	root := app.Root(testApp())
	for _, match := range namedCommand.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
		verb, _, err := root.Find(strings.Fields(match[1]))
		assert.True(t, err != nil || verb == root, "help %s: %q is not in a code span", topic, match[0])
	}
}

// namedCommand matches a command in prose, or words after the name of the program.
var namedCommand = regexp.MustCompile(`\borchestrator((?: [a-z][a-z-]*)+)`)

// helpTexts returns the texts in the help of a command: the description, and the texts of its flags.
func helpTexts(verb *cobra.Command) string {
	texts := []string{verb.Long}
	verb.Flags().VisitAll(func(flag *pflag.Flag) { texts = append(texts, flag.Usage) })
	return strings.Join(texts, "\n")
}

// All commands in the help of commands exist.
func TestCommandsOfHelpExist(t *testing.T) {
	found := 0
	eachVerb(app.Root(testApp()), func(verb *cobra.Command) {
		for _, match := range namedCommand.FindAllStringSubmatch(strings.Join(strings.Fields(helpTexts(verb)), " "), -1) {
			found += requireVerb(t, verb.CommandPath()+" --help", match[1])
		}
		for line := range strings.Lines(verb.Example) {
			if typed, ok := strings.CutPrefix(strings.TrimSpace(line), "orchestrator "); ok {
				named := namedCommand.FindStringSubmatch("orchestrator " + typed)
				require.NotNil(t, named, "%s --help: %s", verb.CommandPath(), line)
				require.Equal(t, 1, requireVerb(t, verb.CommandPath()+" --help", named[1]), line)
			}
		}
	})
	require.Greater(t, found, 25)
}

// All commands in the texts of the program exist, for example in its hints.
func TestCommandsOfHintsExist(t *testing.T) {
	found := 0
	for _, f := range source.Shipped(t, "cmd/...", "supervisor/...", "handlers/...") {
		for text, node := range texts(&f) {
			for _, match := range namedCommand.FindAllStringSubmatch(text, -1) {
				found += requireVerb(t, f.At(node), match[1])
			}
		}
	}
	require.Greater(t, found, 100)
}

// requireVerb requires the words after the name of the program to be a command. It returns 0 for prose, and
// otherwise 1.
func requireVerb(t *testing.T, at, words string) int {
	t.Helper()
	root := app.Root(testApp())
	first := strings.Fields(words)[0]
	if !slices.Contains(cli.VerbNames(root), first) {
		return 0
	}
	verb, rest, err := root.Find(strings.Fields(words))
	assert.NoError(t, err, at)
	assert.False(t, verb.HasSubCommands() && len(rest) > 0 && verb.Name() != "inbox", "%s: orchestrator%s", at, words)
	return 1
}

// Commands in the help of commands stay on one line, on terminals of 80 and 120 columns.
func TestHelpKeepsCommandsOnOneLine(t *testing.T) {
	root := app.Root(testApp())
	eachVerb(root, func(verb *cobra.Command) {
		for _, width := range []int{80, 120} {
			var out bytes.Buffer
			a := testApp()
			a.Stdout = wideScreen{&out, width}
			require.Zero(t, a.Run(append(strings.Fields(verb.CommandPath())[1:], "--help")))
			lines := strings.Split(out.String(), "\n")
			for i, line := range lines[:len(lines)-1] {
				start := strings.LastIndex(line, "orchestrator")
				next := strings.Fields(lines[i+1])
				if start < 0 || len(next) == 0 {
					continue
				}
				words := strings.Fields(line[start:])[1:]
				before, rest, err := root.Find(words)
				after, _, _ := root.Find(append(words, strings.Trim(next[0], `.,:;)"`)))
				assert.True(t, err != nil || len(rest) > 0 || after == before, "%s --help, %d columns: %s / %s", verb.CommandPath(), width, line, lines[i+1])
			}
		}
	})
}

// A wideScreen is a terminal of a width.
type wideScreen struct {
	*bytes.Buffer
	width int
}

func (s wideScreen) Columns() int { return s.width }

// The page of commands is generated from the commands.
func TestCommandsPage(t *testing.T) {
	source.RequirePage(t, "../../help/commands.md", commandsPage(), "TestCommandsPage")
}

func commandsPage() string {
	root := app.Root(testApp())
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Made by TestCommandsPage -update -->\n")
	b.WriteString("Every command, with its flags. `orchestrator COMMAND --help` explains one command, and `orchestrator` alone lists all\ncommands on one screen.\n")
	b.WriteString("\n## Flags of every command\n\n" + flagTable(root.PersistentFlags()))
	eachVerb(root, func(verb *cobra.Command) {
		path := strings.TrimPrefix(verb.CommandPath(), "orchestrator ")
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", path, verb.Short, cli.UseLine(verb))
		if own, _ := cli.FlagsOf(verb); own.HasFlags() {
			b.WriteString("\n" + flagTable(own))
		}
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(unindented(verb.Example), "\n"))
	})
	return b.String()
}

// flagTable returns a table of flags. It omits defaults that are empty.
func flagTable(set *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| Flag | Default | Description |\n|---|---|---|\n")
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if value != "" && flag.NoOptDefVal == "" {
			name += " " + value
		}
		standard := flag.DefValue
		if standard == "false" || standard == "[]" || standard == "0" {
			standard = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", coded(name), coded(standard), strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}

// coded returns a word as code in a table cell.
func coded(word string) string {
	if word == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(word, "|", `\|`) + "`"
}

// unindented returns text without the indentation by two spaces that examples have.
func unindented(text string) string {
	return regexp.MustCompile("(?m)^  ").ReplaceAllString(text, "")
}

// The page has an entry for every command and every flag. A new way to generate it must not lose
// any.
func TestEveryFlagHasAnEntry(t *testing.T) {
	page, err := help.ReadTopic("commands")
	require.NoError(t, err)
	root := app.Root(testApp())
	parts := make(map[string]string)
	for part := range strings.SplitSeq(page, "\n## ") {
		title, body, _ := strings.Cut(part, "\n")
		parts[title] = body
	}
	verbs, flags := 0, 0
	eachVerb(root, func(verb *cobra.Command) {
		verbs++
		part, ok := parts[strings.TrimPrefix(verb.CommandPath(), "orchestrator ")]
		require.True(t, ok, verb.CommandPath())
		verb.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Name != "help" {
				flags++
				require.Regexp(t, "(?m)^\\| `(-., )?--"+flag.Name+"[ `]", part, verb.CommandPath())
			}
		})
	})
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		require.Regexp(t, "(?m)^\\| `(-., )?--"+flag.Name+"[ `]", parts["Flags of every command"])
	})
	require.Greater(t, verbs, 50)
	require.Greater(t, flags, 100)
}

// Each borrowed word is suggested as an existing command, and is not itself a command.
func TestBorrowedWordsLeadSomewhere(t *testing.T) {
	root := app.Root(cli.New(cli.Env{}))
	for word, m := range cli.ForeignCommands {
		for _, line := range []string{m.Alone, m.Named, m.Also} {
			if line == "" {
				continue
			}
			verb, _, err := root.Find(strings.Fields(line))
			require.NoError(t, err, "%s: %s", word, line)
			require.NotEqual(t, root, verb, "%s: %s", word, line)
			require.False(t, verb.HasSubCommands() && len(strings.Fields(line)) > 1, "%s: %s", word, line)
		}
		verb, rest, err := root.Find(strings.Fields(word))
		require.True(t, err != nil || len(rest) > 0, "%q is the verb %s", word, verb.CommandPath())
	}
}

// liveOnly lists the commands that show without the record: the present state, or the program
// itself.
var liveOnly = []string{
	"orchestrator agent ls", "orchestrator agent servers", "orchestrator agent show", "orchestrator ps", "orchestrator hosts", "orchestrator status",
	"orchestrator bus presence", "orchestrator bus status", "orchestrator bus topics", "orchestrator inbox watch",
	"orchestrator key ls", "orchestrator token ls", "orchestrator task match", "orchestrator schema", "orchestrator help", "orchestrator notify dead",
}

// TestCommandsThatShowReadTheRecord checks that each command that lists or shows entries reads the
// record, or is in liveOnly.
func TestCommandsThatShowReadTheRecord(t *testing.T) {
	unmarked := []string{}
	var walk func(verb *cobra.Command)
	walk = func(verb *cobra.Command) {
		for _, v := range verb.Commands() {
			walk(v)
		}
		what, _, _ := strings.Cut(verb.Short, " ")
		if shows := what == "List" || what == "Show" || what == "Explain"; shows && !verb.HasSubCommands() && !cli.ReadsRecord(verb) {
			unmarked = append(unmarked, verb.CommandPath())
		}
	}
	walk(app.Root(cli.New(cli.Env{})))
	require.ElementsMatch(t, liveOnly, unmarked, "mark a command that can read the record with cli.OnRecord, where its family is put together; others belong in liveOnly")
}

// Each alias is a word for a flag of a command, is not itself a flag there, and is on the page of tasks.
func TestAliasesOfFlags(t *testing.T) {
	page, err := os.ReadFile("../../help/tasks.md")
	require.NoError(t, err)
	root := app.Root(cli.New(cli.Env{}))
	for _, alias := range cli.FlagAliases {
		verbs := alias.Commands
		if len(verbs) == 0 {
			verbs = []string{"task add"}
		}
		for _, name := range verbs {
			verb, _, err := root.Find(strings.Fields(name))
			require.NoError(t, err)
			flag := verb.Flags().Lookup(alias.Word)
			require.NotNil(t, flag, "%s --%s", name, alias.Word)
			require.Equal(t, alias.Flag, flag.Name, "%s --%s", name, alias.Word)
		}
		require.Contains(t, string(page), "`--"+alias.Word+"`")
		require.Contains(t, string(page), "`--"+alias.Flag+"`")
	}
}

// Each borrowed flag is suggested as a flag that some verb has.
func TestBorrowedFlagsLeadSomewhere(t *testing.T) {
	root := app.Root(cli.New(cli.Env{}))
	for word, flag := range cli.ForeignFlags {
		found := false
		for _, name := range append(cli.VerbNames(root), "bus poll", "task add") {
			verb, _, err := root.Find(strings.Fields(name))
			require.NoError(t, err)
			found = found || verb.Flag(flag) != nil
		}
		require.True(t, found, "%s: --%s", word, flag)
	}
}
