package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfine(t *testing.T) {
	t.Parallel()
	file := write(t, "orchestrator.hcl", `
secret "key" { file = "~/keys/model" }
secret "other" { env = "OTHER" }
defaults {
  confine {
    hide = ["~/.ssh"]
  }
}
agent "a" {
  command = ["x"]
  dir     = "work"
}
agent "b" {
  command = ["x"]
  dir     = "work"
  confine {
    write       = ["work/b", "/cache"]
    read        = ["/usr", "."]
    hide        = []
    network     = [443, "8080"]
    best_effort = true
  }
}
agent "c" {
  command = ["x"]
  dir     = "work"
  confine { network = "none" }
}
`, "orchestrator.auto.vars.hcl", "", "more.hcl", "")
	dir := filepath.Dir(file)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "work"), 0o700))
	c := load(t, file, Options{Environ: []string{"HOME=/home/ann"}, VarFiles: []string{filepath.Join(dir, "more.hcl")}})
	at := func(name string) string { return filepath.Join(dir, name) }
	always := []string{at(".orchestrator"), at(".orchestrator/events.db")}
	keep := []string{file, at("orchestrator.auto.vars.hcl"), at("more.hcl")}
	require.Equal(t, []Confine{
		{On: true, Write: []string{at("work")}, Read: []string{"/"}, Hide: append(always, "/home/ann/.ssh", "/home/ann/keys/model"), Keep: keep},
		{On: true, Write: []string{at("work/b"), "/cache"}, Read: []string{"/usr", dir}, Hide: append(always, "/home/ann/keys/model"), Keep: keep,
			Limited: true, Ports: []int{443, 8080}, BestEffort: true},
		{On: true, Write: []string{at("work")}, Read: []string{"/"}, Hide: append(always, "/home/ann/.ssh", "/home/ann/keys/model"), Keep: keep, Limited: true},
	}, []Confine{c.Agents[0].Confined, c.Agents[1].Confined, c.Agents[2].Confined})
}

// Logs outside of the state directory are hidden from their agent, too.
func TestConfinedLogs(t *testing.T) {
	t.Parallel()
	file := write(t, "orchestrator.hcl", `
agent "a" {
  command = ["x"]
  confine { write = ["work"] }
  output { dir = "/var/log/team" }
}
agent "b" {
  command = ["x"]
  confine { write = ["work"] }
}
`)
	c := load(t, file, Options{})
	require.Contains(t, c.Agents[0].Confined.Hide, "/var/log/team")
	require.Len(t, c.Agents[1].Confined.Hide, 2, "the state directory and the record")
}

// A folder with files that its agent may not change gets a warning.
func TestConfineHoles(t *testing.T) {
	t.Parallel()
	file := write(t, "orchestrator.hcl", `
agent "a" {
  command = ["x"]
  confine {}
}
agent "b" {
  command = ["x"]
  dir     = "clone"
  confine {}
}
agent "c" {
  command = ["x"]
  dir     = "clone/inner"
  confine {}
}
`)
	dir := filepath.Dir(file)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "clone/.git/hooks"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "clone/inner"), 0o700))
	_, problems := Load(file, Options{})
	require.Len(t, problems, 2)
	for i, detail := range []string{
		`Agent "a" cannot create or remove files directly in ` + dir + ", because it may not change orchestrator.hcl.",
		`Agent "b" cannot create or remove files directly in ` + dir + "/clone, because it may not change .git/hooks.",
	} {
		require.Equal(t, "config/confine-holes", problems[i].Code)
		require.Equal(t, SeverityWarning, problems[i].Severity)
		require.Equal(t, detail, problems[i].Detail)
	}
}

// TestConfinedWorkspace checks that a confined agent needs the repository of its workspaces, also if they are named by
// a worktree of git, and the text of its warning about exceptions.
func TestConfinedWorkspace(t *testing.T) {
	t.Parallel()
	for folders, codes := range map[string][]string{
		`["linked"]`:                        {"config/confined-workspace"},
		`["repo/.git"]`:                     {"config/confined-workspace"},
		`["repo/.git", "repo/.workspaces"]`: nil,
		`["repo"]`:                          {"config/confine-holes"},
		`["link"]`:                          {"config/confine-holes"},
	} {
		file := confinedWorkspace(t, folders)
		_, problems := Load(file, Options{})
		var found []string
		for _, p := range problems {
			found = append(found, p.Code)
			require.Equal(t, SeverityWarning, p.Severity)
			if p.Code == "config/confine-holes" {
				require.Contains(t, p.Hint, "The workspaces of its tasks are not affected.")
			}
		}
		require.Equal(t, codes, found, folders)
	}
}

func confinedWorkspace(t *testing.T, folders string) string {
	file := write(t, "orchestrator.hcl", `
agent "a" {
  command = ["x"]
  dir     = "linked"
  confine {
    write = `+folders+`
  }
  workspace {
    worktree = "linked"
  }
}
`)
	dir := filepath.Dir(file)
	for _, folder := range []string{"repo/.git/hooks", "repo/.workspaces", "linked"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	require.NoError(t, os.Symlink("repo", filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "linked/.git"), []byte("gitdir: "+dir+"/repo/.git/worktrees/linked\n"), 0o600))
	return file
}

func TestConfineMistakes(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		`network = "some"`:     "config/unknown-value",
		`network = 443`:        "config/wrong-type",
		`network = [0]`:        "config/out-of-range",
		`network = ["https"]`:  "config/wrong-type",
		`write = "."`:          "config/wrong-type",
		`hide = [""]`:          "config/empty",
		`best_effort = "some"`: "config/wrong-type",
		`strict = true`:        "config/unknown-attribute",
	} {
		_, problems := Load(write(t, "orchestrator.hcl", "agent \"a\" {\n  command = [\"x\"]\n  dir = \"/usr\"\n  confine {\n    "+text+"\n  }\n}\n"), Options{})
		require.NotEmpty(t, problems, text)
		require.Equal(t, code, problems[0].Code, text)
	}
}
