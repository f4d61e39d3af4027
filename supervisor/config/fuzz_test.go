package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeepSource checks inputs that make a recursive parser use its stack. A stack overflow ends
// the process, so they must be refused before.
func TestDeepSource(t *testing.T) {
	const many = 20_000
	for name, text := range map[string]string{
		"brackets":   "x = " + strings.Repeat("[", many),
		"parens":     "x = " + strings.Repeat("(", many),
		"templates":  "x = " + strings.Repeat(`"${`, many),
		"not":        "x = " + strings.Repeat("!", many) + "true",
		"minus":      "x = " + strings.Repeat("-", many) + "1",
		"conditions": "x = " + strings.Repeat("a ? b : ", many/2) + "c",
		"sum":        "x = 1" + strings.Repeat("+1", many),
		"indexes":    "x = a" + strings.Repeat("[0]", many),
		"splats":     "x = a" + strings.Repeat("[*]", many),
		"blocks":     strings.Repeat("a {\n", many/2),
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(config(t, "locals {\n"+text+"\n}\n"), Options{})
			require.Len(t, problems, 1)
			require.Equal(t, "config/too-deep", problems[0].Code)
			_, problems = Format([]byte("locals {\n"+text+"\n}\n"), "x.hcl")
			require.Equal(t, 1, problems.Errors())
		})
	}
	_, problems := Load(write(t, "orchestrator.hcl.json", strings.Repeat("[", many)), Options{})
	require.Equal(t, "config/too-deep", problems[0].Code)
}

func FuzzLoad(f *testing.F) {
	for _, file := range []string{"testdata/mistakes.hcl", "testdata/minimal.hcl"} {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text, false)
	}
	f.Add([]byte(reference()), false)
	for _, m := range mistakes {
		f.Add([]byte(m.text), false)
	}
	f.Add([]byte(`{"agent": {"a": {"command": ["x"], "env": {"K": "${secret.k}"}}}, "secret": {"k": {"env": "K"}}}`), true)
	f.Add([]byte("locals {\n a = [for x in [1] : x]\n b = local.a[*].c\n}\n"), false)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, asJSON bool) {
		file := filepath.Join(dir, "orchestrator.hcl")
		if asJSON {
			file += ".json"
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
		c, problems := Load(file, Options{Environ: []string{"HOME=/"}})
		require.Equal(t, problems.Errors() > 0, c == nil)
		require.NoError(t, problems.Render(io.Discard, true))
		stateDir, store, ok := Record(file, Options{Environ: []string{"HOME=/"}})
		if c != nil {
			require.Empty(t, Compare(c, c))
			require.True(t, ok)
			require.Equal(t, c.Orchestrator.StateDir, stateDir)
			require.Equal(t, c.Store, store)
		}
		out, wrong := Format(text, filepath.Base(file))
		if len(wrong) == 0 && !asJSON {
			again, _ := Format(out, filepath.Base(file))
			require.Equal(t, string(out), string(again))
		}
	})
}
