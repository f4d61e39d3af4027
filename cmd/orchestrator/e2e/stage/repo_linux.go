package stage

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// A Repo is a team with a git repository, in which the agent coder works.
type Repo struct{ *Team }

func NewRepo(t *testing.T, more string) *Repo {
	return NewRepoOf(t, `
agent "coder" {
  command = ["scripted", "coder"]
  capabilities {
    max_concurrent_tasks = 4
  }
  workspace {
    worktree = "repo"
  }
`+more+"}\n", "coder")
}

// NewRepoOf returns a yard with other agents.
func NewRepoOf(t *testing.T, hcl string, names ...string) *Repo {
	y := &Repo{NewQuickTeam(t, hcl, names...)}
	require.NoError(t, os.Mkdir(y.Path("repo"), 0o700))
	y.Git("repo", "init", "--quiet", "--initial-branch=main")
	y.Git("repo", "config", "user.email", "a@example.org")
	y.Git("repo", "config", "user.name", "A")
	y.Change("repo", "file", "one\n")
	return y
}

// Git runs git in a folder and returns what it prints.
func (y *Repo) Git(dir string, args ...string) string {
	y.T.Helper()
	if !filepath.IsAbs(dir) {
		dir = y.Path(dir)
	}
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(y.T, err, "git %v: %s", args, out)
	return string(out)
}

// Change writes a file in a folder and commits it.
func (y *Repo) Change(dir, name, text string) {
	y.T.Helper()
	if !filepath.IsAbs(dir) {
		dir = y.Path(dir)
	}
	require.NoError(y.T, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	y.Git(dir, "add", "--all")
	y.Git(dir, "commit", "--quiet", "-m", name)
}

// Begin adds a task, and returns it as its agent sees it.
func (y *Repo) Begin(coder *Agent, name string) (task wire.Task) {
	y.T.Helper()
	id := strings.TrimSpace(y.Ask("task", "add", name, "--role", "worker", "-q"))
	coder.Assigned(id)
	return y.Enter(coder, id)
}

// Enter returns a task with its workspace.
func (y *Repo) Enter(coder *Agent, id string) (task wire.Task) {
	y.T.Helper()
	var reply struct{ Task wire.Task }
	coder.Granted(&reply, "get-task", `{"taskId":"`+id+`"}`)
	require.NotNil(y.T, reply.Task.Details)
	require.DirExists(y.T, reply.Task.Workspace.Path)
	return reply.Task
}

func Finish(task *wire.Task) string { return `{"taskId":"` + task.ID + `","result":"done"}` }

// RefusesToMerge returns why the branch of a task is not merged.
func (y *Repo) RefusesToMerge(id string) *wire.Error {
	y.T.Helper()
	answer, err := y.Door().Post("http://orchestrator/api/v1/operations/merge-task", "application/json", strings.NewReader(`{"taskId":"`+id+`"}`))
	require.NoError(y.T, err)
	defer answer.Body.Close()
	var refused struct{ Error wire.Error }
	require.NoError(y.T, json.NewDecoder(answer.Body).Decode(&refused))
	require.Equal(y.T, wire.CodeConflict, refused.Error.Code)
	return &refused.Error
}

// Does runs commands in a folder. What they return does not matter.
func (y *Repo) Does(dir, commands string) {
	y.T.Helper()
	cmd := exec.Command("sh", "-c", commands)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		y.T.Logf("%s: %v: %s", commands, err, out)
	}
}

// Tasks returns all tasks.
func (y *Repo) Tasks() []wire.Task {
	y.T.Helper()
	var list wire.TaskList
	require.NoError(y.T, json.Unmarshal([]byte(y.Ask("task", "ls", "--json")), &list))
	return list.Tasks
}
