package laws

import (
	"fmt"
	"go/doc"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

const contributing = "../../../.github/CONTRIBUTING.md"

// TestPackageTable checks that CONTRIBUTING has a row for each package: the first sentence of its comment.
func TestPackageTable(t *testing.T) {
	const head, foot = "| package | contents |\n|---|---|\n", "\n`TestLawImports` lists"
	text, err := os.ReadFile(contributing)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), head)
	_, after, also := strings.Cut(rest, foot)
	require.True(t, ok && also, "the table of packages is gone")
	source.RequirePage(t, contributing, before+head+packageTable(t)+foot+after, "TestPackageTable")
}

// packageTable returns the rows of all packages.
func packageTable(t *testing.T) string {
	t.Helper()
	jobs := make(map[string]string)
	for _, f := range source.Files(t) {
		if f.Test || f.Syntax.Doc == nil {
			continue
		}
		job := new(doc.Package).Synopsis(f.Syntax.Doc.Text())
		name := f.Syntax.Name.Name
		job = strings.TrimPrefix(strings.TrimPrefix(job, "Package "+name+" "), "is ")
		jobs[f.Folder] = strings.TrimRight(job, ".:")
	}
	var b strings.Builder
	for _, room := range []string{"cmd", "wire", "handlers", "supervisor", "agents", "fixtures"} {
		for _, folder := range slices.Sorted(maps.Keys(jobs)) {
			if first, _, _ := strings.Cut(folder, "/"); first == room {
				fmt.Fprintf(&b, "| [`%s`](../%[1]s) | %s |\n", folder, strings.ReplaceAll(jobs[folder], "|", "\\|"))
			}
		}
	}
	return b.String()
}
