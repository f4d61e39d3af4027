package config

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
)

// own returns the user who runs the test. Any team may have agents of this user.
func own(t *testing.T) *user.User {
	t.Helper()
	u, err := user.LookupId(fmt.Sprint(os.Geteuid()))
	require.NoError(t, err)
	return u
}

// An agent has the variables of its user. All other variables come from the file.
func TestUserOfEnvironment(t *testing.T) {
	t.Parallel()
	u := own(t)
	c := load(t, write(t, "orchestrator.hcl", strings.ReplaceAll(`
defaults {
  user = "OWN"
}
agent "a" {
  command     = ["x"]
  inherit_env = ["PATH", "HOME", "XDG_CONFIG_HOME"]
}
agent "b" {
  command = ["x"]
  env     = { HOME = "/srv/b", LOGNAME = null }
}
agent "c" {
  command     = ["x"]
  user        = ""
  inherit_env = true
}
`, "OWN", u.Username)), Options{})
	require.Equal(t, []string{u.Username, u.Username, ""}, []string{c.Agents[0].User, c.Agents[1].User, c.Agents[2].User})
	base := []string{"PATH=/bin", "HOME=/home/ann", "USER=ann", "SSH_AUTH_SOCK=/s", "XDG_CONFIG_HOME=/home/ann/.c", "TMPDIR=/home/ann/tmp"}
	for i, want := range [][]string{
		{"PATH=/bin", "HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username},
		{"PATH=/bin", "HOME=/srv/b", "USER=" + u.Username},
		base,
	} {
		env, err := c.Environ(t.Context(), &c.Agents[i], base)
		require.NoError(t, err)
		require.Equal(t, want, env)
	}
	require.Equal(t, []string{"PATH=/bin"}, c.Inherited(&c.Agents[1], base))

	other := load(t, write(t, "orchestrator.hcl", "agent \"a\" {\n  command = [\"x\"]\n  user = \"no-such-user\"\n}\n"), Options{NoEnv: true})
	_, err := other.Environ(t.Context(), &other.Agents[0], nil)
	require.ErrorContains(t, err, `agent "a": user "no-such-user" does not exist`)
}

func TestUserMistakes(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]string{`user = "no-such-user"`: "config/unknown-user", `user = ["a"]`: "config/wrong-type"} {
		_, problems := Load(write(t, "orchestrator.hcl", inAgent(line)), Options{})
		require.Len(t, problems, 1, line)
		require.Equal(t, code, problems[0].Code, line)
		require.Equal(t, 3, problems[0].Range.Start.Line)
	}
	if os.Geteuid() == 0 {
		return // root may have agents of any user
	}
	_, problems := Load(write(t, "orchestrator.hcl", inAgent(`user = "root"`)), Options{})
	require.Len(t, problems, 1)
	require.Equal(t, "config/needs-root", problems[0].Code)
}

// Files that root uses must be out of the reach of an agent's user.
func TestReachOfUser(t *testing.T) {
	t.Parallel()
	name := own(t).Username
	file := write(t, "orchestrator.hcl", `
secret "model" { file = "model.key" }
secret "other" { command = ["./getkey", "more.env", "--flag"] }
agent "a" {
  command  = ["x"]
  user     = "`+name+`"
  env_file = ["more.env"]
  replicas = 2
  output { dir = "/var/log/team" }
}
agent "b" {
  command  = ["x"]
  env_file = ["b.env"]
  env      = { NOTES = file("notes.txt") }
}
`, "more.env", "", "b.env", "", "notes.txt", "")
	dir := filepath.Dir(file)
	at := func(name string) string { return filepath.Join(dir, name) }
	asked := make(map[string]bool)
	check := func(path string, r Rights) Problems {
		_, problems := Load(file, Options{Rights: func(user, of string) Rights {
			require.Equal(t, name, user)
			asked[of] = true
			if of == path {
				return r
			}
			return Rights{}
		}})
		return problems
	}
	require.Empty(t, check("", Rights{}))
	self, err := os.Executable()
	require.NoError(t, err)
	for _, path := range []string{self, file, at("more.env"), at("b.env"), at("notes.txt"), at("getkey"), at("model.key"), at(".orchestrator"), at(".orchestrator/events.db"), "/var/log/team"} {
		require.True(t, asked[path], path)
		problems := check(path, Rights{Read: true, Replace: true})
		require.Len(t, problems, 1)
		require.Equal(t, "config/user-may-change", problems[0].Code)
		require.Contains(t, problems[0].Detail, path)
		require.Equal(t, 6, problems[0].Range.Start.Line)
	}
	require.Len(t, asked, 11) // with the folder of logs
	for path, severity := range map[string]string{at("model.key"): SeverityError, file: SeverityWarning} {
		problems := check(path, Rights{Read: true})
		require.Len(t, problems, 1)
		require.Equal(t, "config/user-may-read", problems[0].Code)
		require.Equal(t, severity, problems[0].Severity)
	}
	require.Empty(t, check(at("more.env"), Rights{Read: true}), "the agent is given it")
}

// A change of the user restarts an agent, and its command counts as another.
func TestCompareUser(t *testing.T) {
	t.Parallel()
	name := own(t).Username
	before, after := load(t, config(t, settled+agentLike("a", "")), Options{}), load(t, config(t, settled+agentLike("a", "user = \""+name+"\"")), Options{})
	changes := Compare(before, after)
	require.Len(t, changes, 1)
	require.Equal(t, settings.ActionRestart, changes[0].Action)
	require.Equal(t, []string{"user"}, changes[0].Attributes)
	require.NotEqual(t, before.Commands()[0].Print, after.Commands()[0].Print)
}
