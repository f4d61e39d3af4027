package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A task can have verify commands of its own: of its block in the file, or of the person who submits it. An agent must
// not name commands that run as another agent. A block can have a workspace, too.
func TestVerifyOfTask(t *testing.T) {
	t.Parallel()
	y := yardOf(t, puppetAgents("coder")+`
task "spec" {
  agent  = "coder"
  verify = [["test", "-e", "spec"]]
  workspace {
    worktree = "repo"
    branch   = "spec/${task.short}"
  }
}
`, "coder")
	y.up("--json")
	coder := y.theatre.enter("coder")
	id := y.tasks()[0].ID
	coder.assigned(id)
	task := y.enter(coder, id)
	require.Equal(t, "spec/"+wire.ShortID(id), task.Workspace.Branch)
	require.Equal(t, "spec", task.Block)
	refusal := coder.refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`","result":{"evidence":[{"command":"test -e spec","exit":0}]}}`)
	require.Contains(t, refusal.Message, "test -e spec: exit 1\nThe result says that it ended with exit 0")
	y.change(task.Workspace.Path, "spec", "one\n")
	coder.granted(nil, "complete-task", finishing(&task))
	y.ask("task", "merge", id)
	require.FileExists(t, y.path("repo/spec"))

	id = strings.TrimSpace(y.ask("task", "add", "Paginate", "--assign", "coder", "--verify", "test -e ok && echo fine", "-q"))
	coder.assigned(id)
	require.Contains(t, y.ask("task", "show", id), "test -e ok && echo fine")
	coder.refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`"}`)
	mail := `{"to_actor":"GO","topic":"task.completed","payload":{"ticket_id":"` + id + `"}}`
	require.Contains(t, coder.refused("INVALID_REQUEST", "send-message", mail).Message, "not verified", "nor by a message of the bus")
	y.write("ok", "")
	coder.granted(nil, "complete-task", `{"taskId":"`+id+`"}`)
	require.Contains(t, y.ask("task", "response", id, "--artifact", "verification.txt"), "fine")
	require.Contains(t, coder.refused("UNAUTHORIZED", "submit-task", `{"type":"task","name":"x","verify":[["rm","-r","/"]]}`).Message, "only a person")
	coder.refused("INVALID_REQUEST", "submit-task", `{"type":"task","name":"x","verify":[[]]}`)
	y.stop()
}

// How often a task was not verified is in the record, so that a person is asked after a restart, too.
func TestUnverifiedSurvivesARestart(t *testing.T) {
	t.Parallel()
	y := newYard(t, "  verify = [[\"test\", \"-e\", \"ok\"]]\n}\nscheduler {\n  verify_attempts = 2\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	y.stop()
	y.up("--json")
	coder = y.theatre.enter("coder")
	y.enter(coder, task.ID)
	coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	y.waitForQuestions(1)
	y.stop()
}

// The tasks of a session can have a workspace and verify commands. What its developer says is compared with what has
// really changed, and the scope of the task holds for that.
func TestVerifyInASession(t *testing.T) {
	t.Parallel()
	y := yardOf(t, puppetAgents("ada", "dev", "rex")+checkout(`
  require_review = true
  verify = [["test", "-e", "src/ok"]]
  workspace {
    worktree = "repo"
  }
`), "ada", "dev", "rex")
	require.NoError(t, os.Mkdir(y.path("repo/src"), 0o700))
	y.change("repo", "src/a", "one\n")
	actors := y.cast("ada", "dev", "rex")
	ada, dev := actors[0], actors[1]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	dev.nth(1, session.TypeTaskAssignment)
	task := y.enter(dev, "t")
	dir := task.Workspace.Path
	y.change(dir, "src/a", "two\n")
	dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	require.Contains(t, dev.refusedFor("msg-2").message, "test -e src/ok: exit 1\nThe completion says that the tests have passed")
	y.change(dir, "src/ok", "")
	y.change(dir, "elsewhere", "")
	dev.utter("msg-3", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	u := dev.refusedFor("msg-3")
	require.Equal(t, "scope_violation", u.Reason)
	require.Contains(t, u.message, "elsewhere")
	y.git(dir, "rm", "--quiet", "elsewhere")
	y.git(dir, "commit", "--quiet", "-m", "inside")
	dev.utter("msg-4", "ada", session.TypeTaskCompletion, completing("t", "src/a", "src/b"))
	ada.nth(1, session.TypeTaskCompletion)
	said := y.proceedings("checkout").said
	notes := strings.Join(said[len(said)-1].Errors, "\n")
	require.Contains(t, notes, `that it does not name: 1, such as "src/ok"`)
	require.Contains(t, notes, `are not changed: 1, such as "src/b"`)
	require.Equal(t, wire.TaskInReview, y.taskState("t"))

	rex := actors[2]
	rex.refused("UNAUTHORIZED", "get-task", `{"taskId":"t"}`)
	ada.utter("msg-5", "rex", session.TypeReviewRequest, reviewing("r", "t", 0))
	rex.nth(1, session.TypeReviewRequest)
	var seen struct{ Task wire.Task }
	rex.granted(&seen, "get-task", `{"taskId":"t"}`)
	require.Equal(t, dir, seen.Task.Workspace.Path, "a reviewer sees what it reviews")
	rex.utter("msg-6", "ada", session.TypeReviewResult, judging("r", "t", session.VerdictApproved))
	waitForThat(t, "approval", func() bool { return y.taskState("t") == wire.TaskDone })
	require.Contains(t, y.ask("task", "diff", "t"), "+two")
	y.ask("task", "merge", "t")
	require.FileExists(t, filepath.Join(y.path("repo"), "src/ok"))
	y.stop()
}

// tasks returns all tasks.
func (y *yard) tasks() []wire.Task {
	y.t.Helper()
	var list wire.TaskList
	require.NoError(y.t, json.Unmarshal([]byte(y.ask("task", "ls", "--json")), &list))
	return list.Tasks
}

// A disk that is full during a checkout, simulated by a limit on file sizes, loses nothing: the agent is told, and has
// its workspace when there is room.
func TestWorkspaceOnAFullDisk(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  wrap = ["sh", "-c", "ulimit -f 512; exec \"$@\"", "sh"]`+"\n")
	y.change("repo", "large", strings.Repeat("0123456789abcde\n", 1<<17))
	y.up("--json")
	coder := y.theatre.enter("coder")
	id := strings.TrimSpace(y.ask("task", "add", "first", "--role", "worker", "-q"))
	coder.assigned(id)
	for range 2 {
		refusal := coder.refused("INVALID_REQUEST", "get-task", `{"taskId":"`+id+`"}`)
		require.Equal(t, "no_workspace", refusal.Details["reason"])
		require.Contains(t, refusal.Message, "cannot be made: git worktree add")
	}
	text := y.read("orchestrator.hcl")
	y.write("orchestrator.hcl", strings.Replace(text, "ulimit -f 512; ", "", 1))
	y.ask("reload")
	coder = y.theatre.enter("coder")
	coder.assigned(id)
	task := y.enter(coder, id)
	require.Empty(t, y.git(task.Workspace.Path, "status", "--porcelain"))
	y.change(task.Workspace.Path, "file", "two\n")
	coder.granted(nil, "complete-task", finishing(&task))
	shown := y.ask("workspace", "show", id)
	require.Contains(t, shown, "file  +1 -1")
	require.Contains(t, shown, "1 commit not in main")
	var doc struct{ Files []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(y.ask("workspace", "show", id, "--json")), &doc))
	require.Equal(t, "file", doc.Files[0].Name)
	y.ask("task", "merge", id)
	y.stop()
}

// An agent that has switched to another branch in its workspace is told so, and nothing is moved.
func TestWorkspaceWithAnotherBranch(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	dir, branch := task.Workspace.Path, task.Workspace.Branch
	for _, away := range [][]string{{"checkout", "--quiet", "-b", "feature"}, {"checkout", "--quiet", "--detach"}} {
		y.git(dir, away...)
		y.change(dir, "file", away[2]+"\n")
		refusal := coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
		require.Contains(t, refusal.Message, "checked out, and not the branch "+branch+" of the task")
		require.Equal(t, away[2]+"\n", y.read("repo/.workspaces/"+filepath.Base(dir)+"/file"))
	}
	y.git(dir, "checkout", "--quiet", branch)
	y.git(dir, "merge", "--quiet", "feature")
	coder.granted(nil, "complete-task", finishing(&task))
	y.ask("task", "merge", task.ID)
	require.Equal(t, "-b\n", y.read("repo/file"))
	y.stop()
}

// A planner may complete the task of another agent, which is verified as well.
func TestVerifyForAPlanner(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+`
agent "coder" {
  command = ["puppet", "coder"]
  verify  = [["test", "-e", "ok"]]
  capabilities {
    languages = ["go"]
  }
}
`+planner, "coder", "boss")
	h.open("coder", "boss")
	ann, boss := h.person(), h.program("boss")
	id := ann.create(wanting("x", "go"))
	ann.matched(id)
	boss.gets(nil, "POST /server/tasks/"+id+"/start", "")
	refused := boss.misses(http.StatusConflict, "conflict", "POST /server/tasks/"+id+"/complete", `{"result":{"a":1}}`)
	require.Contains(t, refused.Error.Message, "not verified")
	require.Equal(t, "running", ann.task(id).Status)
	h.write("ok", "")
	boss.gets(nil, "POST /server/tasks/"+id+"/complete", `{"result":{"a":1}}`)
	require.Equal(t, "done", ann.task(id).Status)
	h.stop()
}
