package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A yard is a theatre with a git repository, in which the agent coder works.
type yard struct{ *theatre }

func newYard(t *testing.T, more string) *yard {
	return yardOf(t, `
agent "coder" {
  command = ["puppet", "coder"]
  capabilities {
    max_concurrent_tasks = 4
  }
  workspace {
    worktree = "repo"
  }
`+more+"}\n", "coder")
}

// yardOf returns a yard with other agents.
func yardOf(t *testing.T, hcl string, names ...string) *yard {
	y := &yard{troupeOf(t, hcl, names...)}
	require.NoError(t, os.Mkdir(y.path("repo"), 0o700))
	y.git("repo", "init", "--quiet", "--initial-branch=main")
	y.git("repo", "config", "user.email", "a@example.org")
	y.git("repo", "config", "user.name", "A")
	y.change("repo", "file", "one\n")
	return y
}

// git runs git in a folder and returns what it prints.
func (y *yard) git(dir string, args ...string) string {
	y.t.Helper()
	if !filepath.IsAbs(dir) {
		dir = y.path(dir)
	}
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(y.t, err, "git %v: %s", args, out)
	return string(out)
}

// change writes a file in a folder and commits it.
func (y *yard) change(dir, name, text string) {
	y.t.Helper()
	if !filepath.IsAbs(dir) {
		dir = y.path(dir)
	}
	require.NoError(y.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	y.git(dir, "add", "--all")
	y.git(dir, "commit", "--quiet", "-m", name)
}

// begin adds a task, and returns it as its agent sees it.
func (y *yard) begin(coder *actor, name string) (task wire.Task) {
	y.t.Helper()
	id := strings.TrimSpace(y.ask("task", "add", name, "--role", "worker", "-q"))
	coder.assigned(id)
	return y.enter(coder, id)
}

// enter returns a task with its workspace.
func (y *yard) enter(coder *actor, id string) (task wire.Task) {
	y.t.Helper()
	var reply struct{ Task wire.Task }
	coder.granted(&reply, "get-task", `{"taskId":"`+id+`"}`)
	require.NotNil(y.t, reply.Task.Details)
	require.DirExists(y.t, reply.Task.Workspace.Path)
	return reply.Task
}

func finishing(task *wire.Task) string { return `{"taskId":"` + task.ID + `","result":"done"}` }

// What an agent completes is verified in the workspace of the task, and the branch is merged when it succeeds there,
// too. Nothing that is not committed or not merged is removed.
func TestVerified(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  verify = [["sh", "-c", "echo looking; test -e ok"]]`+"\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	require.Equal(t, "task/"+wire.ShortID(task.ID), task.Workspace.Branch)
	refusal := coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	require.Contains(t, refusal.Message, "not verified: sh -c echo looking; test -e ok: exit 1\nlooking")
	y.waitForEvents(1, events.TaskUnverified, "coder")
	require.Equal(t, wire.TaskRunning, y.taskState(task.ID))
	require.NoError(t, os.WriteFile(filepath.Join(task.Workspace.Path, "ok"), []byte("1\n"), 0o600))
	coder.granted(nil, "complete-task", finishing(&task))
	require.Equal(t, wire.TaskDone, y.taskState(task.ID))
	require.Contains(t, y.ask("task", "response", task.ID, "--artifact", "verification.txt"), "looking")
	require.Contains(t, y.ask("task", "diff", task.ID), "+1\n")

	_, stderr, code := y.call("task", "merge", task.ID)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "1 file is not committed")
	require.NotContains(t, y.ask("workspace", "prune"), wire.ShortID(task.ID))
	require.FileExists(t, filepath.Join(task.Workspace.Path, "ok"))
	y.change(task.Workspace.Path, "ok", "2\n")
	require.Contains(t, y.ask("workspace", "ls"), "1 commit not in main")
	y.ask("task", "merge", task.ID)
	require.Equal(t, "2\n", y.read("repo/ok"), "the checked out files follow the branch")
	require.NoDirExists(t, task.Workspace.Path)
	require.NotContains(t, y.git("repo", "branch"), "task/")
	require.Empty(t, y.git("repo", "status", "--porcelain"))
	y.stop()
}

// A task that is not verified as often as it may be waits for a person.
func TestUnverifiedAsksAPerson(t *testing.T) {
	t.Parallel()
	y := newYard(t, "  verify = [[\"test\", \"-e\", \"ok\"]]\n}\nscheduler {\n  verify_attempts = 2\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	for range 2 {
		coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
	}
	asked := y.waitForQuestions(1)[0]
	require.Contains(t, y.ask("inbox"), "was verified 2 times without success")
	require.Equal(t, wire.TaskNeedsHuman, y.taskState(task.ID))
	y.ask("inbox", "answer", asked.ID, "make the file ok")
	require.NoError(t, os.WriteFile(filepath.Join(task.Workspace.Path, "ok"), nil, 0o600))
	coder.granted(nil, "complete-task", finishing(&task))
	require.Equal(t, wire.TaskDone, y.taskState(task.ID))
	y.stop()
}

// Workspaces outlive the orchestrator and its state directory, with all that is not committed. Two tasks never
// share one. What conflicts, or is not verified when it is merged, leaves the branch as it was.
func TestWorkspacesSurvive(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  verify = [["sh", "-c", "! grep -q bad *"]]`+"\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	var tasks []wire.Task
	for _, name := range []string{"a", "b", "c", "d"} {
		tasks = append(tasks, y.begin(coder, name))
	}
	require.NotEqual(t, tasks[0].Workspace.Path, tasks[1].Workspace.Path)
	y.change(tasks[0].Workspace.Path, "file", "two\n")
	y.change(tasks[1].Workspace.Path, "file", "three\n")
	y.change(tasks[2].Workspace.Path, "other", "bad\n")
	require.NoError(t, os.WriteFile(filepath.Join(tasks[3].Workspace.Path, "loose"), []byte("kept\n"), 0o600))
	coder.granted(nil, "complete-task", finishing(&tasks[0]))

	y.signal(syscall.SIGKILL)
	<-y.ended
	y.up("--json")
	coder = y.theatre.enter("coder")
	require.Equal(t, tasks[1].Workspace, y.enterAgain(coder, tasks[1].ID), "a task that is tried again has its workspace")
	y.stop()
	require.NoError(t, os.RemoveAll(y.state()))
	y.up("--json")
	y.theatre.enter("coder")
	var list control.WorkspaceList
	require.NoError(t, json.Unmarshal([]byte(y.ask("workspace", "ls", "--json")), &list))
	require.Len(t, list.Workspaces, 4)
	y.ask("workspace", "prune")
	require.Equal(t, "kept\n", y.read(strings.TrimPrefix(filepath.Join(tasks[3].Workspace.Path, "loose"), y.dir+"/")))

	y.merges(tasks[0].ID)
	before := y.git("repo", "rev-parse", "main")
	err := y.refusesToMerge(tasks[1].ID)
	require.Equal(t, "conflict", err.Details["reason"])
	require.Equal(t, []any{"file"}, err.Details["files"])
	err = y.refusesToMerge(tasks[2].ID)
	require.Equal(t, "not_verified", err.Details["reason"])
	require.Equal(t, before, y.git("repo", "rev-parse", "main"))
	require.NotContains(t, y.git("repo", "worktree", "list"), "merge-")
	require.Empty(t, y.git("repo", "status", "--porcelain"))
	y.stop()
}

// enterAgain waits until an agent has a task again, and returns its workspace.
func (y *yard) enterAgain(coder *actor, id string) *wire.Workspace {
	y.t.Helper()
	coder.assigned(id)
	task := y.enter(coder, id)
	return task.Workspace
}

// merges merges the branch of a task whose record is gone.
func (y *yard) merges(id string) {
	y.t.Helper()
	var reply control.MergeReply
	y.operated(&reply, "merge-task", `{"taskId":"`+id+`"}`)
	require.NotEmpty(y.t, reply.Commit)
}

// refusesToMerge returns why the branch of a task is not merged.
func (y *yard) refusesToMerge(id string) *wire.Error {
	y.t.Helper()
	answer, err := y.door().Post("http://orchestrator/api/v1/operations/merge-task", "application/json", strings.NewReader(`{"taskId":"`+id+`"}`))
	require.NoError(y.t, err)
	defer answer.Body.Close()
	var refused struct{ Error wire.Error }
	require.NoError(y.t, json.NewDecoder(answer.Body).Decode(&refused))
	require.Equal(y.t, wire.CodeConflict, refused.Error.Code)
	return &refused.Error
}

// A verification ends with its agent, and with the orchestrator.
func TestVerificationIsStopped(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  verify = [["sleep", "12345"]]`+"\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	coder.say(asking("done", "complete-task", finishing(&task)) + "\n")
	y.waitForEvents(1, events.TaskVerifying, "coder")
	require.Equal(t, wire.TaskVerifying, y.taskState(task.ID))
	y.ask("agent", "restart", "coder")
	coder = y.theatre.enter("coder")
	coder.assigned(task.ID)
	coder.say(asking("done", "complete-task", finishing(&task)) + "\n")
	y.waitForEvents(2, events.TaskVerifying, "coder")
	y.stop()
	require.Empty(t, y.processes())
}

// A workspace that somebody has removed comes back with what was committed. One that cannot be made refuses the task.
func TestWorkspaceRemovedByHand(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	y.change(task.Workspace.Path, "file", "two\n")
	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	require.Contains(t, y.ask("workspace", "ls"), "folder is gone")
	y.ask("workspace", "prune")
	require.Equal(t, task.Workspace, y.enter(coder, task.ID).Workspace)
	require.FileExists(t, filepath.Join(task.Workspace.Path, "file"))
	require.Contains(t, y.ask("task", "diff", task.ID), "+two\n")

	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	coder.say(asking("before", "query-agents", "{}") + "\n" + asking("get", "get-task", `{"taskId":"`+task.ID+`"}`) + "\n" + asking("after", "query-agents", "{}") + "\n")
	require.Contains(t, string(coder.answer("get").Payload), task.Workspace.Path, "requests of one write are answered one by one")
	require.Nil(t, coder.answer("after").Error)
	require.DirExists(t, task.Workspace.Path)

	require.NoError(t, os.Rename(y.path("repo/.git"), y.path("hidden")))
	id := strings.TrimSpace(y.ask("task", "add", "second", "--role", "worker", "-q"))
	coder.assigned(id)
	refusal := coder.refused("INVALID_REQUEST", "get-task", `{"taskId":"`+id+`"}`)
	require.Contains(t, refusal.Message, "the workspace of the task cannot be made: git rev-parse")
	require.NoError(t, os.Rename(y.path("hidden"), y.path("repo/.git")))
	y.enter(coder, id)
	y.stop()
}

// What a repository sets, and odd names and contents, neither hide changes nor run anything. Looking leaves nothing
// behind, and the printed patch can be applied.
func TestDiffOfAnOddRepository(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	require.NoError(t, os.WriteFile(y.path("repo/.git/info/exclude"), []byte("*.tmp"), 0o600)) // no line end
	for _, setting := range []string{"diff.noprefix", "diff.mnemonicPrefix", "diff.suppressBlankEmpty", "diff.external"} {
		y.git("repo", "config", setting, map[bool]string{true: "true", false: "false"}[setting != "diff.external"])
	}
	y.git("repo", "config", "diff.submodule", "log")
	hook := "#!/bin/sh\ntouch " + y.path("hooked") + "\n"
	for _, name := range []string{"post-index-change", "post-checkout", "pre-commit", "post-merge"} {
		require.NoError(t, os.WriteFile(y.path("repo/.git/hooks/"+name), []byte(hook), 0o700))
	}
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	require.NoFileExists(t, y.path("hooked"))
	require.Equal(t, "*.tmp\n/.workspaces/\n", y.read("repo/.git/info/exclude"))

	in := func(name string) string { return filepath.Join(task.Workspace.Path, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("two\n"), 0o600)) // of the same size, just after the checkout
	require.Contains(t, y.ask("task", "diff", task.ID), "+two")
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
	before := y.git("repo", "count-objects", "-v")
	stat := y.ask("task", "diff", task.ID, "--stat")
	for _, name := range []string{`qu"ote`, "ta b", "new line", "foo b/bar", "-dash", "caf\u00e9", "lat in1"} {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(name)+` +\+6 +-0$`, stat)
	}
	require.Equal(t, before, y.git("repo", "count-objects", "-v"))
	require.NoError(t, os.WriteFile(y.path("change.patch"), []byte(y.ask("task", "diff", task.ID)), 0o600))
	y.git("repo", "apply", "--check", y.path("change.patch"))
	left, err := filepath.Glob(y.path("repo/.git/worktrees/*/orchestrator-diff*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, y.path("hooked"))

	require.NoError(t, os.RemoveAll(task.Workspace.Path))
	_, stderr, code := y.call("task", "diff", task.ID)
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, "the folder of the workspace is gone")
	y.stop()
}

// A task that has not ended, or whose branch has no commit, is not merged, and prune leaves what it is not sure of.
func TestMergeIsRefused(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.git("repo", "branch", "release")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task, empty := y.begin(coder, "first"), y.begin(coder, "second")
	y.change(task.Workspace.Path, "ok", "1\n")
	require.Equal(t, "open", y.refusesToMerge(task.ID).Details["reason"])
	coder.granted(nil, "complete-task", finishing(&task))
	coder.granted(nil, "complete-task", finishing(&empty))
	require.Equal(t, "nothing", y.refusesToMerge(empty.ID).Details["reason"])
	require.DirExists(t, empty.Workspace.Path)
	_, stderr, code := y.call("task", "merge", task.ID, "--into", "nowhere")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	y.git("repo", "checkout", "--quiet", "-b", "elsewhere")
	y.ask("task", "merge", task.ID, "--into", "release")
	require.NoDirExists(t, task.Workspace.Path)
	require.NotContains(t, y.git("repo", "branch"), "task/"+wire.ShortID(task.ID), "although the branch is not part of what is checked out")
	y.git("repo", "branch", "-D", "main")
	y.ask("workspace", "prune")
	require.DirExists(t, empty.Workspace.Path)
	y.stop()
}

// What is missing for workspaces and verification is told before anything starts, with its place in the file.
func TestVerifyNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ more, want string }{
		"git":     {"}\nagent \"other\" {\n  command = [\"/bin/true\"]\n  env     = { PATH = \"/gone\" }\n  workspace {\n    worktree = \"repo\"\n  }\n", "agent other: workspace: program not found: \"git\""},
		"program": {`  verify = [["gone-program", "x"]]` + "\n", `verify: there is no program "gone-program"`},
		"setup":   {"}\nagent \"other\" {\n  command = [\"true\"]\n  workspace {\n    worktree = \"repo\"\n    setup = [[\"gone-setup\"]]\n  }\n", `agent other: setup: there is no program "gone-setup"`},
		"base":    {"}\nagent \"other\" {\n  command = [\"true\"]\n  workspace {\n    worktree = \"repo\"\n    base = \"gone\"\n  }\n", "agent other: workspace: there is no commit gone to begin at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, c.more)
			_, stderr, code := y.call("up")
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Regexp(t, `orchestrator\.hcl:\d+: agent `, stderr)
			require.Contains(t, stderr, c.want)
			require.Contains(t, stderr, "Nothing was started")
		})
	}
	y := newYard(t, "")
	require.NoError(t, os.RemoveAll(y.path("repo/.git")))
	y.git("repo", "init", "--quiet", "--initial-branch=main")
	_, stderr, code := y.call("up")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "the repository has no commit to begin at")
}

// A task that is cancelled while it is verified ends the command.
func TestCancelledVerification(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  verify = [["sh", "-c", "echo $$ > ../../../pid; exec sleep 1000"]]`+"\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "first")
	id := coder.request("complete-task", finishing(&task))
	waitForThat(t, "command", func() bool { text, err := os.ReadFile(y.path("pid")); return err == nil && len(text) > 1 })
	pid, err := strconv.Atoi(strings.TrimSpace(y.read("pid")))
	require.NoError(t, err)
	y.ask("task", "cancel", task.ID)
	waitForThat(t, "end of the command", func() bool { return syscall.Kill(pid, 0) != nil })
	require.Equal(t, "response:error", coder.answer(id).Type)
	require.Equal(t, wire.TaskCancelled, y.taskState(task.ID))
	y.stop()
}

// A result that does not match the schema for its capability is refused, with the place in it.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	h := troupe(t, quick+`
agent "cook" {
  command = ["puppet", "cook"]
  capabilities {
    names = ["parse_recipe"]
    output "parse_recipe" {
      schema = "recipe.json"
    }
  }
}
`, "cook")
	h.write("recipe.json", `{"type":"object","required":["title"],"properties":{"title":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}}}`)
	h.up("--json")
	cook := h.enter("cook")
	id := strings.TrimSpace(h.ask("task", "add", "read it", "--capability", "parse_recipe", "-q"))
	cook.assigned(id)
	refusal := cook.refused("INVALID_REQUEST", "complete-task", `{"taskId":"`+id+`","result":{"title":"Soup","steps":["cut",7]}}`)
	require.Contains(t, refusal.Message, `does not match the schema of parse_recipe: /properties/steps/items: type: 7 has type "integer", want "string"`)
	cook.granted(nil, "complete-task", `{"taskId":"`+id+`","result":{"title":"Soup","steps":["cut"]}}`)
	require.Equal(t, wire.TaskDone, h.taskState(id))
	other := strings.TrimSpace(h.ask("task", "add", "other", "--role", "worker", "-q"))
	cook.assigned(other)
	cook.granted(nil, "complete-task", `{"taskId":"`+other+`","result":{"any":1}}`)

	_, stderr, code := h.call("task", "diff", id)
	require.Equal(t, 7, code)
	require.Contains(t, stderr, "the task has no workspace: cook works in "+h.dir+", and so may other agents")

	h.write("recipe.json", `{"type": 5}`)
	_, stderr, code = h.call("reload")
	require.NotZero(t, code)
	require.Contains(t, stderr, "no JSON Schema")
	h.stop()
}
