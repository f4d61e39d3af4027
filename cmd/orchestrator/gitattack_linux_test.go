package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// attacked is a team whose first agent has a secret, and whose second one is confined and attacks it by their repository.
const attacked = `
secret "key" {
  file = "key"
}
agent "alpha" {
  command = ["puppet", "alpha"]
  role    = "first"
  env     = { MODEL_KEY = secret.key }
  verify  = [["sh", "-c", "test -z \"$MODEL_KEY\""]]
  workspace {
    worktree = "proj/repo"
  }
}
agent "zed" {
  command = ["puppet", "zed"]
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

// newAttacked returns such a team, which is up.
func newAttacked(t *testing.T) *yard {
	y := &yard{troupeOf(t, attacked, "alpha", "zed")}
	require.NoError(t, os.MkdirAll(y.path("proj/repo"), 0o700))
	y.write("key", "hidden-key")
	y.git("proj/repo", "init", "--quiet", "--initial-branch=main")
	y.git("proj/repo", "config", "user.email", "a@example.org")
	y.git("proj/repo", "config", "user.name", "A")
	y.change("proj/repo", "file", "one\n")
	y.up("--json")
	return y
}

// openQueue gives the team a merge queue.
func (y *yard) openQueue() {
	y.t.Helper()
	y.write("orchestrator.hcl", y.read("orchestrator.hcl")+"\nmerge {\n  queue = true\n}\n")
	y.ask("reload")
}

// The queue runs nothing of a repository that an agent puts in the place of its own. It says why it does not merge, and
// that the agent has done so.
func TestSwappedRepositoryAndQueue(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	zed := y.theatre.enter("zed")
	id := strings.TrimSpace(y.ask("task", "add", "attack", "--role", "second", "-q"))
	zed.assigned(id)
	task := y.enter(zed, id)
	dir := task.Workspace.Path
	y.change(dir, "mine", "mine\n")
	zed.granted(nil, "complete-task", finishing(&task))

	own := y.path("proj/own")
	y.git(".", "clone", "--quiet", "proj/repo", "proj/tree")
	require.NoError(t, os.Rename(y.path("proj/tree/.git"), own))
	y.git(own, "config", "filter.x.clean", "sh -c 'env >"+y.path("owned")+"; cat'")
	y.git(own, "symbolic-ref", "HEAD", "refs/heads/"+task.Workspace.Branch)
	require.NoError(t, os.WriteFile(filepath.Join(own, "info/attributes"), []byte("* filter=x\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+own+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o600))

	y.openQueue()
	put := y.waitForEvents(1, events.TaskUnmerged, "zed")
	require.Contains(t, put[0].Text, "does not belong to the repository any more: "+filepath.Join(dir, ".git"))
	told := y.waitForEvents(1, events.AgentRefused, "zed")
	require.Contains(t, told[0].Text, "has changed files by which git finds a repository")
	require.Contains(t, y.ask("workspace", "ls"), "does not belong to the repository any more")
	_, stderr, code := y.call("task", "diff", id)
	require.NotZero(t, code)
	require.Contains(t, stderr, "does not belong to the repository any more")
	require.NoFileExists(t, y.path("owned"))
	require.Equal(t, "file\n", y.git("proj/repo", "ls-tree", "--name-only", "main"))
	y.stop()
}

// What one agent has written runs in the verification of another one without secrets, and in a merge with what both may
// do.
func TestVerifyOfOthers(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	alpha, zed := y.theatre.enter("alpha"), y.theatre.enter("zed")
	for role, who := range map[string]*actor{"first": alpha, "second": zed} {
		id := strings.TrimSpace(y.ask("task", "add", role, "--role", role, "-q"))
		who.assigned(id)
		task := y.enter(who, id)
		y.change(task.Workspace.Path, role, role+"\n")
		who.granted(nil, "complete-task", finishing(&task))
	}
	y.openQueue()
	y.waitForEvents(1, events.TaskMerged, "alpha")
	y.waitForEvents(1, events.TaskMerged, "zed")
	require.Equal(t, "file\nfirst\nsecond\n", y.git("proj/repo", "ls-tree", "--name-only", "main"))
	require.Empty(t, y.git("proj/repo", "status", "--porcelain"))
	require.NoFileExists(t, y.path("proj/repo/seen"))
	left, err := os.ReadDir(filepath.Join(y.state(), "merges"))
	require.NoError(t, err)
	require.Empty(t, left)
	y.stop()
}

// A file that a replacement ref hides does not get into the branch that others clone.
func TestReplacedFileAndQueue(t *testing.T) {
	t.Parallel()
	y := newAttacked(t)
	zed := y.theatre.enter("zed")
	id := strings.TrimSpace(y.ask("task", "add", "attack", "--role", "second", "-q"))
	zed.assigned(id)
	task := y.enter(zed, id)
	dir := task.Workspace.Path
	y.change(dir, "evil", "EVIL\n")
	zed.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	tree := strings.TrimSpace(y.git(dir, "rev-parse", "HEAD^{tree}"))
	y.git(dir, "replace", tree, strings.TrimSpace(y.git(dir, "rev-parse", "main^{tree}")))
	y.git(dir, "reset", "--quiet", "--hard")
	refusal := zed.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	require.Contains(t, refusal.Message, "refs/replace/"+tree+" was not in the repository when the branch")
	y.ask("task", "done", id)
	y.openQueue()
	put := y.waitForEvents(1, events.TaskUnmerged, "zed")
	require.Contains(t, put[0].Text, "refs/replace/"+tree)
	y.git(".", "clone", "--quiet", "proj/repo", "public")
	require.NoFileExists(t, y.path("public/evil"))
	y.stop()
}
