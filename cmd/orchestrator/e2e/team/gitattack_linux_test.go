package team

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// attacked is a team with an agent that has a secret, and a confined one that attacks it by their repository.
const attacked = `
secret "key" {
  file = "key"
}
agent "alpha" {
  command = ["scripted", "alpha"]
  role    = "first"
  env     = { MODEL_KEY = secret.key }
  verify  = [["sh", "-c", "test -z \"$MODEL_KEY\""]]
  workspace {
    worktree = "proj/repo"
  }
}
agent "zed" {
  command = ["scripted", "zed"]
  role    = "second"
  verify  = [["sh", "-c", "! touch ../../seen 2>/dev/null && ! test -e evil && test -z \"$MODEL_KEY\""]]
  confine {
    write   = ["proj"]
    network = "none"
  }
  workspace {
    worktree = "proj/repo"
  }
}
`

// newAttacked returns such a team, running.
func newAttacked(t *testing.T) *stage.Repo {
	y := &stage.Repo{Team: stage.NewQuickTeam(t, attacked, "alpha", "zed")}
	require.NoError(t, os.MkdirAll(y.Path("proj/repo"), 0o700))
	y.Write("key", "hidden-key")
	y.Git("proj/repo", "init", "--quiet", "--initial-branch=main")
	y.Git("proj/repo", "config", "user.email", "a@example.org")
	y.Git("proj/repo", "config", "user.name", "A")
	y.Change("proj/repo", "file", "one\n")
	y.Up("--json")
	return y
}

// openQueue gives the team a merge queue.
func openQueue(y *stage.Repo) {
	y.T.Helper()
	y.Write("orchestrator.hcl", y.Read("orchestrator.hcl")+"\nmerge {\n  queue = true\n}\n")
	y.Ask("reload")
}

// The queue runs no command of a repository that an agent puts in the place of the right one. It reports the reason for
// the missing merge, and that the agent has caused it.
func TestSwappedRepositoryAndQueue(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	zed := y.Team.NextRun("zed")
	id := strings.TrimSpace(y.Ask("task", "add", "attack", "--role", "second", "-q"))
	zed.Assigned(id)
	task := y.Enter(zed, id)
	dir := task.Workspace.Path
	y.Change(dir, "mine", "mine\n")
	zed.Granted(nil, "complete-task", stage.Finish(&task))

	own := y.Path("proj/own")
	y.Git(".", "clone", "--quiet", "proj/repo", "proj/tree")
	require.NoError(t, os.Rename(y.Path("proj/tree/.git"), own))
	y.Git(own, "config", "filter.x.clean", "sh -c 'env >"+y.Path("owned")+"; cat'")
	y.Git(own, "symbolic-ref", "HEAD", "refs/heads/"+task.Workspace.Branch)
	require.NoError(t, os.WriteFile(filepath.Join(own, "info/attributes"), []byte("* filter=x\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+own+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o600))

	openQueue(y)
	put := y.WaitForEvents(1, events.TaskUnmerged, "zed")
	require.Contains(t, put[0].Text, "no longer belongs to the repository: "+filepath.Join(dir, ".git"))
	told := y.WaitForEvents(1, events.AgentRefused, "zed")
	require.Contains(t, told[0].Text, "has changed files that git uses to find a repository")
	require.Contains(t, y.Ask("workspace", "ls"), "no longer belongs to the repository")
	_, stderr, code := y.Call("task", "diff", id)
	require.NotZero(t, code)
	require.Contains(t, stderr, "no longer belongs to the repository")
	require.NoFileExists(t, y.Path("owned"))
	require.Equal(t, "file\n", y.Git("proj/repo", "ls-tree", "--name-only", "main"))
	y.Stop()
}

// Code written by one agent runs in the verification of another one without secrets, and in a merge with the common
// rights of both.
func TestVerifyOfOthers(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	alpha, zed := y.Team.NextRun("alpha"), y.Team.NextRun("zed")
	for role, who := range map[string]*stage.Agent{"first": alpha, "second": zed} {
		id := strings.TrimSpace(y.Ask("task", "add", role, "--role", role, "-q"))
		who.Assigned(id)
		task := y.Enter(who, id)
		y.Change(task.Workspace.Path, role, role+"\n")
		who.Granted(nil, "complete-task", stage.Finish(&task))
	}
	openQueue(y)
	y.WaitForEvents(1, events.TaskMerged, "alpha")
	y.WaitForEvents(1, events.TaskMerged, "zed")
	require.Equal(t, "file\nfirst\nsecond\n", y.Git("proj/repo", "ls-tree", "--name-only", "main"))
	require.Empty(t, y.Git("proj/repo", "status", "--porcelain"))
	require.NoFileExists(t, y.Path("proj/repo/seen"))
	left, err := os.ReadDir(filepath.Join(y.State(), "merges"))
	require.NoError(t, err)
	require.Empty(t, left)
	y.Stop()
}

// A file that a replacement ref hides does not get into the branch that clones get.
func TestReplacedFileAndQueue(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	zed := y.Team.NextRun("zed")
	id := strings.TrimSpace(y.Ask("task", "add", "attack", "--role", "second", "-q"))
	zed.Assigned(id)
	task := y.Enter(zed, id)
	dir := task.Workspace.Path
	y.Change(dir, "evil", "EVIL\n")
	zed.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	tree := strings.TrimSpace(y.Git(dir, "rev-parse", "HEAD^{tree}"))
	y.Git(dir, "replace", tree, strings.TrimSpace(y.Git(dir, "rev-parse", "main^{tree}")))
	y.Git(dir, "reset", "--quiet", "--hard")
	refusal := zed.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	require.Contains(t, refusal.Message, "refs/replace/"+tree+" was not in the repository when the branch")
	y.Ask("task", "done", id)
	openQueue(y)
	put := y.WaitForEvents(1, events.TaskUnmerged, "zed")
	require.Contains(t, put[0].Text, "refs/replace/"+tree)
	y.Git(".", "clone", "--quiet", "proj/repo", "public")
	require.NoFileExists(t, y.Path("public/evil"))
	y.Stop()
}
