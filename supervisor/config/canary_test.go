package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// canaries lists wrong lines. Each uses the canary.
var canaries = []string{
	`shutdown = %s`,
	`shutdown = upper(%s)`,
	`state_dir = [%s]`,
	`name = { a = 1 }[%s]`,
	`name = { for k in [%s, %s] : k => k }`,
	`name = tonumber(%s)`,
	`name = format("%%d", %s)`,
	`name = jsondecode(%s)`,
	`name = file(%s)`,
	`name = env(%s)`,
	`name = %s + 1`,
	`name = %s ? 1 : 2`,
	`name = lookup({}, %s)`,
	`name = tonumber(upper(%s))`,
	`name = tobool(trimprefix(%s, "can"))`,
	`name = jsondecode(substr(%s, 2, 10))`,
	`name = format("%%d", split("-", %s)[1])`,
	`name = file("/none/${upper(%s)}")`,
	`name = abspath(tonumber(replace(%s, "-", "+")))`,
	`name = { for k in [lower(%s), lower(%s)] : upper(k) => k }`,
	`name = { a = 1 }[upper(%s)]`,
	`name = element([], %s)`,
	`name = env("A-${upper(%s)}")`,
}

// Rows: S-09.
func TestNoProblemShowsASensitiveValue(t *testing.T) {
	const canary = "canary-7f3a91"
	sources := map[string]string{
		"env()":    `env("CANARY")`,
		"default":  `env("NOT_SET", "canary-7f3a91")`,
		"file()":   `trimspace(file("canary.txt"))`,
		"variable": `var.token`,
		"flag":     `var.given`,
	}
	for name, expression := range sources {
		for _, line := range canaries {
			text := `
variable "token" {
  sensitive = true
  default   = "canary-7f3a91"
}
variable "given" {
  sensitive = true
}
orchestrator {
  ` + replaceAll(line, "%s", expression) + `
}
agent "a" {
  command    = ["x"]
  dir        = ` + expression + `
  env_file   = [` + expression + `]
  depends_on = [` + expression + `]
  role       = ` + expression + `
  protocol   = "${` + expression + `}x"
  limits {
    memory = ` + expression + `
  }
}
http {
  listen = [` + expression + `]
}
`
			file := write(t, "orchestrator.hcl", text, "canary.txt", canary+"\n")
			_, problems := Load(file, Options{Environ: []string{"CANARY=" + canary}, Vars: []string{"given=" + canary}})
			require.Greater(t, problems.Errors(), 5, "%s in %s", name, line)
			machine, err := json.Marshal(problems)
			require.NoError(t, err)
			if name == "default" {
				continue // its text is part of every line of this file
			}
			for _, shown := range []string{rendered(problems), string(machine), problems.Err().Error()} {
				require.NotContains(t, strings.ToLower(shown), "7f3a91", "%s in %s", name, line)
				require.NotContains(t, strings.ToLower(shown), "canary-", "%s in %s", name, line)
			}
		}
	}
}

func replaceAll(s, old, by string) string {
	out := ""
	for i := 0; i < len(s); i++ {
		if i+len(old) <= len(s) && s[i:i+len(old)] == old {
			out += by
			i += len(old) - 1
			continue
		}
		if s[i] == '%' && i+1 < len(s) && s[i+1] == '%' {
			i++
		}
		out += string(s[i])
	}
	return out
}

func TestMistakeBesideASensitiveLiteral(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
variable "token" {
  sensitive = true
  type      = string
  default   = ["canary-7f3a91"]
}
variable "other" { sensitive = true }
`, "vars.hcl", "other = \"canary-7f3a91\nunfinished")
	_, problems := Load(file, Options{
		VarFiles: []string{filepath.Join(filepath.Dir(file), "vars.hcl")},
		Vars:     []string{"tokn=canary-7f3a91", "canary-7f3a91"},
	})
	require.NotEmpty(t, problems)
	require.NotContains(t, rendered(problems), "canary-7f3a91")
}

func TestEnvFileErrorsNameLinesOnly(t *testing.T) {
	file := write(t, "orchestrator.hcl", inAgent(`env_file = ["a.env"]`), "a.env", "GOOD=1\ncanary-7f3a91\n")
	_, problems := Load(file, Options{})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Detail, "line 2 is not NAME=value")
	require.NotContains(t, rendered(problems), "canary-7f3a91")
}
