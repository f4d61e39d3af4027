//go:build !race

package agents_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
)

// TestPython runs the tests of the Python SDK, which play the same dialogues as TestDialogues.
// The race detector cannot see them: the code of this test only starts python3.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("THE SDK FOR PYTHON IS NOT TESTED: %v (with $CI set this fails)", err)
		return
	}
	require.NoError(t, err, "without python3 nobody knows whether the SDK for Python works")
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	tests := exec.CommandContext(ctx, python, "-W", "error", "-m", "unittest", "-v")
	tests.Dir = "python"
	tests.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	tests.WaitDelay = time.Second
	said, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "OK", "nothing was tested")
}

// TestTypeScript plays the dialogues with the TypeScript SDK, and runs its other tests and the
// examples of its README. The code is compiled to JavaScript, so only node is needed. Types are
// not checked; tsc does that. The race detector cannot see node, and compiling esbuild for it
// takes long.
func TestTypeScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("THE SDK FOR TYPESCRIPT IS NOT TESTED: %v (with $CI set this fails)", err)
		return
	}
	require.NoError(t, err, "without node nobody knows whether the SDK for TypeScript works")
	tests, err := filepath.Glob("typescript/tests/*.test.ts")
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	examples := t.TempDir()
	buildTypeScript(t, typeScriptExamples(t), examples)
	for _, built := range buildTypeScript(t, tests, t.TempDir()) {
		t.Run(filepath.Base(built), func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), node, built)
			run.Dir = "typescript"
			run.Env = append(os.Environ(), "EXAMPLES="+examples)
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// typeScriptExamples writes each example of the README to a file and returns the files.
func typeScriptExamples(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("typescript/README.md")
	require.NoError(t, err)
	folder := t.TempDir()
	var files []string
	for i, example := range regexp.MustCompile("(?s)\n```ts\n(.*?)\n```\n").FindAllSubmatch(readme, -1) {
		file := filepath.Join(folder, fmt.Sprintf("example%02d.ts", i+1))
		require.NoError(t, os.WriteFile(file, example[1], 0o600))
		files = append(files, file)
	}
	return files
}

// buildTypeScript compiles each TypeScript file, bundled with the SDK, and returns the
// JavaScript files.
func buildTypeScript(t *testing.T, files []string, folder string) []string {
	t.Helper()
	sdk, err := filepath.Abs("typescript/src/index.ts")
	require.NoError(t, err)
	built := api.Build(api.BuildOptions{
		EntryPoints:  files,
		Outdir:       folder,
		OutExtension: map[string]string{".js": ".mjs"},
		Alias:        map[string]string{"@orchestrator/agent": sdk},
		Bundle:       true,
		Format:       api.FormatESModule,
		Platform:     api.PlatformNode,
		Target:       api.ES2022,
		TsconfigRaw:  `{}`,
		Write:        true,
	})
	for _, wrong := range append(built.Errors, built.Warnings...) {
		t.Errorf("%s: %+v", wrong.Text, wrong.Location)
	}
	require.False(t, t.Failed())
	made := make([]string, 0, len(built.OutputFiles))
	for _, file := range built.OutputFiles {
		made = append(made, file.Path)
	}
	return made
}
