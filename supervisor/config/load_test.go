package config

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// write makes a folder with the given files and returns the path of the first.
func write(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		file := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(files[i+1]), 0o600))
	}
	return filepath.Join(dir, files[0])
}

func config(t testing.TB, text string) string { return write(t, "orchestrator.hcl", text) }

// load loads a file without errors.
func load(t testing.TB, file string, o Options) *Config {
	t.Helper()
	o.Run = func(ctx context.Context, command []string, dir string, env []string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, env
		return cmd.Output()
	}
	c, problems := Load(file, o)
	require.Empty(t, problems, "%s", rendered(problems))
	return c
}

func rendered(ps Problems) string {
	var b bytes.Buffer
	if err := ps.Render(&b, false); err != nil {
		return err.Error()
	}
	return b.String()
}

// bare returns a configuration without its positions, which two files never share.
func bare(c *Config) Config {
	b := *c
	b.File, b.places, b.run = "", nil, nil
	b.Agents = slices.Clone(c.Agents)
	for i := range b.Agents {
		b.Agents[i].Place, b.Agents[i].env = "", environment{}
		b.Agents[i].Stop.Unspoken = 0 // the file cannot name it
	}
	return b
}

// reference returns a file with every attribute that has a default, set to it. Attributes of
// agents that defaults may have stand there.
func reference() string {
	var b strings.Builder
	spellSection(&b, new(Config).section())
	a := new(Agent).section()
	shared, own := new(reader).behaviour(new(Agent)), a
	own.children = a.children[len(shared):]
	shares := section{children: shared}
	for _, x := range a.attributes {
		if slices.Contains([]string{"inherit_env", "wrap", "user"}, x.name) {
			shares.attributes = append(shares.attributes, x)
		}
	}
	b.WriteString("defaults {\n")
	spellSection(&b, shares)
	b.WriteString("}\nagent \"worker\" {\ncommand = [\"./worker\"]\n")
	spellSection(&b, own)
	b.WriteString("}\n")
	text, _ := Format([]byte(b.String()), "reference.hcl")
	return string(text)
}

func spellSection(b *strings.Builder, s section) {
	for _, a := range s.attributes {
		if a.initial != nil {
			fmt.Fprintf(b, "%s = %s\n", a.name, spelledDefault(a.initial))
		}
	}
	for _, c := range s.children {
		var inner strings.Builder
		if spellSection(&inner, c.body("")); inner.Len() > 0 {
			fmt.Fprintf(b, "%s {\n%s}\n", c.kind, inner.String())
		}
	}
}

// spelledDefault returns a default as the manual has it.
func spelledDefault(initial any) string {
	switch d := initial.(type) {
	case float64:
		if d == math.Trunc(d) {
			return fmt.Sprintf("%.1f", d)
		}
	case map[string]string:
		return "{}"
	}
	text, _ := json.Marshal(initial)
	return strings.ReplaceAll(string(text), ",", ", ")
}

func TestDefaultsAreWhatTheLanguageSays(t *testing.T) {
	file := write(t, "testdata/orchestrator.hcl", reference(), "testdata/minimal.hcl", "agent \"worker\" {\n  command = [\"./worker\"]\n}\n")
	spelled, minimal := load(t, file, Options{}), load(t, filepath.Join(filepath.Dir(file), "minimal.hcl"), Options{})
	require.Equal(t, bare(minimal), bare(spelled))
	require.Equal(t, "testdata", minimal.Orchestrator.Name)
	require.Equal(t, filepath.Dir(file)+"/.orchestrator/logs", minimal.Agents[0].Output.Dir)
}

func TestMistakes(t *testing.T) {
	_, problems := Load("testdata/mistakes.hcl", Options{Vars: []string{"modle=x"}})
	golden(t, "testdata/mistakes.golden", rendered(problems))
}

// A file without variables gets a hint how to declare one, and how to read the environment.
func TestNoVariables(t *testing.T) {
	_, problems := Load(write(t, "orchestrator.hcl", `
agent "a" {
  command = [env, var.model, env.HOME, var["a b"]]
}
`), Options{})
	text := rendered(problems)
	require.Contains(t, text, `The variable "model" does not exist. Declare it: variable "model" {}`)
	require.Contains(t, text, `Write env("HOME").`)
	require.Contains(t, text, `For the text itself use quotes: "env".`)
	require.Equal(t, 1, strings.Count(text, "Declare it"))
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestLoadReadsEverything(t *testing.T) {
	c := load(t, write(t, "orchestrator.hcl", `
variable "team" {
  type    = list(string)
  default = ["a", "b"]
}
locals {
  second = "${local.first}!"
  first  = join("-", var.team)
}
orchestrator {
  name     = local.second
  shutdown = "1m"
}
http {
  listen = ["127.0.0.1:0", "[::1]:80", "localhost:81"]
}
defaults {
  inherit_env = ["PATH", "HOME"]
  restart {
    delay = "1s"
    burst = 1
  }
  output {
    dir = "/var/log/x"
  }
}
agent "coder" {
  command    = ["code", self.name, self.index]
  replicas   = 2
  depends_on = self.index > 0 ? ["coder-0", "base"] : ["base"]
  restart {
    burst = 9
  }
  capabilities {
    tags = ["t"]
    repo "api" {
      tools = ["go"]
    }
  }
}
agent "base" {
  command     = ["base"]
  dir         = "sub"
  inherit_env = false
}
agent "tail" {
  command    = ["tail"]
  depends_on = ["coder"]
}
session "s" {
  member "coder-0" { type = "developer" }
}
`, "sub/x", ""), Options{})
	require.Equal(t, "a-b!", c.Orchestrator.Name)
	require.Equal(t, time.Minute, c.Orchestrator.Shutdown)
	require.Equal(t, filepath.Join(c.Dir, ".orchestrator", "events.db"), c.Store.Path)
	require.Equal(t, []Session{{Spec: session.Spec{
		ID: "s", Validation: "standard", MaxIterations: 3, OnMax: "human_review",
		ProgressAfter: 120_000, ProgressEvery: 30_000,
		Members: []session.Member{{AgentID: "coder-0", AgentType: "developer"}},
	}}}, c.Sessions)

	require.Len(t, c.Agents, 4)
	one := c.Agents[1]
	require.Equal(t, []string{"code", "coder-1", "1"}, one.Command)
	require.Equal(t, "coder", one.Block)
	require.Equal(t, 1, one.Index)
	require.Equal(t, "orchestrator.hcl:27", one.Place)
	require.Equal(t, []string{"coder-0", "base"}, one.DependsOn)
	require.Equal(t, InheritEnv{Names: []string{"PATH", "HOME"}}, one.InheritEnv)
	require.Equal(t, time.Second, one.Restart.Delay)
	require.Equal(t, 9, one.Restart.Burst)
	require.Equal(t, 2.0, one.Restart.Factor)
	require.Equal(t, "/var/log/x", one.Output.Dir)
	require.Equal(t, []hub.Repo{{Name: "api", Path: ".", Tools: []string{"go"}}}, one.Capabilities.Repos)
	require.Equal(t, InheritEnv{}, c.Agents[2].InheritEnv)
	require.Equal(t, filepath.Join(c.Dir, "sub"), c.Agents[2].Dir)
	require.Equal(t, []string{"coder-0", "coder-1"}, c.Agents[3].DependsOn)
	require.Equal(t, "orchestrator.hcl:28", c.Place("agent.coder.command"))
}

func TestLoadJSON(t *testing.T) {
	file := write(t, "orchestrator.hcl.json", `{"agent": {"a": {
		"command": ["x", "${upper(\"y\")}"], "env": {"K": "v"}, "restart": {"delay": "2s"}}}}`)
	c := load(t, file, Options{})
	require.Equal(t, []string{"x", "Y"}, c.Agents[0].Command)
	require.Equal(t, 2*time.Second, c.Agents[0].Restart.Delay)
	env, err := c.Environ(t.Context(), &c.Agents[0], nil)
	require.NoError(t, err)
	require.Equal(t, []string{"K=v"}, env)
}

func TestLoadWithoutFile(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{filepath.Join(dir, "none.hcl"), dir} {
		c, problems := Load(file, Options{})
		require.Nil(t, c)
		require.Len(t, problems, 1)
		require.Equal(t, "config/unreadable", problems[0].Code)
		require.Nil(t, problems[0].Snippet)
	}
}

// mistake is one wrong line and its error.
type mistake struct{ name, text, code, says string }

func inAgent(line string) string {
	if !strings.Contains(line, "command") {
		line = "command = [\"x\"]\n" + line
	}
	return "agent \"a\" {\n" + line + "\n}\n"
}

var mistakes = []mistake{
	{"bare time", "orchestrator {\n shutdown = 10\n}", "bad-duration", `Durations need a unit: "10s"?`},
	{"time as text", "orchestrator {\n shutdown = \"10\"\n}", "bad-duration", `"10s"?`},
	{"negative time", "orchestrator {\n shutdown = \"-1s\"\n}", "bad-duration", "negative"},
	{"bare size", inAgent("limits {\n memory = 64\n}"), "bad-size", `"64MiB"?`},
	{"size with k", inAgent("limits {\n memory = \"64k\"\n}"), "bad-size", `"64KiB"?`},
	{"huge size", inAgent("limits {\n memory = \"9999999999GiB\"\n}"), "bad-size", "too large"},
	{"fraction", inAgent("replicas = 1.5"), "bad-number", "whole number"},
	{"huge number", inAgent("replicas = 1e99999"), "bad-number", "digits"},
	{"huge integer", inAgent("replicas = 99999999999999999999"), "out-of-range", "between 0 and"},
	{"factor", inAgent("restart {\n factor = 0.9\n}"), "out-of-range", "between 1"},
	{"retries", "scheduler {\n delegation_retries = 101\n}\n" + inAgent(""), "out-of-range", "between 0 and 100"},
	{"mailbox", inAgent("limits {\n mailbox = 0\n}"), "out-of-range", "between 1"},
	{"signal", inAgent("stop {\n signal = \"TERM\"\n}"), "unknown-value", `"SIGTERM"?`},
	{"command as text", inAgent(`command = "x y"`), "command-is-text", `["sh", "-c", "…"]`},
	{"empty command", inAgent("command = []"), "empty-command", "first word"},
	{"set twice elsewhere", inAgent("restart {\n burst = 1\n burts = 2\n}"), "unknown-attribute", `"burst"?`},
	{"block as attribute", inAgent("restart = {}"), "unknown-attribute", "restart { … }"},
	{"attribute as block", inAgent("command = [\"x\"]\ndir {\n}"), "unknown-block", "dir = …"},
	{"enum without quotes", inAgent("role = worker"), "unknown-reference", `"worker"`},
	{"secret elsewhere", "secret \"k\" {\n env = \"K\"\n}\n" + inAgent("description = secret.k"), "secret-outside-env", "only in the env"},
	{"secret in local", "secret \"k\" {\n env = \"K\"\n}\nlocals {\n a = secret.k\n}", "secret-outside-env", "only in the env"},
	{"unknown secret", "secret \"key\" {\n env = \"K\"\n}\n" + inAgent("env = { K = secret.kye }"), "unknown-secret", `"key"?`},
	{"unknown local", "locals {\n one = 1\n}\n" + inAgent("description = local.oen"), "unknown-local", `"one"?`},
	{"secret with two sources", "secret \"k\" {\n env = \"K\"\n file = \"f\"\n}", "bad-secret", "env and file are set"},
	{"self outside", "orchestrator {\n name = self.name\n}", "unknown-reference", "inside an agent"},
	{"self in replicas", inAgent("replicas = self.index"), "unknown-reference", "not in replicas"},
	{"cycle", inAgent(`depends_on = ["a"]`), "dependency-cycle", "a -> a"},
	{"pty", inAgent("pty = true\nstdin = \"null\""), "pty-without-stdin", "terminal"},
	{"no loopback", "http {\n listen = [\":80\"]\n}", "listener-without-tls", "127.0.0.1:80"},
	{"env file", inAgent(`env_file = ["none.env"]`), "bad-env-file", "no such file"},
	{"replica's name", "agent \"a\" {\n command = [\"x\"]\n replicas = 2\n}\nagent \"a-1\" {\n command = [\"x\"]\n}", "duplicate-agent", `"a-1"`},
	{"no value", "variable \"v\" {}\n" + inAgent("description = var.v"), "missing-variable", "--var v=…"},
	{"name", "agent \"a b\" {\n command = [\"x\"]\n}", "bad-name", "letters"},
	{"defaults hold no command", "defaults {\n command = [\"x\"]\n}", "unknown-attribute", "Block defaults"},
	{"syntax", "agent \"a\" {", "syntax", ""},
	{"env is text", inAgent(`env = "x"`), "bad-env", "map"},
	{"label missing", "agent {\n}", "bad-label", ""},
	{"two blocks", "log {\n}\nlog {\n}", "duplicate-block", "the first is at orchestrator.hcl:1"},
}

func TestEachMistakeIsOneProblem(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			c, problems := Load(config(t, m.text), Options{})
			require.Nil(t, c)
			require.Len(t, problems, 1, "%s", rendered(problems))
			require.Equal(t, "config/"+m.code, problems[0].Code)
			require.Contains(t, problems[0].Detail+" "+problems[0].Hint, m.says)
			require.NotNil(t, problems[0].Snippet)
		})
	}
}

func TestProblemsOfReplicasAreSaidOnce(t *testing.T) {
	_, problems := Load(config(t, inAgent("replicas = 5\ndir = \"none\"")), Options{})
	require.Len(t, problems, 1)
	_, problems = Load(config(t, inAgent("replicas = 0\ndir = \"none\"")), Options{})
	require.Len(t, problems, 1)
}

func TestCheckingWithoutEnvironment(t *testing.T) {
	file := config(t, `
secret "k" {
  env = "K"
}
agent "a" {
  command  = ["x", env("NOT_SET")]
  replicas = env("N")
  env      = { K = secret.k, E = env("E") }
  env_file = ["missing.env"]
}`)
	load(t, file, Options{NoEnv: true})
	_, problems := Load(file, Options{})
	require.Equal(t, 4, problems.Errors(), "%s", rendered(problems))
}

func TestMemberFromElsewhereIsAWarning(t *testing.T) {
	c, problems := Load(config(t, "session \"s\" {\n member \"far\" { type = \"reviewer\" }\n}"), Options{})
	require.NotNil(t, c)
	require.NoError(t, problems.Err())
	require.Equal(t, 1, problems.Warnings())
}

func TestALongChainOfLocals(t *testing.T) {
	var b strings.Builder
	b.WriteString("locals {\n a0 = \"n\"\n")
	for i := range 5000 {
		fmt.Fprintf(&b, " a%d = local.a%d\n", i+1, i)
	}
	b.WriteString("}\norchestrator {\n name = local.a5000\n}\n")
	require.Equal(t, "n", load(t, config(t, b.String()), Options{}).Orchestrator.Name)
}

func TestManyReplicasDependOnMany(t *testing.T) {
	c := load(t, config(t, fmt.Sprintf(`
agent "a" {
  command  = ["x"]
  replicas = %d
}
agent "b" {
  command    = ["x"]
  replicas   = 1000
  depends_on = ["a"]
}`, 1000)), Options{})
	require.Len(t, c.Agents[1500].DependsOn, 1000)
}

func TestFind(t *testing.T) {
	file := write(t, "orchestrator.hcl", "", "a/b/x", "", "repo/.git/x", "", "repo/sub/x", "", "home/ann/x", "", "json/orchestrator.hcl.json", "{}")
	dir := filepath.Dir(file)
	at := func(p string) string { return filepath.Join(dir, p) }
	for name, c := range map[string]struct {
		dir, explicit string
		environ       []string
		want          string
	}{
		"here":               {dir: dir, want: file},
		"in a parent":        {dir: at("a/b"), want: file},
		"json":               {dir: at("json"), want: at("json/orchestrator.hcl.json")},
		"explicit":           {dir: at("a"), explicit: "b/other.hcl", want: at("a/b/other.hcl")},
		"explicit folder":    {dir: at("a"), explicit: "../json", want: at("json/orchestrator.hcl.json")},
		"environ":            {dir: at("a"), environ: []string{"ORC_CONFIG=/x/y.hcl"}, want: "/x/y.hcl"},
		"explicit over both": {dir: dir, explicit: "/z.hcl", environ: []string{"ORC_CONFIG=/x/y.hcl"}, want: "/z.hcl"},
	} {
		got, err := Find(c.dir, c.explicit, c.environ)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}

	var notFound *NotFound
	_, err := Find(at("repo/sub"), "", nil)
	require.ErrorAs(t, err, &notFound)
	require.Equal(t, []string{at("repo/sub"), at("repo")}, notFound.Looked)
	_, err = Find(at("home/ann"), "", []string{"HOME=" + at("home")})
	require.ErrorAs(t, err, &notFound)
	require.Equal(t, at("home"), notFound.Looked[1])
	_, err = Find(dir, "a", nil)
	require.ErrorAs(t, err, &notFound)
	require.ErrorContains(t, err, "no orchestrator.hcl in "+at("a"))
}

func TestFindFromARelativeFolder(t *testing.T) {
	file := write(t, "orchestrator.hcl", "", "sub/x", "")
	t.Chdir(filepath.Join(filepath.Dir(file), "sub"))
	here, err := os.Getwd()
	require.NoError(t, err)
	got, err := Find(".", "", nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(here), "orchestrator.hcl"), got)
}

// TestFindTrustsOnlyItsUser checks that a file that another user could have written is not used
// if it was only found. A named file is used.
//
// Rows: S-03.
func TestFindTrustsOnlyItsUser(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir, file string){
		"an open file":    func(t *testing.T, _, file string) { require.NoError(t, os.Chmod(file, 0o666)) },
		"an open folder":  func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(dir, 0o777)) },
		"a sticky folder": func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky)) },
		"a link to a file in an open folder": func(t *testing.T, dir, file string) {
			other := t.TempDir()
			require.NoError(t, os.Rename(file, filepath.Join(other, "real.hcl")))
			require.NoError(t, os.Symlink(filepath.Join(other, "real.hcl"), file))
			require.NoError(t, os.Chmod(other, 0o777))
		},
		"another user's file": func(t *testing.T, _, file string) {
			if os.Geteuid() != 0 {
				require.NotEmpty(t, writtenByOthers(stat(t, file), os.Geteuid()+1))
				require.NoError(t, os.Chmod(file, 0o666))
				return
			}
			require.NoError(t, os.Chown(file, 65534, -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "orchestrator.hcl")
			require.NoError(t, os.WriteFile(file, nil, 0o644))
			inner := filepath.Join(dir, "inner")
			require.NoError(t, os.Mkdir(inner, 0o755))
			found, err := Find(inner, "", nil)
			require.NoError(t, err)
			require.Equal(t, file, found)
			open(t, dir, file)
			_, err = Find(inner, "", nil)
			var untrusted *UntrustedError
			require.ErrorAs(t, err, &untrusted)
			require.Equal(t, file, untrusted.File)
			for _, environ := range [][]string{nil, {"ORC_CONFIG=" + file}} {
				explicit := file
				if environ != nil {
					explicit = ""
				}
				found, err = Find(inner, explicit, environ)
				require.NoError(t, err)
				require.Equal(t, file, found)
			}
		})
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}

// TestWhatIsSaidFitsIntoTheRecord checks that the limits of a line and a body cannot exceed the
// room of one fact.
func TestWhatIsSaidFitsIntoTheRecord(t *testing.T) {
	for size, problems := range map[string]int{"1KiB": 0, "28MiB": 0, "29MiB": 2, "1GiB": 2, "1023": 2} {
		_, found := Load(write(t, "orchestrator.hcl", fmt.Sprintf(`
agent "a" {
  command = ["x"]
}
protocol {
  max_line = %q
}
http {
  max_body = %q
}`, size, size)), Options{})
		require.Equal(t, problems, found.Errors(), "%s: %v", size, found)
	}
}

// TestRecord checks that the record of a team is found also while its file has mistakes.
func TestRecord(t *testing.T) {
	for name, file := range map[string]string{
		"valid":                   "orchestrator {\n  state_dir = \"there\"\n}\nstore {\n  path = \"log.db\"\n}\nagent \"a\" {\n  command = [\"x\"]\n}\n",
		"a mistake in an agent":   "orchestrator {\n  state_dir = \"there\"\n}\nstore {\n  path = \"log.db\"\n}\nagent \"a\" {\n  comand = [var.none]\n}\n",
		"half a block at the end": "orchestrator {\n  state_dir = \"there\"\n}\nstore {\n  path = \"log.db\"\n}\nagent \"a\" {\n  command = [\n",
		"a variable":              "variable \"dir\" {\n  default = \"there\"\n}\norchestrator {\n  state_dir = var.dir\n}\nstore {\n  path = \"log.db\"\n}\nnonsense {\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "orchestrator.hcl")
			require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
			stateDir, store, ok := Record(path, Options{})
			require.True(t, ok)
			require.Equal(t, filepath.Join(dir, "there"), stateDir)
			require.Equal(t, filepath.Join(dir, "there", "log.db"), store.Path)
		})
	}
	_, _, ok := Record(filepath.Join(t.TempDir(), "none.hcl"), Options{})
	require.False(t, ok)
}
