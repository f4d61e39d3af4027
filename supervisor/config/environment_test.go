package config

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var base = []string{"PATH=/bin", "HOME=/home/ann", "ORC_TOKEN=t", "ORC_VAR_x=1", "LANG=C", "KEY=from-environ"}

// environ returns the environment of the only agent of a file.
func environ(t *testing.T, c *Config) []string {
	t.Helper()
	env, err := c.Environ(t.Context(), &c.Agents[0], base)
	require.NoError(t, err)
	return env
}

func TestInheritEnv(t *testing.T) {
	for value, want := range map[string][]string{
		`true`:                        {"PATH=/bin", "HOME=/home/ann", "ORC_VAR_x=1", "LANG=C", "KEY=from-environ"},
		`"ordinary"`:                  {"PATH=/bin", "HOME=/home/ann", "ORC_VAR_x=1", "LANG=C"},
		`false`:                       {},
		`["LANG", "ORC_TOKEN", "NO"]`: {"LANG=C"},
	} {
		c := load(t, config(t, inAgent("inherit_env = "+value)), Options{})
		require.Equal(t, want, environ(t, c), value)
	}
}

func TestEnvWinsAndNullRemoves(t *testing.T) {
	c := load(t, write(t, "orchestrator.hcl", inAgent(`
inherit_env = ["PATH", "HOME", "LANG"]
env_file    = ["a.env", "b.env"]
env = {
  LANG = null
  BOTH = "env"
  N    = 3
  SELF = "${self.name}-${self.index}"
}`), "a.env", "A=1\nBOTH=file\nHOME=/file\n", "b.env", "A=2\n"), Options{})
	require.Equal(t, []string{"PATH=/bin", "HOME=/file", "A=2", "BOTH=env", "N=3", "SELF=a-0"}, environ(t, c))
}

func TestComputedEnv(t *testing.T) {
	c := load(t, config(t, `
secret "k" {
  env = "KEY"
}
agent "a" {
  command     = ["x"]
  inherit_env = false
  env         = merge({ A = "1" }, { K = "pre-${secret.k}" }, { E = env("E", "d") })
}`), Options{})
	require.ElementsMatch(t, []string{"A=1", "K=pre-from-environ", "E=d"}, environ(t, c))
}

func TestSecretsAreReadAtEachStart(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
secret "file" {
  file = "key.txt"
}
secret "home" {
  file = "~/key.txt"
}
secret "env" {
  env = "KEY"
}
secret "command" {
  command = ["cat", "key.txt"]
}
agent "a" {
  command     = ["x"]
  inherit_env = false
  env = {
    F = secret.file
    H = secret.home
    E = secret["env"]
    C = "<${secret.command}>"
  }
}`, "key.txt", "one\n\n")
	dir := filepath.Dir(file)
	c := load(t, file, Options{Environ: []string{"HOME=" + dir}})
	require.Equal(t, []string{"F=one\n", "H=one\n", "E=from-environ", "C=<one\n>"}, environ(t, c))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.txt"), []byte("two"), 0o600))
	require.Equal(t, []string{"F=two", "H=two", "E=from-environ", "C=<two>"}, environ(t, c))
}

func TestASecretArrivesByteForByte(t *testing.T) {
	decomposed := "e\u0301\xff"
	file := write(t, "orchestrator.hcl", `
secret "k" {
  file = "k"
}
agent "a" {
  command     = ["x"]
  inherit_env = false
  env         = { K = secret.k }
}`, "k", decomposed)
	require.Equal(t, []string{"K=" + decomposed}, environ(t, load(t, file, Options{})))
}

func TestEnvironErrors(t *testing.T) {
	for name, c := range map[string]struct{ source, value, want string }{
		"file":    {`file = "/no/such/key"`, "secret.k", "file /no/such/key: no such file"},
		"env":     {`env = "NO_SUCH"`, "secret.k", `environment variable "NO_SUCH" is not set`},
		"command": {`command = ["false"]`, "secret.k", `command "false": exit status 1`},
		"missing": {`command = ["/no/such/program"]`, "secret.k", `no such file`},
		"nul":     {`command = ["printf", "canary\\000x"]`, "secret.k", "NUL byte"},
		"kind":    {`command = ["printf", "canary"]`, "secret.k + 1", "invalid operand"},
	} {
		t.Run(name, func(t *testing.T) {
			config := load(t, config(t, "secret \"k\" {\n "+c.source+"\n}\nagent \"a\" {\n command = [\"x\"]\n env = { MODEL_KEY = "+c.value+" }\n}"), Options{})
			_, err := config.Environ(t.Context(), &config.Agents[0], os.Environ())
			require.ErrorContains(t, err, `agent "a": variable MODEL_KEY: `)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "canary")
		})
	}
}

func TestEnvFileThatWentBad(t *testing.T) {
	file := write(t, "orchestrator.hcl", inAgent(`env_file = ["a.env"]`), "a.env", "A=1")
	c := load(t, file, Options{})
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "a.env"), []byte("A=1\nB='canary"), 0o600))
	_, err := c.Environ(t.Context(), &c.Agents[0], nil)
	require.ErrorContains(t, err, "a.env: line 2 has an unclosed quote")
	require.NotContains(t, err.Error(), "canary")
}

// TestSecretsFromANamedPipe checks a secret in a named pipe. If no process writes to it, reading
// ends with the context of the start.
func TestSecretsFromANamedPipe(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
secret "k" {
  file = "pipe"
}
agent "a" {
  command     = ["x"]
  inherit_env = false
  env         = { K = secret.k }
}`)
	pipe := filepath.Join(filepath.Dir(file), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	c := load(t, file, Options{})
	go func() { _ = os.WriteFile(pipe, []byte("from the pipe\n"), 0o600) }()
	require.Equal(t, []string{"K=from the pipe"}, environ(t, c))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Environ(ctx, &c.Agents[0], nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.WriteFile(pipe, nil, 0o600)) // lets the reader that gave up end
}

// TestSecretsAreNotInherited checks that the source of a secret or a sensitive variable reaches
// only agents that name it in env, whatever they inherit.
//
// Rows: S-02.
func TestSecretsAreNotInherited(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
variable "x" {
  sensitive = true
}

secret "k" {
  env = "KEY"
}

agent "a" {
  command = ["x"]
  env     = { MINE = secret.k }
}

agent "b" {
  command     = ["x"]
  inherit_env = ["KEY", "ORC_VAR_x", "LANG"]
}
`)
	c := load(t, file, Options{Environ: []string{"ORC_VAR_x=1"}})
	base := []string{"LANG=C", "KEY=sk-1", "ORC_VAR_x=1", "ORC_VAR_y=2"}
	for i, want := range [][]string{{"LANG=C", "ORC_VAR_y=2", "MINE=sk-1"}, {"LANG=C"}} {
		env, err := c.Environ(t.Context(), &c.Agents[i], base)
		require.NoError(t, err)
		require.Equal(t, want, env)
	}
}

// Inherited and Secrets read no secret: no file of one exists.
func TestInherited(t *testing.T) {
	t.Parallel()
	c := load(t, write(t, "orchestrator.hcl", `
secret "k" {
  env = "KEY"
}
secret "gone" {
  file = "gone"
}
agent "a" {
  command = ["x"]
  env     = { LANG = "de", HOME = null, A = secret.k }
}
agent "b" {
  command     = ["x"]
  inherit_env = ["PATH", "KEY", "HOME"]
  env         = merge({ HOME = "/b" }, { B = secret.gone, "${"C"}" = values(secret)[0] })
}
agent "c" {
  command = ["x"]
}
`), Options{})
	for i, want := range [][]string{{"PATH=/bin", "ORC_VAR_x=1"}, {"PATH=/bin"}, {"PATH=/bin", "HOME=/home/ann", "ORC_VAR_x=1", "LANG=C"}} {
		require.Equal(t, want, c.Inherited(&c.Agents[i], base))
	}
	for i, want := range [][]string{{"k"}, {"gone", "k"}, nil} {
		require.Equal(t, want, c.Secrets(&c.Agents[i]))
	}
	require.Equal(t, []string{filepath.Join(c.Dir, "gone")}, c.SecretFiles())
}

// The commands that verify work get no value that may be secret, unless verify_env names its variable.
func TestVerifyEnviron(t *testing.T) {
	for more, want := range map[string][]string{
		"":                              {"HOME=/h", "PLAIN=a"},
		`verify_env = ["KEY", "FILED"]`: {"HOME=/h", "FILED=filed", "PLAIN=a", "KEY=hidden"},
	} {
		path := config(t, inAgent(`
  inherit_env = ["HOME"]
  env_file    = ["more.env"]
  env = {
    PLAIN = "a"
    KEY   = secret.key
    WORD  = env("ORC_TEST_WORD", "word")
    MIXED = "x-${secret.key}"
  }
  `+more)+"\nsecret \"key\" {\n  file = \"key\"\n}\n")
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "key"), []byte("hidden"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "more.env"), []byte("FILED=filed\n"), 0o600))
		c := load(t, path, Options{})
		env, err := c.VerifyEnviron(t.Context(), &c.Agents[0], []string{"HOME=/h", "OTHER=x"})
		require.NoError(t, err)
		require.Equal(t, want, env)
	}
}
