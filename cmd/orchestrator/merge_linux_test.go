package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// work has a task done that leaves a file on its branch.
func (y *yard) work(coder *actor, file, text string) wire.Task {
	y.t.Helper()
	task := y.begin(coder, file)
	y.change(task.Workspace.Path, file, text)
	coder.granted(nil, "complete-task", finishing(&task))
	return task
}

// heir waits for the task that is to resolve why another one was not merged.
func (y *yard) heir(coder *actor, branch string) wire.Task {
	y.t.Helper()
	var id string
	waitForThat(y.t, "a task for "+branch, func() bool {
		for _, t := range y.tasks() {
			if t.Name == "Merge "+branch+" into main" {
				id = t.ID
			}
		}
		return id != ""
	})
	coder.assigned(id)
	return y.enter(coder, id)
}

// A conflict comes back as a task for the agent, whose branch has the work of the first one.
func TestConflictComesBack(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.work(coder, "file", "mine\n")
	y.change("repo", "file", "theirs\n")
	refusal := y.refusesToMerge(task.ID)
	require.Equal(t, "conflict", refusal.Details["reason"])
	heir := y.heir(coder, task.Workspace.Branch)
	require.Equal(t, refusal.Details["task"], heir.ID)
	require.Contains(t, refusal.Hint, "coder has the task "+wire.ShortID(heir.ID))
	require.Contains(t, heir.Description, "Both have changed:\n- file")
	require.NotEqual(t, task.Workspace.Path, heir.Workspace.Path)
	require.Equal(t, "mine\n", y.read(filepath.Join("repo/.workspaces", filepath.Base(heir.Workspace.Path), "file")))
	require.Contains(t, y.refusesToMerge(task.ID).Hint, "wait until it has ended", "there is one such task at most")

	cmd := "git merge -q main 2>/dev/null; echo both >file; git commit -qam both"
	y.does(heir.Workspace.Path, cmd)
	coder.granted(nil, "complete-task", finishing(&heir))
	require.Contains(t, y.refusesToMerge(task.ID).Hint, "orchestrator task merge "+wire.ShortID(heir.ID))
	y.ask("task", "merge", heir.ID)
	require.Equal(t, "both\n", y.read("repo/file"))
	require.Contains(t, y.ask("workspace", "prune"), task.Workspace.Branch)
	require.NoDirExists(t, task.Workspace.Path)
	require.Len(t, y.events(events.TaskMerged, ""), 1)
	y.stop()
}

// A queue merges what is done. It leaves out what conflicts, and what fails together with the others, and gives it back.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	y := newYard(t, `  verify = [["sh", "-c", "test ! -e a -o ! -e b"]]`+"\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	branches := make(map[string]string)
	for _, file := range []string{"c", "a", "file", "b", "d"} {
		task := y.work(coder, file, "mine\n")
		branches[file] = task.Workspace.Branch
	}
	y.change("repo", "file", "theirs\n")
	require.NoFileExists(t, y.path("repo/a"))
	text, err := os.ReadFile(y.path("orchestrator.hcl"))
	require.NoError(t, err)
	y.write("orchestrator.hcl", string(text)+"\nmerge {\n  queue = true\n}\n")
	y.ask("reload")
	b, file := y.heir(coder, branches["b"]), y.heir(coder, branches["file"])
	waitForThat(t, "d merged", func() bool { return strings.Contains(y.git("repo", "ls-files"), "d\n") })
	require.Equal(t, "a\nc\nd\nfile\n", y.git("repo", "ls-files"))
	y.waitForEvents(3, events.TaskMerged, "coder")
	y.waitForEvents(2, events.TaskUnmerged, "coder")
	require.Contains(t, b.Description, "test ! -e a -o ! -e b: exit 1")

	y.does(b.Workspace.Path, "git merge -q main; git rm -q a; git commit -qm 'b instead of a'")
	coder.granted(nil, "complete-task", finishing(&b))
	y.does(file.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.granted(nil, "complete-task", finishing(&file))
	waitForThat(t, "all merged", func() bool {
		return y.git("repo", "ls-files") == "b\nc\nd\nfile\n" && y.git("repo", "show", "main:file") == "both\n"
	})
	waitForThat(t, "all removed", func() bool { return !strings.Contains(y.git("repo", "branch"), "task/") })
	require.Empty(t, y.git("repo", "status", "--porcelain"))
	y.stop()
}

// A branch that is kept, and that another one has brought along, counts as merged. This is said once.
func TestMergeQueueKeepsAll(t *testing.T) {
	t.Parallel()
	y := yardOf(t, `
agent "coder" {
  command = ["puppet", "coder"]
  workspace {
    worktree = "repo"
    keep     = "all"
  }
}
merge {
  queue = true
}
`, "coder")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.begin(coder, "clash")
	y.change("repo", "file", "theirs\n")
	y.change(task.Workspace.Path, "file", "mine\n")
	coder.granted(nil, "complete-task", finishing(&task))
	heir := y.heir(coder, task.Workspace.Branch)
	require.Contains(t, y.ask("why", task.ID), "is not merged: ")
	y.does(heir.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.granted(nil, "complete-task", finishing(&heir))
	y.waitForEvents(2, events.TaskMerged, "coder")
	require.Contains(t, y.ask("why", task.ID), "is merged into main")

	late := y.begin(coder, "late")
	y.write("repo/late", "of the person\n")
	y.change(late.Workspace.Path, "late", "mine\n")
	coder.granted(nil, "complete-task", finishing(&late))
	y.waitForEvents(2, events.TaskUnmerged, "coder")
	require.NoError(t, os.Remove(y.path("repo/late")))
	hand := y.begin(coder, "hand")
	y.change("repo", "file", "theirs again\n")
	y.change(hand.Workspace.Path, "file", "mine again\n")
	coder.granted(nil, "complete-task", finishing(&hand))
	y.heir(coder, hand.Workspace.Branch)
	y.does(hand.Workspace.Path, "git merge -q main 2>/dev/null; echo all >file; git commit -qam all")
	y.ask("task", "merge", hand.ID)

	last := y.work(coder, "last", "mine\n")
	waitForThat(t, "the last one merged", func() bool { return len(y.mergesOf(&last)) > 0 })
	next := y.work(coder, "next", "mine\n")
	waitForThat(t, "the next round", func() bool { return len(y.mergesOf(&next)) > 0 })
	for _, of := range []wire.Task{task, late, hand, last} {
		require.Len(t, y.mergesOf(&of), 1, of.Name)
	}
	require.Contains(t, y.mergesOf(&hand)[0], "is merged into main: ", "with the commit")
	require.Contains(t, y.mergesOf(&late)[0], "is merged into main: ")
	require.Contains(t, y.git("repo", "branch"), task.Workspace.Branch)
	y.stop()
}

// mergesOf returns what the events about the merge of a task say.
func (y *yard) mergesOf(of *wire.Task) (texts []string) {
	for _, e := range y.events(events.TaskMerged, "coder") {
		if e.Task == of.ID {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// does runs commands in a folder. What they return does not matter.
func (y *yard) does(dir, commands string) {
	y.t.Helper()
	cmd := exec.Command("sh", "-c", commands)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		y.t.Logf("%s: %v: %s", commands, err, out)
	}
}

// What is in the way of one branch does not keep the others from being merged, and is said once. When it is gone, the
// branch is merged. A conflict task goes on with another run of its agent.
func TestMergeQueueGoesOn(t *testing.T) {
	t.Parallel()
	y := newYard(t, "  verify = [[\"./check\"]]\n}\nmerge {\n  queue = true\n")
	y.change("repo", "check", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(y.path("repo/check"), 0o700))
	y.change("repo", "check", "#!/bin/sh\nexit 0\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	y.write("repo/late", "of the person\n")
	late := y.work(coder, "late", "mine\n")
	put := y.waitForEvents(1, events.TaskUnmerged, "coder")
	require.Contains(t, put[0].Text, "late")
	y.work(coder, "early", "mine\n")
	waitForThat(t, "early merged", func() bool { return strings.Contains(y.git("repo", "ls-files"), "early") })
	require.Len(t, y.events(events.TaskUnmerged, "coder"), 1)

	bad := y.begin(coder, "bad")
	y.git(bad.Workspace.Path, "rm", "--quiet", "check")
	y.git(bad.Workspace.Path, "commit", "--quiet", "-m", "no check")
	coder.refused("INVALID_REQUEST", "complete-task", finishing(&bad))
	y.does(bad.Workspace.Path, "git reset -q --hard HEAD~; echo '#!/bin/sh' >check; echo 'test ! -e early' >>check; git commit -qam strict")
	y.git(bad.Workspace.Path, "rm", "--quiet", "early")
	y.git(bad.Workspace.Path, "commit", "--quiet", "-m", "without early")
	require.NoError(t, os.Remove(y.path("repo/late")))
	coder.granted(nil, "complete-task", finishing(&bad))
	waitForThat(t, "all merged", func() bool { return y.git("repo", "ls-files") == "check\nfile\nlate\n" })
	waitForThat(t, "all removed", func() bool { return !strings.Contains(y.git("repo", "branch"), late.Workspace.Branch) })

	task := y.begin(coder, "clash")
	y.change("repo", "file", "theirs\n")
	y.change(task.Workspace.Path, "file", "mine\n")
	coder.granted(nil, "complete-task", finishing(&task))
	heir := y.heir(coder, task.Workspace.Branch)
	coder.die()
	coder = y.theatre.enter("coder")
	coder.assigned(heir.ID)
	heir = y.enter(coder, heir.ID)
	y.does(heir.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.granted(nil, "complete-task", finishing(&heir))
	waitForThat(t, "the conflict resolved", func() bool { return y.git("repo", "show", "main:file") == "both\n" })
	y.stop()
}

// The queue does not merge commits that were made after the task was completed. A person can.
func TestMergeQueueTakesWhatWasCompleted(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.work(coder, "done", "mine\n")
	y.change(task.Workspace.Path, "later", "mine\n")
	y.write("orchestrator.hcl", y.read("orchestrator.hcl")+"\nmerge {\n  queue = true\n}\n")
	y.ask("reload")
	put := y.waitForEvents(1, events.TaskUnmerged, "coder")
	require.Contains(t, put[0].Text, "has commits since it was completed")
	require.Equal(t, "file\n", y.git("repo", "ls-files"))
	require.Regexp(t, `next +It is done.*\n +Its branch is not merged: its branch has commits.* merge it: orchestrator task merge `, y.ask("why", task.ID))
	require.Regexp(t, `(?m)^  branch +is not merged: its branch has commits`, y.ask("task", "show", task.ID))
	y.ask("task", "merge", task.ID)
	require.Equal(t, "done\nfile\nlater\n", y.git("repo", "ls-files"))
	require.Regexp(t, `Its branch is merged into main: [0-9a-f]{40}\n`, y.ask("why", task.ID))
	require.Regexp(t, `(?m)^  branch +is merged into main: [0-9a-f]{40}$`, y.ask("task", "show", task.ID))
	_, stderr, code := y.call("task", "diff", task.ID)
	require.Equal(t, cli.ExitNotFound, code)
	require.Regexp(t, `(?s)the branch of the task is merged into main: [0-9a-f]{40}\n.*git show -m --first-parent [0-9a-f]{40}`, stderr)
	stdout, stderr, code := y.call("task", "merge", task.ID)
	require.Zero(t, code)
	require.Contains(t, stderr, task.Workspace.Branch+" is already merged into main.")
	require.Equal(t, y.git("repo", "rev-parse", "main"), stdout)
	y.stop()
}

// What agents write into the configuration of git decides neither where a branch is merged, nor about other tasks.
func TestMarksOfAnAgent(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	y.git("repo", "branch", "release")
	task, other := y.work(coder, "mine", "mine\n"), y.begin(coder, "open")
	mark := "branch." + task.Workspace.Branch + ".orchestrator-"
	y.git("repo", "config", mark+"base", "release")
	y.git("repo", "config", mark+"heir", other.ID)
	y.git("repo", "config", mark+"began", "--output=stolen")
	require.Contains(t, y.ask("workspace", "ls"), "main")
	y.git("repo", "branch", "leaving", "main")
	y.git("repo", "config", "branch.leaving.orchestrator-task", other.ID)
	y.git("repo", "config", "branch.leaving.orchestrator-leaving", "main")
	y.ask("workspace", "prune")
	require.DirExists(t, other.Workspace.Path, "of another branch")
	y.ask("task", "merge", task.ID)
	require.Equal(t, "file\nmine\n", y.git("repo", "ls-tree", "--name-only", "main"))
	require.Equal(t, "file\n", y.git("repo", "ls-tree", "--name-only", "release"))
	require.Equal(t, wire.TaskRunning, y.taskState(other.ID), "a task that is no heir is not cancelled")
	y.stop()
}

// What a person and a verify command do while a merge is verified changes neither what is merged nor where.
func TestMergeAmidChanges(t *testing.T) {
	t.Parallel()
	const meanwhile = "case $PWD in */merges/merge-*) git -C ../../../repo switch -q -c feature; touch bad; git add bad; git commit -q -m bad;; esac"
	y := newYard(t, "  verify = [[\"sh\", \"-c\", \""+meanwhile+"\"]]\n")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.work(coder, "mine", "mine\n")
	_, stderr, code := y.call("task", "merge", task.ID, "--into", task.Workspace.Branch)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "is the branch of the task itself")
	require.DirExists(t, task.Workspace.Path)

	y.ask("task", "merge", task.ID)
	require.Equal(t, "file\nmine\n", y.git("repo", "ls-tree", "--name-only", "main"))
	require.Equal(t, "file\n", y.git("repo", "ls-tree", "--name-only", "feature"))
	require.Empty(t, y.git("repo", "status", "--porcelain"))
	y.stop()
}

// A task to resolve a conflict begins at the branch that it is about, also if the orchestrator was killed after it had
// submitted the task.
func TestOrphanedHeir(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	task := y.work(coder, "file", "mine\n")
	y.change("repo", "file", "theirs\n")
	id := strings.TrimSpace(y.ask("task", "add", "Merge "+task.Workspace.Branch+" into main", "--role", "worker", "-q"))
	coder.assigned(id)
	require.Contains(t, y.refusesToMerge(task.ID).Hint, wire.ShortID(id), "there is no second one")
	heir := y.enter(coder, id)
	require.Equal(t, y.git("repo", "rev-parse", task.Workspace.Branch), y.git(heir.Workspace.Path, "rev-parse", "HEAD"))

	other := y.work(coder, "file", "others\n")
	y.change("repo", "file", "again\n")
	id = strings.TrimSpace(y.ask("task", "add", "Merge "+other.Workspace.Branch+" into main", "--role", "worker", "-q"))
	coder.assigned(id)
	heir = y.enter(coder, id) // before it is asked for
	require.Equal(t, y.git("repo", "rev-parse", other.Workspace.Branch), y.git(heir.Workspace.Path, "rev-parse", "HEAD"))
	require.Contains(t, y.refusesToMerge(other.ID).Hint, wire.ShortID(id))
	y.stop()
}

// A link that leads out, a repository inside the repository and a huge file are merged as git has them: nothing outside
// is read or changed, and a diff that is too large is refused.
func TestMergeOfHostileFiles(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	y.up("--json")
	coder := y.theatre.enter("coder")
	y.write("secret", "not for a diff\n")
	task := y.begin(coder, "hostile")
	in := func(name string) string { return filepath.Join(task.Workspace.Path, name) }
	require.NoError(t, os.Symlink(y.path("secret"), in("link")))
	require.NoError(t, os.Mkdir(in("inner"), 0o700))
	y.git(in("inner"), "init", "--quiet")
	y.git(in("inner"), "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "inner")
	y.change(task.Workspace.Path, "own", "own\n")
	require.NotContains(t, y.ask("task", "diff", task.ID), "not for a diff")
	coder.granted(nil, "complete-task", finishing(&task))
	y.ask("task", "merge", task.ID)
	to, err := os.Readlink(y.path("repo/link"))
	require.NoError(t, err)
	require.Equal(t, y.path("secret"), to)
	require.Equal(t, "not for a diff\n", y.read("secret"))
	require.Contains(t, y.git("repo", "ls-tree", "main"), "160000 commit")

	huge := y.work(coder, "huge", strings.Repeat("0123456789abcde\n", 400_000))
	_, stderr, code := y.call("task", "diff", huge.ID)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "more than 4 MiB")
	y.ask("task", "merge", huge.ID)
	require.FileExists(t, y.path("repo/huge"))
	y.stop()
}
