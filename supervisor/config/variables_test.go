package config

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrecedenceOfVariables(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
variable "v" { default = "default" }
agent "a" {
  command = [var.v]
}`, "plain/orchestrator.hcl", `
variable "v" { default = "default" }
agent "a" {
  command = [var.v]
}`, "orchestrator.auto.vars.hcl", `v = "auto"`, "one.hcl", `v = "one"`, "two.hcl", `v = "two"`)
	dir := filepath.Dir(file)
	one, two := filepath.Join(dir, "one.hcl"), filepath.Join(dir, "two.hcl")
	environ := []string{"ORC_VAR_v=environ", "ORC_VAR_other=ignored"}
	for _, c := range []struct {
		want, file string
		options    Options
	}{
		{"default", filepath.Join(dir, "plain/orchestrator.hcl"), Options{}},
		{"auto", file, Options{}},
		{"environ", file, Options{Environ: environ}},
		{"one", file, Options{Environ: environ, VarFiles: []string{one}}},
		{"two", file, Options{Environ: environ, VarFiles: []string{one, two}}},
		{"flag", file, Options{Environ: environ, VarFiles: []string{one, two}, Vars: []string{"v=x", "v=flag"}}},
	} {
		require.Equal(t, []string{c.want}, load(t, c.file, c.options).Agents[0].Command)
	}
}

func TestTypesOfVariables(t *testing.T) {
	file := config(t, `
variable "n" { type = number }
variable "l" { type = list(string) }
variable "m" { type = map(string) }
variable "b" { type = bool }
agent "a" {
  command   = concat(["x"], var.l, [var.m.k, tostring(var.n)])
  autostart = var.b
}`)
	good := []string{"n=3", `l=["a", "b"]`, `m={ k = "v" }`, "b=false"}
	c := load(t, file, Options{Vars: good})
	require.Equal(t, []string{"x", "a", "b", "v", "3"}, c.Agents[0].Command)
	require.False(t, c.Agents[0].Autostart)

	for wrong, code := range map[string]string{
		"n=three":    "config/wrong-type",
		"n=1e999999": "config/bad-number",
		"b=perhaps":  "config/wrong-type",
		"l=a,b":      "config/bad-var",
		"l=3":        "config/wrong-type",
		"nn=1":       "config/unknown-variable",
		"n":          "config/bad-var",
	} {
		_, problems := Load(file, Options{Vars: append(append([]string{}, good...), wrong)})
		require.Len(t, problems, 1, "%s: %s", wrong, rendered(problems))
		require.Equal(t, code, problems[0].Code, wrong)
	}
}

func TestUnknownNameInVariableFile(t *testing.T) {
	file := write(t, "orchestrator.hcl", "variable \"model\" { default = \"x\" }\n", "vars.hcl", "modle = \"y\"\n")
	_, problems := Load(file, Options{VarFiles: []string{filepath.Join(filepath.Dir(file), "vars.hcl")}})
	require.Len(t, problems, 1)
	require.Equal(t, `Did you mean "model"?`, problems[0].Hint)
	require.Equal(t, 1, problems[0].Range.Start.Line)
	require.Nil(t, problems[0].Snippet)
}
