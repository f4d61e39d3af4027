package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExpressionsAreBounded checks that a short file cannot ask for much memory or time, and that the problem has
// its place.
func TestExpressionsAreBounded(t *testing.T) {
	doubled := "a0 = \"0123456789\"\n"
	listed := "a0 = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
	joined := "a0 = \"0123456789\"\n"
	for n := range 40 {
		joined += fmt.Sprintf("a%d = join(\"\", [local.a%d, local.a%d])\n", n+1, n, n)
		doubled += fmt.Sprintf("a%d = \"${local.a%d}${local.a%d}\"\n", n+1, n, n)
		listed += fmt.Sprintf("a%d = [local.a%d, local.a%d]\n", n+1, n, n)
	}
	million := "a0 = \"" + strings.Repeat("x", 1<<19) + "\"\n"
	for name, text := range map[string]string{
		"doubled text":     doubled,
		"doubled lists":    listed,
		"doubled by join":  joined,
		"nested loops":     "a = [for x in range(1000) : [for y in range(1000) : [for z in range(1000) : 1]]]",
		"dependent loops":  "a = [for x in range(1000) : [for y in range(x + 24) : [for z in range(y) : 1]]]",
		"loop over text":   million + "b = [for x in range(1000) : local.a0]",
		"wide format":      `a = format("%1000000000s", "x")`,
		"repeated format":  million + `b = format("%[1]s%[1]s%[1]s", local.a0)`,
		"replace":          million + `b = replace(local.a0, "x", "xxxxxxxxxx")`,
		"replace of empty": million + `b = replace(local.a0, "", "xxxxxxxxxx")`,
		"join":             million + `b = join(local.a0, range(1000))`,
		"many functions":   "a = concat(" + strings.Repeat("range(1000), ", 5000) + "[])",
		"many mentions":    million + "b = [" + strings.Repeat("local.a0, ", 100) + "]",
		"object of loops":  "a = { for x in range(1000) : x => [for y in range(1000) : { for z in range(10) : z => y }] }",
		"a loop in a text": million + `b = "%{ for x in range(100) }${local.a0}%{ endfor }"`,
		"a long text":      million + `b = "${local.a0}${local.a0}x"`,
		"many large locals": million + func() (text string) {
			for n := range 200 {
				text += fmt.Sprintf("b%d = \"${local.a0}%d\"\n", n, n)
			}
			return text
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(write(t, "orchestrator.hcl", "locals {\n"+text+"\n}\n"), Options{})
			require.NotEmpty(t, problems)
			require.Regexp(t, "too large", problems[0].Summary+problems[0].Detail)
			require.NotZero(t, problems[0].Range.Start.Line)
		})
	}
}

// TestBoundsOfJSON checks the same in a file of JSON. Its texts are templates.
func TestBoundsOfJSON(t *testing.T) {
	text := `{"locals": {"a0": "0123456789"`
	for n := range 40 {
		text += fmt.Sprintf(`, "a%d": "${local.a%d}${local.a%d}"`, n+1, n, n)
	}
	for _, file := range []string{text + "}}", `{"locals": {"a": "${[for x in range(1000) : [for y in range(1000) : [for z in range(1000) : 1]]]}"}}`} {
		_, problems := Load(write(t, "orchestrator.hcl.json", file), Options{})
		require.NotEmpty(t, problems)
		require.Contains(t, problems[0].Summary, "too large")
	}
}

// TestHonestExpressions checks that ordinary use is far from the bounds.
func TestHonestExpressions(t *testing.T) {
	prompt := strings.Repeat("Write good code. ", 900)
	c := load(t, write(t, "orchestrator.hcl", `
locals {
  prompt = file("prompt.txt")
  names  = [for n in range(200) : format("worker-%03d", n)]
  pairs  = { for n in local.names : n => [for m in local.slice : "${n}-${m}"] }
  slice  = ["a", "b", "c"]
  long   = join(",", [for n in local.names : "${n}:${length(local.names)}"])
  deep   = flatten([for k, v in local.grouped : [for w in v : upper(w)]])
  grouped = { for n in local.names : substr(n, 0, 8) => n... }
}
agent "a" {
  command = ["x", local.prompt, local.long]
  env     = { for n in local.names : upper(replace(n, "-", "_")) => "${local.prompt}"  if n != "worker-000" }
}
`, "prompt.txt", prompt), Options{})
	require.Len(t, c.Agents, 1)
}
