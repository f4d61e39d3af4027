package team

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A completion is verified in the workspace of the task, and the branch is merged when it succeeds there, too.
// Uncommitted and unmerged work is not removed.
func TestVerified(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  verify = [["sh", "-c", "echo looking; test -e ok"]]`+"\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	require.Equal(t, "task/"+wire.ShortID(task.ID), task.Workspace.Branch)
	refusal := coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	require.Contains(t, refusal.Message, "not verified: sh -c echo looking; test -e ok: exit 1\nlooking")
	y.WaitForEvents(1, events.TaskUnverified, "coder")
	require.Equal(t, wire.TaskRunning, y.TaskState(task.ID))
	require.NoError(t, os.WriteFile(filepath.Join(task.Workspace.Path, "ok"), []byte("1\n"), 0o600))
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	require.Equal(t, wire.TaskDone, y.TaskState(task.ID))
	require.Contains(t, y.Ask("task", "response", task.ID, "--artifact", "verification.txt"), "looking")
	require.Contains(t, y.Ask("task", "diff", task.ID), "+1\n")

	_, stderr, code := y.Call("task", "merge", task.ID)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "1 file is not committed")
	require.NotContains(t, y.Ask("workspace", "prune"), wire.ShortID(task.ID))
	require.FileExists(t, filepath.Join(task.Workspace.Path, "ok"))
	y.Change(task.Workspace.Path, "ok", "2\n")
	require.Contains(t, y.Ask("workspace", "ls"), "1 commit not in main")
	y.Ask("task", "merge", task.ID)
	require.Equal(t, "2\n", y.Read("repo/ok"), "the checked out files follow the branch")
	require.NoDirExists(t, task.Workspace.Path)
	require.NotContains(t, y.Git("repo", "branch"), "task/")
	require.Empty(t, y.Git("repo", "status", "--porcelain"))
	y.Stop()
}

// A task that is not verified as often as it may be waits for a person.
func TestUnverifiedAsksAPerson(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "  verify = [[\"test\", \"-e\", \"ok\"]]\n}\nscheduler {\n  verify_attempts = 2\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	for range 2 {
		coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
	}
	asked := y.WaitForQuestions(1)[0]
	require.Contains(t, y.Ask("inbox"), "was verified 2 times without success")
	require.Equal(t, wire.TaskNeedsHuman, y.TaskState(task.ID))
	y.Ask("inbox", "answer", asked.ID, "make the file ok")
	require.NoError(t, os.WriteFile(filepath.Join(task.Workspace.Path, "ok"), nil, 0o600))
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	require.Equal(t, wire.TaskDone, y.TaskState(task.ID))
	y.Stop()
}

// Workspaces outlive the orchestrator and its state directory, with all uncommitted files. Two tasks never share one.
// Work that conflicts, or is not verified when it is merged, leaves the branch as it was.
func TestWorkspacesSurvive(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  verify = [["sh", "-c", "! grep -q bad *"]]`+"\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	var tasks []wire.Task
	for _, name := range []string{"a", "b", "c", "d"} {
		tasks = append(tasks, y.Begin(coder, name))
	}
	require.NotEqual(t, tasks[0].Workspace.Path, tasks[1].Workspace.Path)
	y.Change(tasks[0].Workspace.Path, "file", "two\n")
	y.Change(tasks[1].Workspace.Path, "file", "three\n")
	y.Change(tasks[2].Workspace.Path, "other", "bad\n")
	require.NoError(t, os.WriteFile(filepath.Join(tasks[3].Workspace.Path, "loose"), []byte("kept\n"), 0o600))
	coder.Granted(nil, "complete-task", stage.Finish(&tasks[0]))

	y.Signal(syscall.SIGKILL)
	<-y.Ended
	y.Up("--json")
	coder = y.Team.NextRun("coder")
	require.Equal(t, tasks[1].Workspace, enterAgain(y, coder, tasks[1].ID), "a task that is tried again has its workspace")
	y.Stop()
	require.NoError(t, os.RemoveAll(y.State()))
	y.Up("--json")
	y.Team.NextRun("coder")
	var list control.WorkspaceList
	require.NoError(t, json.Unmarshal([]byte(y.Ask("workspace", "ls", "--json")), &list))
	require.Len(t, list.Workspaces, 4)
	y.Ask("workspace", "prune")
	require.Equal(t, "kept\n", y.Read(strings.TrimPrefix(filepath.Join(tasks[3].Workspace.Path, "loose"), y.Dir+"/")))

	merges(y, tasks[0].ID)
	before := y.Git("repo", "rev-parse", "main")
	err := y.RefusesToMerge(tasks[1].ID)
	require.Equal(t, "conflict", err.Details["reason"])
	require.Equal(t, []any{"file"}, err.Details["files"])
	err = y.RefusesToMerge(tasks[2].ID)
	require.Equal(t, "not_verified", err.Details["reason"])
	require.Equal(t, before, y.Git("repo", "rev-parse", "main"))
	require.NotContains(t, y.Git("repo", "worktree", "list"), "merge-")
	require.Empty(t, y.Git("repo", "status", "--porcelain"))
	y.Stop()
}

// enterAgain waits until an agent has a task again, and returns its workspace.
func enterAgain(y *stage.Repo, coder *stage.Agent, id string) *wire.Workspace {
	y.T.Helper()
	coder.Assigned(id)
	task := y.Enter(coder, id)
	return task.Workspace
}

// merges merges the branch of a task without a record.
func merges(y *stage.Repo, id string) {
	y.T.Helper()
	var reply control.MergeReply
	y.Operated(&reply, "merge-task", `{"taskId":"`+id+`"}`)
	require.NotEmpty(y.T, reply.Commit)
}

// A verification ends with its agent, and with the orchestrator.
func TestVerificationIsStopped(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  verify = [["sleep", "12345"]]`+"\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	coder.Say(stage.Request("done", "complete-task", stage.Finish(&task)) + "\n")
	y.WaitForEvents(1, events.TaskVerifying, "coder")
	require.Equal(t, wire.TaskVerifying, y.TaskState(task.ID))
	y.Ask("agent", "restart", "coder")
	coder = y.Team.NextRun("coder")
	coder.Assigned(task.ID)
	coder.Say(stage.Request("done", "complete-task", stage.Finish(&task)) + "\n")
	y.WaitForEvents(2, events.TaskVerifying, "coder")
	y.Stop()
	require.Empty(t, y.Processes())
}

// A removed workspace comes back with its commits. If it cannot be made, the task is refused.
func TestWorkspaceRemovedByHand(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	y.Change(task.Workspace.Path, "file", "two\n")
	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	require.Contains(t, y.Ask("workspace", "ls"), "folder missing")
	y.Ask("workspace", "prune")
	require.Equal(t, task.Workspace, y.Enter(coder, task.ID).Workspace)
	require.FileExists(t, filepath.Join(task.Workspace.Path, "file"))
	require.Contains(t, y.Ask("task", "diff", task.ID), "+two\n")

	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	coder.Say(stage.Request("before", "query-agents", "{}") + "\n" + stage.Request("get", "get-task", `{"taskId":"`+task.ID+`"}`) + "\n" + stage.Request("after", "query-agents", "{}") + "\n")
	require.Contains(t, string(coder.Answer("get").Payload), task.Workspace.Path, "requests of one write are answered one by one")
	require.Nil(t, coder.Answer("after").Error)
	require.DirExists(t, task.Workspace.Path)

	require.NoError(t, os.Rename(y.Path("repo/.git"), y.Path("hidden")))
	id := strings.TrimSpace(y.Ask("task", "add", "second", "--role", "worker", "-q"))
	coder.Assigned(id)
	refusal := coder.Refused("INVALID_REQUEST", "get-task", `{"taskId":"`+id+`"}`)
	require.Contains(t, refusal.Message, "the workspace of the task cannot be created: git rev-parse")
	require.NoError(t, os.Rename(y.Path("hidden"), y.Path("repo/.git")))
	y.Enter(coder, id)
	y.Stop()
}

// Settings of a repository, and odd names and contents, neither hide changes nor run commands. Looking leaves no file
// behind, and the printed patch can be applied.
func TestDiffOfAnOddRepository(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	require.NoError(t, os.WriteFile(y.Path("repo/.git/info/exclude"), []byte("*.tmp"), 0o600)) // no line end
	for _, setting := range []string{"diff.noprefix", "diff.mnemonicPrefix", "diff.suppressBlankEmpty", "diff.external"} {
		y.Git("repo", "config", setting, map[bool]string{true: "true", false: "false"}[setting != "diff.external"])
	}
	y.Git("repo", "config", "diff.submodule", "log")
	hook := "#!/bin/sh\ntouch " + y.Path("hooked") + "\n"
	for _, name := range []string{"post-index-change", "post-checkout", "pre-commit", "post-merge"} {
		require.NoError(t, os.WriteFile(y.Path("repo/.git/hooks/"+name), []byte(hook), 0o700))
	}
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	require.NoFileExists(t, y.Path("hooked"))
	require.Equal(t, "*.tmp\n/.workspaces/\n", y.Read("repo/.git/info/exclude"))

	in := func(name string) string { return filepath.Join(task.Workspace.Path, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("two\n"), 0o600)) // of the same size, just after the checkout
	require.Contains(t, y.Ask("task", "diff", task.ID), "+two")
	names := []string{`qu"ote`, "ta\tb", "new\nline", "foo b/bar", "-dash", "caf\u00e9", "lat in1"}
	for _, name := range names {
		require.NoError(t, os.MkdirAll(filepath.Dir(in(name)), 0o700))
		require.NoError(t, os.WriteFile(in(name), []byte("a\n\n+++ b\n--- c\ndiff --git a/x b/x\n\xe9\n"), 0o600))
	}
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	require.NoError(t, os.WriteFile(in("binary"), big, 0o600))
	before := y.Git("repo", "count-objects", "-v")
	stat := y.Ask("task", "diff", task.ID, "--stat")
	for _, name := range []string{`qu"ote`, "ta b", "new line", "foo b/bar", "-dash", "caf\u00e9", "lat in1"} {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(name)+` +\+6 +-0$`, stat)
	}
	require.Equal(t, before, y.Git("repo", "count-objects", "-v"))
	require.NoError(t, os.WriteFile(y.Path("change.patch"), []byte(y.Ask("task", "diff", task.ID)), 0o600))
	y.Git("repo", "apply", "--check", y.Path("change.patch"))
	left, err := filepath.Glob(y.Path("repo/.git/worktrees/*/orchestrator-diff*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, y.Path("hooked"))

	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	_, stderr, code := y.Call("task", "diff", task.ID)
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, "the folder of the workspace is gone")
	y.Stop()
}

// A task that has not ended, or has a branch without a commit, is not merged, and prune leaves workspaces that it is
// not sure of.
func TestMergeIsRefused(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Git("repo", "branch", "release")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task, empty := y.Begin(coder, "first"), y.Begin(coder, "second")
	y.Change(task.Workspace.Path, "ok", "1\n")
	require.Equal(t, "open", y.RefusesToMerge(task.ID).Details["reason"])
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	coder.Granted(nil, "complete-task", stage.Finish(&empty))
	require.Equal(t, "nothing", y.RefusesToMerge(empty.ID).Details["reason"])
	require.DirExists(t, empty.Workspace.Path)
	_, stderr, code := y.Call("task", "merge", task.ID, "--into", "nowhere")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	y.Git("repo", "checkout", "--quiet", "-b", "elsewhere")
	y.Ask("task", "merge", task.ID, "--into", "release")
	require.NoDirExists(t, task.Workspace.Path)
	require.NotContains(t, y.Git("repo", "branch"), "task/"+wire.ShortID(task.ID), "although the branch is not part of what is checked out")
	y.Git("repo", "branch", "-D", "main")
	y.Ask("workspace", "prune")
	require.DirExists(t, empty.Workspace.Path)
	y.Stop()
}

// Missing parts of workspaces and verification are reported before any start, with their place in the file.
func TestVerifyNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ more, want string }{
		"git":     {"}\nagent \"other\" {\n  command = [\"/bin/true\"]\n  env     = { PATH = \"/gone\" }\n  workspace {\n    worktree = \"repo\"\n  }\n", "agent other: workspace: program not found: \"git\""},
		"program": {`  verify = [["gone-program", "x"]]` + "\n", `verify: program not found: "gone-program"`},
		"setup":   {"}\nagent \"other\" {\n  command = [\"true\"]\n  workspace {\n    worktree = \"repo\"\n    setup = [[\"gone-setup\"]]\n  }\n", `agent other: setup: program not found: "gone-setup"`},
		"base":    {"}\nagent \"other\" {\n  command = [\"true\"]\n  workspace {\n    worktree = \"repo\"\n    base = \"gone\"\n  }\n", "agent other: workspace: the commit gone to begin at does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := stage.NewRepo(t, c.more)
			_, stderr, code := y.Call("up")
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Regexp(t, `orchestrator\.hcl:\d+: agent `, stderr)
			require.Contains(t, stderr, c.want)
			require.Contains(t, stderr, "Nothing was started")
		})
	}
	y := stage.NewRepo(t, "")
	require.NoError(t, os.RemoveAll(y.Path("repo/.git")))
	y.Git("repo", "init", "--quiet", "--initial-branch=main")
	_, stderr, code := y.Call("up")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "the repository has no commit to begin at")
}

// A task that is cancelled while it is verified ends the command.
func TestCancelledVerification(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  verify = [["sh", "-c", "echo $$ > ../../../pid; exec sleep 1000"]]`+"\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	id := coder.Request("complete-task", stage.Finish(&task))
	stage.WaitFor(t, "command", func() bool { text, err := os.ReadFile(y.Path("pid")); return err == nil && len(text) > 1 })
	pid, err := strconv.Atoi(strings.TrimSpace(y.Read("pid")))
	require.NoError(t, err)
	y.Ask("task", "cancel", task.ID)
	stage.WaitFor(t, "end of the command", func() bool { return syscall.Kill(pid, 0) != nil })
	require.Equal(t, "response:error", coder.Answer(id).Type)
	require.Equal(t, wire.TaskCancelled, y.TaskState(task.ID))
	y.Stop()
}

// A result that does not match the schema for its capability is refused, with the place in it.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+`
agent "cook" {
  command = ["scripted", "cook"]
  capabilities {
    names = ["parse_recipe"]
    output "parse_recipe" {
      schema = "recipe.json"
    }
  }
}
`, "cook")
	h.Write("recipe.json", `{"type":"object","required":["title"],"properties":{"title":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}}}`)
	h.Up("--json")
	cook := h.NextRun("cook")
	id := strings.TrimSpace(h.Ask("task", "add", "read it", "--capability", "parse_recipe", "-q"))
	cook.Assigned(id)
	refusal := cook.Refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`","result":{"title":"Soup","steps":["cut",7]}}`)
	require.Contains(t, refusal.Message, `does not match the schema of parse_recipe: /properties/steps/items: type: 7 has type "integer", want "string"`)
	cook.Granted(nil, "complete-task", `{"taskId":"`+id+`","result":{"title":"Soup","steps":["cut"]}}`)
	require.Equal(t, wire.TaskDone, h.TaskState(id))
	other := strings.TrimSpace(h.Ask("task", "add", "other", "--role", "worker", "-q"))
	cook.Assigned(other)
	cook.Granted(nil, "complete-task", `{"taskId":"`+other+`","result":{"any":1}}`)

	_, stderr, code := h.Call("task", "diff", id)
	require.Equal(t, 7, code)
	require.Contains(t, stderr, "the task has no workspace: cook works in "+h.Dir+", and so may other agents")

	h.Write("recipe.json", `{"type": 5}`)
	_, stderr, code = h.Call("reload")
	require.NotZero(t, code)
	require.Contains(t, stderr, "not a JSON Schema")
	h.Stop()
}
