package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
)

// agent runs a program as an agent with the SDK for its language.
func (r *reader) agent(source string) {
	r.t.Helper()
	switch filepath.Ext(source) {
	case ".go":
		r.works(r.built(source))
	case ".py":
		if needs(r.t, "python3") {
			sdk, err := filepath.Abs("../../agents/python")
			require.NoError(r.t, err)
			r.works("env", "PYTHONPATH="+sdk, "python3", source)
		}
	case ".ts":
		if needs(r.t, "node") {
			r.works("node", r.bundled(source))
		}
	}
}

// needs reports whether a runtime is there. Where CI is set, it must be.
func needs(t *testing.T, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("WHAT IS WRITTEN FOR %s IS NOT TESTED: %v (with $CI set this fails)", program, err)
		return false
	}
	require.NoError(t, err)
	return true
}

// works runs an agent, gives it a task, and checks the result.
func (r *reader) works(command ...string) {
	r.t.Helper()
	words, err := json.Marshal(command)
	require.NoError(r.t, err)
	hcl := fmt.Sprintf("orchestrator {\n  state_dir = \".one\"\n}\nagent \"one\" {\n  command = %s\n}\n", words)
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "one.hcl"), []byte(hcl), 0o600))
	r.do("orchestrator up -d -c one.hcl")
	id := strings.TrimSpace(r.do(`orchestrator task add "Say hello" -c one.hcl --wait -q`))
	require.Contains(r.t, r.do("orchestrator task show -c one.hcl --json "+id), `"summary":"hello, Say hello"`)
	r.do("orchestrator down -c one.hcl")
}

// built compiles a Go program as if its source were in this module.
func (r *reader) built(source string) string {
	r.t.Helper()
	there, err := filepath.Abs("../../fixtures/ofreadme/main.go")
	require.NoError(r.t, err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {there: source}})
	require.NoError(r.t, err)
	plan, program := filepath.Join(r.dir, "overlay.json"), filepath.Join(r.dir, "agent")
	require.NoError(r.t, os.WriteFile(plan, overlay, 0o600))
	build := exec.CommandContext(r.t.Context(), "go", "build", "-overlay", plan, "-o", program, "./fixtures/ofreadme")
	build.Dir = "../.."
	text, err := build.CombinedOutput()
	require.NoError(r.t, err, "%s", text)
	return program
}

// bundled compiles a TypeScript program and the SDK to JavaScript.
func (r *reader) bundled(source string) string {
	r.t.Helper()
	sdk, err := filepath.Abs("../../agents/typescript/src/index.ts")
	require.NoError(r.t, err)
	program := filepath.Join(r.dir, "agent.mjs")
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{source}, Outfile: program, Write: true, Bundle: true,
		Alias:    map[string]string{"@orchestrator/agent": sdk},
		Format:   api.FormatESModule,
		Platform: api.PlatformNode,
		Target:   api.ES2022,
	})
	require.Empty(r.t, built.Errors)
	require.Empty(r.t, built.Warnings)
	return program
}
