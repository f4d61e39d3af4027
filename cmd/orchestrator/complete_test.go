package main

import (
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
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/supervisor/config"
)

func testApp() *cli.App {
	return cli.New(cli.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, SocketPath: func(dir string) string { return dir },
		Root: rootCommand, OpenRecord: serve.OpenRecord,
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
	root := rootCommand(testApp())
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
	root := rootCommand(testApp())
	shown := cli.Overview(root, false)
	for _, name := range cli.VerbNames(root) {
		require.Regexp(t, `(?m)^.{10}`+name+` `, shown)
	}
}

func TestEveryTopicHasAPage(t *testing.T) {
	pages, err := filepath.Glob("help/*.md")
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
	files, err := filepath.Glob("cli/*.go")
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// All commands in the manual exist.
func TestCommandsOfTheManualExist(t *testing.T) {
	pages, err := filepath.Glob("help/*.md")
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
			verb, rest, err := rootCommand(testApp()).Find(strings.Fields(line))
			require.NoError(t, err, "%s: orchestrator %s", page, line)
			require.True(t, verb.HasParent() && !(verb.HasSubCommands() && len(rest) > 0), "%s: orchestrator %s", page, line)
			require.NoError(t, verb.ParseFlags(rest), "%s: orchestrator %s", page, line)
		}
	}
}

// The samples on the configuration page together are a valid file.
func TestTheManualsConfigurationIsValid(t *testing.T) {
	page, err := help.Topics.ReadFile("config.md")
	require.NoError(t, err)
	var samples []string
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 1 {
			samples = append(samples, part)
		}
	}
	require.Len(t, samples, 8)
	agent := strings.TrimSuffix(strings.TrimSpace(samples[0]), "}") + strings.Join(samples[1:4], "") + "}\n"
	file := filepath.Join(t.TempDir(), "orchestrator.hcl")
	require.NoError(t, os.WriteFile(file, []byte(agent+strings.Join(samples[4:], "")), 0o600))

	_, problems := config.Load(file, config.Options{})
	var shown strings.Builder
	require.NoError(t, problems.Render(&shown, false))
	require.Empty(t, problems, shown.String())
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
