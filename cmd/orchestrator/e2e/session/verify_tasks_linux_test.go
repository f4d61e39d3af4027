package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// The tasks of a session can have a workspace and verify commands. The claims of its developer are compared with the
// real changes, and the scope of the task applies to these.
func TestVerifyInASession(t *testing.T) {
	t.Parallel()
	y := stage.NewRepoOf(t, stage.ScriptedAgents("ada", "dev", "rex")+checkout(`
  require_review = true
  verify = [["test", "-e", "src/ok"]]
  workspace {
    worktree = "repo"
  }
`), "ada", "dev", "rex")
	require.NoError(t, os.Mkdir(y.Path("repo/src"), 0o700))
	y.Change("repo", "src/a", "one\n")
	actors := y.StartAll("ada", "dev", "rex")
	ada, dev := actors[0], actors[1]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	nth(dev, 1, session.TypeTaskAssignment)
	task := y.Enter(dev, "t")
	dir := task.Workspace.Path
	y.Change(dir, "src/a", "two\n")
	utter(dev, "msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	require.Contains(t, refusedFor(dev, "msg-2").message, "test -e src/ok: exit 1\nThe completion says that the tests have passed")
	y.Change(dir, "src/ok", "")
	y.Change(dir, "elsewhere", "")
	utter(dev, "msg-3", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	u := refusedFor(dev, "msg-3")
	require.Equal(t, "scope_violation", u.Reason)
	require.Contains(t, u.message, "elsewhere")
	y.Git(dir, "rm", "--quiet", "elsewhere")
	y.Git(dir, "commit", "--quiet", "-m", "inside")
	utter(dev, "msg-4", "ada", session.TypeTaskCompletion, completing("t", "src/a", "src/b"))
	nth(ada, 1, session.TypeTaskCompletion)
	said := proceedingsOf(y.Team.Orchestrator, "checkout").said
	notes := strings.Join(said[len(said)-1].Errors, "\n")
	require.Contains(t, notes, `that it does not name: 1, for example "src/ok"`)
	require.Contains(t, notes, `did not change: 1, for example "src/b"`)
	require.Equal(t, wire.TaskInReview, y.TaskState("t"))

	rex := actors[2]
	rex.Refused("UNAUTHORIZED", "get-task", `{"taskId":"t"}`)
	utter(ada, "msg-5", "rex", session.TypeReviewRequest, reviewing("r", "t", 0))
	nth(rex, 1, session.TypeReviewRequest)
	var seen struct{ Task wire.Task }
	rex.Granted(&seen, "get-task", `{"taskId":"t"}`)
	require.Equal(t, dir, seen.Task.Workspace.Path, "a reviewer sees what it reviews")
	utter(rex, "msg-6", "ada", session.TypeReviewResult, judging("r", "t", session.VerdictApproved))
	stage.WaitFor(t, "approval", func() bool { return y.TaskState("t") == wire.TaskDone })
	require.Contains(t, y.Ask("task", "diff", "t"), "+two")
	y.Ask("task", "merge", "t")
	require.FileExists(t, filepath.Join(y.Path("repo"), "src/ok"))
	y.Stop()
}
