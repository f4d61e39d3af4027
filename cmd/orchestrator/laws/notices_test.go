package laws

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

// A linked package is part of the program.
type linked struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedPackages returns the packages of the program on all systems that it is built for, without
// the standard library and the module itself.
func linkedPackages(t *testing.T) (all []linked) {
	t.Helper()
	for _, system := range []string{"linux", "darwin"} {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Module", source.Module+"/cmd/orchestrator")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		list.Stderr = os.Stderr
		out, err := list.Output()
		require.NoError(t, err)
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var one linked
			if err := d.Decode(&one); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
			if one.Module != nil && !one.Module.Main {
				all = append(all, one)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

var noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.(txt|md))?$`)

// noticesIn returns the notices in a folder by the names of their files.
func noticesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := make(map[string]string)
	for _, entry := range entries {
		if entry.Type().IsRegular() && noticeName.MatchString(entry.Name()) {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			found[entry.Name()] = strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")) + "\n"
		}
	}
	return found
}

// noticesOf returns the notices of all linked modules: by their texts, the modules with that text.
func noticesOf(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	add := func(text, what string) {
		if !slices.Contains(all[text], what) {
			all[text] = append(all[text], what)
		}
	}
	for name, text := range noticesIn(t, "../../..") {
		add(text, "orchestrator: "+name)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	for name, text := range noticesIn(t, strings.TrimSpace(string(root))) {
		add(text, "the Go standard library: "+name)
	}
	for _, p := range linkedPackages(t) {
		licensed := false
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			inner, err := filepath.Rel(p.Module.Dir, dir)
			require.NoError(t, err)
			for name, text := range noticesIn(t, dir) {
				add(text, p.Module.Path+" "+p.Module.Version+": "+filepath.ToSlash(filepath.Join(inner, name)))
				licensed = true
			}
			if dir == p.Module.Dir {
				break
			}
		}
		require.True(t, licensed, "%s has no license", p.Module.Path)
	}
	return all
}

// The program has the notices of all modules that are linked in it, as they are in their modules.
//
// Rows: S-16.
func TestNotices(t *testing.T) {
	all := noticesOf(t)
	for _, what := range all {
		slices.Sort(what)
	}
	texts := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(all[a][0], all[b][0]) })
	var b strings.Builder
	b.WriteString("This program contains the modules named below, each with its license. Get the source of\na module with: go mod download MODULE@VERSION\n")
	for _, text := range texts {
		b.WriteString("\n" + strings.Repeat("=", 80) + "\n" + strings.Join(all[text], "\n") + "\n" + strings.Repeat("-", 80) + "\n\n" + text)
	}
	source.RequirePage(t, "../cli/notices.txt", b.String(), "TestNotices")
}
