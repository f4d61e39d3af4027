package check

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/fixtures/privileged"
	"orchestrator/supervisor/config"
)

// exposing judges the agents of a file in a project with a repository, a home and other agents.
func exposing(t *testing.T, text string, root bool, environ ...string) (map[string]map[string]exposureRow, map[string]exposed, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, folder := range []string{"home/.ssh", "home/.aws", "project/.git/objects", "project/.git/hooks", "project/work"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	for name, text := range map[string]string{"project/model.key": "m", "project/orchestrator.hcl": text, "project/more.env": "A=1\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	environ = append(environ, "HOME="+dir+"/home", "PATH=/usr/bin")
	c, problems := config.Load(filepath.Join(dir, "project/orchestrator.hcl"), config.Options{Environ: environ})
	require.Zero(t, problems.Errors(), "%v", problems)
	s := &surroundings{config: c, user: "ann", root: root, home: dir + "/home", environ: environ}
	rows, agents := make(map[string]map[string]exposureRow), make(map[string]exposed)
	for _, e := range s.exposeAll(nil) {
		agents[e.Agent], rows[e.Agent] = e, make(map[string]exposureRow)
		for _, r := range e.Rows {
			require.NotContains(t, rows[e.Agent], r.What)
			rows[e.Agent][r.What] = r
		}
	}
	return rows, agents, dir
}

const exposedTeam = `
secret "model" { file = "model.key" }
secret "other" { env = "OTHER_KEY" }
agent "open" {
  command  = ["cat"]
  env      = { MODEL = secret.model, SET_TOKEN = "x", NO_TOKEN = null }
  env_file = ["more.env"]
  operator = true
  inherit_env = true
  replicas = 2
}
agent "closed" {
  command     = ["cat"]
  dir         = "work"
  inherit_env = ["PATH", "GITHUB_TOKEN"]
  confine {
    hide    = ["~/.ssh"]
    read    = ["/usr"]
    network = "none"
  }
  capabilities { fixed = true }
  limits {
    memory    = "1GiB"
    processes = 10
    cpu       = 1
  }
}
agent "ports" {
  command = ["cat"]
  confine {
    hide    = ["~/.aws"]
    network = [443]
  }
  limits { memory = "1GiB" }
}
`

func TestExposure(t *testing.T) {
	t.Parallel()
	rows, agents, dir := exposing(t, exposedTeam, false, "GITHUB_TOKEN=t", "OTHER_KEY=o", "SET_TOKEN=s", "NO_TOKEN=n", "EMPTY_TOKEN=", "KEYBOARD=us", "SSH_AUTH_SOCK=/s")
	at := func(name string) []string { return []string{filepath.Join(dir, name)} }

	open := rows["open"]
	require.Equal(t, no, open["user"].Exposed)
	require.Contains(t, open["user"].Text, "ann")
	for what, names := range map[string][]string{
		"confinement": {}, "network": {}, "operator": {}, "capabilities": {}, "limits": {},
		"project": at("project"), "configuration": at("project/orchestrator.hcl"), "git hooks": {filepath.Join(dir, "project/.git/config"), filepath.Join(dir, "project/.git/hooks")},
		"state": at("project/.orchestrator"), "home": at("home/.profile"), "secret files": at("project/model.key"), "keys": {filepath.Join(dir, "home/.ssh"), filepath.Join(dir, "home/.aws")},
		"folders": {"closed", "ports"}, "secrets": {"secret.model", filepath.Join(dir, "project/more.env")},
		"environment": {"GITHUB_TOKEN", "SSH_AUTH_SOCK"},
	} {
		require.Equal(t, yes, open[what].Exposed, what)
		require.Equal(t, names, open[what].Names, what)
	}
	require.NotContains(t, open, "permission")

	closed := rows["closed"]
	for _, what := range []string{
		"user", "confinement", "configuration", "git hooks", "state", "home", "secret files", "keys", "folders", "secrets", "network", "operator", "capabilities", "limits",
	} {
		require.Equal(t, no, closed[what].Exposed, what)
		require.Empty(t, closed[what].Names, what)
	}
	require.Equal(t, exposureRow{What: "project", Exposed: partly, Text: "may change part of the project", Names: at("project/work")}, closed["project"])
	require.Equal(t, []string{"GITHUB_TOKEN"}, closed["environment"].Names)

	ports := rows["ports"]
	require.Equal(t, yes, ports["project"].Exposed)
	require.Equal(t, no, ports["configuration"].Exposed, "it is kept")
	require.Equal(t, no, ports["git hooks"].Exposed, "those of the repository at write are kept")
	require.Equal(t, partly, ports["network"].Exposed)
	require.Contains(t, ports["network"].Text, "443")
	require.Equal(t, partly, ports["limits"].Exposed)
	require.Equal(t, "has no limit on processes, cpu", ports["limits"].Text)
	require.Equal(t, exposureRow{What: "keys", Exposed: partly, Text: "may read some of your keys", Names: at("home/.ssh")}, ports["keys"])
	require.Equal(t, no, ports["state"].Exposed)

	openAgent, closedAgent, portsAgent := agents["open"], agents["closed"], agents["ports"]
	require.Equal(t, "confinement, project, configuration, git hooks, state, home, secret files, keys, folders, secrets, environment, network, operator, capabilities, limits", openAgent.summary())
	require.Equal(t, "environment, partly project", closedAgent.summary())
	require.Equal(t, "project, folders, capabilities, partly keys, network, limits", portsAgent.summary())
	require.True(t, portsAgent.has([]string{"network"}), "in part")
	require.False(t, portsAgent.has([]string{"state", "operator"}))
	require.True(t, closedAgent.has([]string{anyExposure}))
	require.Equal(t, "none", (&exposed{Rows: []exposureRow{{What: "user", Exposed: no}}}).summary())
}

// A repository below a folder that the agent may change is kept from it.
func TestExposureOfInnerRepository(t *testing.T) {
	t.Parallel()
	rows, _, _ := exposing(t, `
agent "a" {
  command = ["cat"]
  dir     = "work"
  confine { write = [".."] }
}
`, true)
	require.Equal(t, no, rows["a"]["git hooks"].Exposed)
	require.Equal(t, yes, rows["a"]["user"].Exposed)
}

func TestExposureByPermission(t *testing.T) {
	t.Parallel()
	rows, _, _ := exposing(t, `
agent "full" {
  command    = ["claude"]
  protocol   = "claude"
  permission = "full"
}
agent "auto" {
  command    = ["claude"]
  protocol   = "claude"
  permission = "auto"
}
agent "plan" {
  command    = ["codex"]
  protocol   = "codex"
  permission = "plan"
}
agent "allowed" {
  command  = ["claude"]
  protocol = "claude"
  allow    = ["Edit", "Bash"]
}
agent "narrow" {
  command  = ["claude"]
  protocol = "claude"
  allow    = ["Bash(go test:*)"]
}
agent "flag" {
  command  = ["claude", "--dangerously-skip-permissions"]
  protocol = "claude"
}
agent "text" {
  command = ["codex", "-c", "sandbox_mode=\"danger-full-access\""]
}
`, false)
	for name, is := range map[string]extent{"full": yes, "auto": partly, "plan": no, "allowed": yes, "narrow": no, "flag": yes, "text": yes} {
		require.Equal(t, is, rows[name]["permission"].Exposed, name)
	}
	require.Equal(t, no, rows["plan"]["capabilities"].Exposed, "those of a coding agent are fixed")
	require.Equal(t, []string{"--dangerously-skip-permissions"}, rows["flag"]["permission"].Names)
}

// Every line fits, whatever names there are.
func TestExposureFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("agent-with-a-long-name-", 2)
	_, agents, _ := exposing(t, `
agent "`+long+`" {
  command = ["claude"]
  protocol = "claude"
  permission = "full"
  allow = ["Bash"]
  inherit_env = true
}`, true, strings.Repeat("VERY_", 30)+"TOKEN=x")
	all := []exposed{agents[long]}
	for line := range strings.Lines(lines(all) + details(cli.New(cli.Env{Stdout: io.Discard, Dir: "/"}), all)) {
		require.LessOrEqual(t, term.Width(strings.TrimSuffix(line, "\n")), rowWidth, line)
	}
	require.Regexp(t, `^agent-with-a-long-name-…  user, confinement, project, .*…\n$`, lines(all))
}

// An agent of another user is judged with the rights of that user.
func TestExposureOfOtherUser(t *testing.T) {
	privileged.Test(t)
	rows, _, dir := exposing(t, `
secret "model" { file = "model.key" }
agent "other" {
  command = ["cat"]
  user    = "nobody"
}
agent "roots" {
  command = ["cat"]
}
`, true)
	for _, what := range []string{"user", "project", "configuration", "git hooks", "state", "home", "secret files", "keys", "folders"} {
		require.Equal(t, no, rows["other"][what].Exposed, what)
		if what != "folders" {
			require.Equal(t, yes, rows["roots"][what].Exposed, what)
		}
	}
	require.Equal(t, `runs as nobody, not as root (user = "nobody")`, rows["other"]["user"].Text)
	require.Equal(t, yes, rows["other"]["confinement"].Exposed)

	for folder := filepath.Join(dir, "project"); folder != "/tmp" && folder != "/"; folder = filepath.Dir(folder) { // open it to the user
		require.NoError(t, os.Chmod(folder, 0o755))
	}
	open := (&surroundings{config: configOf(t, filepath.Join(dir, "project/orchestrator.hcl")), root: true, home: dir + "/home"}).exposeAll([]string{"other"})[0]
	for _, r := range open.Rows {
		switch r.What {
		case "secret files", "configuration", "state", "project":
			require.Equal(t, no, r.Exposed, r.What)
		}
	}
}

func configOf(t *testing.T, file string) *config.Config {
	t.Helper()
	c, problems := config.Load(file, config.Options{})
	require.Zero(t, problems.Errors(), "%v", problems)
	return c
}
