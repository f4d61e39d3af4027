package source

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/help"
)

// LimitRows returns the first column of the tables in help/limits.md.
func LimitRows(t *testing.T) map[string]bool {
	page, err := help.ReadTopic("limits")
	require.NoError(t, err)
	rows := make(map[string]bool)
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|`).FindAllStringSubmatch(page, -1) {
		rows[row[1]] = true
	}
	return rows
}

// RequireFileRow fails unless a file of a state directory has a row in help/limits.md.
func RequireFileRow(t *testing.T, name string) {
	t.Helper()
	for row := range LimitRows(t) {
		for _, pattern := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
			if ok, _ := filepath.Match(strings.ReplaceAll(pattern[1], "<time>", "*"), name); ok {
				return
			}
		}
	}
	t.Errorf("%s: give it a bound, and a row in help/limits.md", name)
}

// RequirePage compares a generated page with the file, or writes the file with -update.
func RequirePage(t *testing.T, file, fresh, test string) {
	t.Helper()
	if *Update {
		require.NoError(t, os.WriteFile(file, []byte(fresh), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	has, should := strings.Split(string(text), "\n"), strings.Split(fresh, "\n")
	hint := fmt.Sprintf("update it with: go test -run %s -update", test)
	for i := range min(len(has), len(should)) {
		require.Equal(t, should[i], has[i], "%s:%d\n%s", file, i+1, hint)
	}
	require.Equal(t, len(should), len(has), hint)
}

// Update is the flag to write generated pages instead of comparing them.
var Update = flag.Bool("update", false, "write the generated pages and parts of pages anew")

// A Fence is one block of a page.
type Fence struct {
	Lang  string
	File  string // the file with this text
	Lines []string
}

var fileAbove = regexp.MustCompile("(?:^|, )`([\\w./]+)`:$")

// Fences returns the blocks of a page.
func Fences(t *testing.T, page string) (found []Fence) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var inside *Fence
	above := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		lang, marks := strings.CutPrefix(line, "```")
		switch {
		case marks && inside == nil:
			inside = &Fence{Lang: lang}
			if name := fileAbove.FindStringSubmatch(above); name != nil {
				inside.File = name[1]
			}
		case marks:
			found, inside, above = append(found, *inside), nil, ""
		case inside != nil:
			inside.Lines = append(inside.Lines, line)
		case line != "":
			above = line
		}
	}
	return found
}
