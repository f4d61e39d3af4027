package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/help"
)

const (
	readme       = "../../README.md"
	contributing = "../../.github/CONTRIBUTING.md"
)

func TestReadme(t *testing.T) {
	t.Parallel()
	newReader(t).reads(readme)
}

// The commands of the quickstart work as the manual shows.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	newReader(t).reads("help/quickstart.md")
}

// The links in the README point to existing files.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	links := regexp.MustCompile(`(?:\]\(|src=")([^)"]+)[)"]`).FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1)
	require.Greater(t, len(links), 10)
	require.Contains(t, string(text), `<img src=".github/demo.svg" width="720" alt="A terminal`, "a picture, in words too")
	for _, link := range links {
		file, anchor, _ := strings.Cut(link[1], "#")
		page, err := filepath.Glob("../../" + file)
		require.NoError(t, err)
		require.Len(t, page, 1, link[1])
		if anchor != "" {
			heading := "(?mi)^#+ " + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", "[ -]") + "$"
			there, err := os.ReadFile(page[0])
			require.NoError(t, err)
			require.Regexp(t, heading, string(there), link[1])
		}
	}
}

// The README names every command and every topic, and the contributors' page every package.
func TestReadmeIsComplete(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	for _, verb := range cli.VerbNames(rootCommand(testApp())) {
		require.Regexp(t, "(?m)^\\|.*`"+verb+"\\b.*\\|$", string(text), verb)
	}
	require.Contains(t, string(text), "| "+strings.Join(help.TopicNames(), ", ")+" |")
	page, err := os.ReadFile(contributing)
	require.NoError(t, err)
	for _, f := range goFiles(t) {
		folder := f.folder
		if strings.HasPrefix(folder, "fixtures/") {
			folder = "fixtures"
		}
		require.Contains(t, string(page), "| [`"+folder+"`](../"+folder+") |")
	}
	for _, link := range regexp.MustCompile(`\]\(\.\./([^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		require.DirExists(t, "../../"+link[1])
	}
}

// The agent in the README is the same as in the manual.
func TestOneAgentForBoth(t *testing.T) {
	page, err := os.ReadFile("help/agents.md")
	require.NoError(t, err)
	all := fences(t, readme)
	agent := all[slices.IndexFunc(all, func(block fence) bool { return block.file != "" })]
	require.Equal(t, "agent.sh", agent.file)
	require.Len(t, agent.lines, 5, "five lines of shell")
	require.Contains(t, string(page), "\n```\n"+strings.Join(agent.lines, "\n")+"\n```\n")
}
