package team

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
)

// A task can have its own verify commands: from its block in the file, or from the person who submits it. An agent must
// not name commands that run as another agent. A block can have a workspace, too.
func TestVerifyOfTask(t *testing.T) {
	t.Parallel()
	y := stage.NewRepoOf(t, stage.ScriptedAgents("coder")+`
task "spec" {
  agent  = "coder"
  verify = [["test", "-e", "spec"]]
  workspace {
    worktree = "repo"
    branch   = "spec/${task.short}"
  }
}
`, "coder")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	id := y.Tasks()[0].ID
	coder.Assigned(id)
	task := y.Enter(coder, id)
	require.Equal(t, "spec/"+wire.ShortID(id), task.Workspace.Branch)
	require.Equal(t, "spec", task.Block)
	refusal := coder.Refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`","result":{"evidence":[{"command":"test -e spec","exit":0}]}}`)
	require.Contains(t, refusal.Message, "test -e spec: exit 1\nThe result says that it ended with exit 0")
	y.Change(task.Workspace.Path, "spec", "one\n")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	y.Ask("task", "merge", id)
	require.FileExists(t, y.Path("repo/spec"))

	id = strings.TrimSpace(y.Ask("task", "add", "Paginate", "--assign", "coder", "--verify", "test -e ok && echo fine", "-q"))
	coder.Assigned(id)
	require.Contains(t, y.Ask("task", "show", id), "test -e ok && echo fine")
	coder.Refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`"}`)
	mail := `{"to_actor":"GO","topic":"task.completed","payload":{"ticket_id":"` + id + `"}}`
	require.Contains(t, coder.Refused("INVALID_REQUEST", "send-message", mail).Message, "not verified", "nor by a message of the bus")
	y.Write("ok", "")
	coder.Granted(nil, "complete-task", `{"taskId":"`+id+`"}`)
	require.Contains(t, y.Ask("task", "response", id, "--artifact", "verification.txt"), "fine")
	require.Contains(t, coder.Refused("UNAUTHORIZED", "submit-task", `{"type":"task","name":"x","verify":[["rm","-r","/"]]}`).Message, "only a person")
	coder.Refused("INVALID_REQUEST", "submit-task", `{"type":"task","name":"x","verify":[[]]}`)
	y.Stop()
}

// How often a task was not verified is in the record, so that a person is asked after a restart, too.
func TestUnverifiedSurvivesARestart(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "  verify = [[\"test\", \"-e\", \"ok\"]]\n}\nscheduler {\n  verify_attempts = 2\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	y.Stop()
	y.Up("--json")
	coder = y.Team.NextRun("coder")
	y.Enter(coder, task.ID)
	coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	y.WaitForQuestions(1)
	y.Stop()
}

// A disk that is full during a checkout, simulated by a limit on file sizes, loses no work: the agent is notified, and
// has its workspace when the disk has room.
func TestWorkspaceOnAFullDisk(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  wrap = ["sh", "-c", "ulimit -f 512; exec \"$@\"", "sh"]`+"\n")
	y.Change("repo", "large", strings.Repeat("0123456789abcde\n", 1<<17))
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	id := strings.TrimSpace(y.Ask("task", "add", "first", "--role", "worker", "-q"))
	coder.Assigned(id)
	for range 2 {
		refusal := coder.Refused("INVALID_REQUEST", "get-task", `{"taskId":"`+id+`"}`)
		require.Equal(t, "no_workspace", refusal.Details["reason"])
		require.Contains(t, refusal.Message, "cannot be created: git worktree add")
	}
	text := y.Read("orchestrator.hcl")
	y.Write("orchestrator.hcl", strings.Replace(text, "ulimit -f 512; ", "", 1))
	y.Ask("reload")
	coder = y.Team.NextRun("coder")
	coder.Assigned(id)
	task := y.Enter(coder, id)
	require.Empty(t, y.Git(task.Workspace.Path, "status", "--porcelain"))
	y.Change(task.Workspace.Path, "file", "two\n")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	shown := y.Ask("workspace", "show", id)
	require.Contains(t, shown, "file  +1 -1")
	require.Contains(t, shown, "1 commit not in main")
	var doc struct{ Files []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(y.Ask("workspace", "show", id, "--json")), &doc))
	require.Equal(t, "file", doc.Files[0].Name)
	y.Ask("task", "merge", id)
	y.Stop()
}

// An agent that has switched to another branch in its workspace gets a refusal, and no branch is
// moved.
func TestWorkspaceWithAnotherBranch(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	dir, branch := task.Workspace.Path, task.Workspace.Branch
	for _, away := range [][]string{{"checkout", "--quiet", "-b", "feature"}, {"checkout", "--quiet", "--detach"}} {
		y.Git(dir, away...)
		y.Change(dir, "file", away[2]+"\n")
		refusal := coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
		require.Contains(t, refusal.Message, "checked out, and not the branch "+branch+" of the task")
		require.Equal(t, away[2]+"\n", y.Read("repo/.workspaces/"+filepath.Base(dir)+"/file"))
	}
	y.Git(dir, "checkout", "--quiet", branch)
	y.Git(dir, "merge", "--quiet", "feature")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	y.Ask("task", "merge", task.ID)
	require.Equal(t, "-b\n", y.Read("repo/file"))
	y.Stop()
}
