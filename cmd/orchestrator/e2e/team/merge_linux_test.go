package team

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// work has a task done that leaves a file on its branch.
func work(y *stage.Repo, coder *stage.Agent, file, text string) wire.Task {
	y.T.Helper()
	task := y.Begin(coder, file)
	y.Change(task.Workspace.Path, file, text)
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	return task
}

// heirOf waits for the task that is to resolve why another one was not merged.
func heirOf(y *stage.Repo, coder *stage.Agent, branch string) wire.Task {
	y.T.Helper()
	var id string
	stage.WaitFor(y.T, "a task for "+branch, func() bool {
		for _, t := range y.Tasks() {
			if t.Name == "Merge "+branch+" into main" {
				id = t.ID
			}
		}
		return id != ""
	})
	coder.Assigned(id)
	return y.Enter(coder, id)
}

// A conflict comes back as a task for the agent. Its branch has the work of the first one.
func TestConflictComesBack(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := work(y, coder, "file", "mine\n")
	y.Change("repo", "file", "theirs\n")
	refusal := y.RefusesToMerge(task.ID)
	require.Equal(t, "conflict", refusal.Details["reason"])
	heir := heirOf(y, coder, task.Workspace.Branch)
	require.Equal(t, refusal.Details["task"], heir.ID)
	require.Contains(t, refusal.Hint, "coder has the task "+wire.ShortID(heir.ID))
	require.Contains(t, heir.Description, "Both have changed:\n- file")
	require.NotEqual(t, task.Workspace.Path, heir.Workspace.Path)
	require.Equal(t, "mine\n", y.Read(filepath.Join("repo/.workspaces", filepath.Base(heir.Workspace.Path), "file")))
	require.Contains(t, y.RefusesToMerge(task.ID).Hint, "wait until it ends", "there is one such task at most")

	cmd := "git merge -q main 2>/dev/null; echo both >file; git commit -qam both"
	y.Does(heir.Workspace.Path, cmd)
	coder.Granted(nil, "complete-task", stage.Finish(&heir))
	require.Contains(t, y.RefusesToMerge(task.ID).Hint, "orchestrator task merge "+wire.ShortID(heir.ID))
	y.Ask("task", "merge", heir.ID)
	require.Equal(t, "both\n", y.Read("repo/file"))
	require.Contains(t, y.Ask("workspace", "prune"), task.Workspace.Branch)
	require.NoDirExists(t, task.Workspace.Path)
	require.Len(t, y.Events(events.TaskMerged, ""), 1)
	y.Stop()
}

// A queue merges done tasks. It leaves out branches that conflict, and branches that fail together with the rest, and
// gives them back.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, `  verify = [["sh", "-c", "test ! -e a -o ! -e b"]]`+"\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	branches := make(map[string]string)
	for _, file := range []string{"c", "a", "file", "b", "d"} {
		task := work(y, coder, file, "mine\n")
		branches[file] = task.Workspace.Branch
	}
	y.Change("repo", "file", "theirs\n")
	require.NoFileExists(t, y.Path("repo/a"))
	text, err := os.ReadFile(y.Path("orchestrator.hcl"))
	require.NoError(t, err)
	y.Write("orchestrator.hcl", string(text)+"\nmerge {\n  queue = true\n}\n")
	y.Ask("reload")
	b, file := heirOf(y, coder, branches["b"]), heirOf(y, coder, branches["file"])
	stage.WaitFor(t, "d merged", func() bool { return strings.Contains(y.Git("repo", "ls-files"), "d\n") })
	require.Equal(t, "a\nc\nd\nfile\n", y.Git("repo", "ls-files"))
	y.WaitForEvents(3, events.TaskMerged, "coder")
	y.WaitForEvents(2, events.TaskUnmerged, "coder")
	require.Contains(t, b.Description, "test ! -e a -o ! -e b: exit 1")

	y.Does(b.Workspace.Path, "git merge -q main; git rm -q a; git commit -qm 'b instead of a'")
	coder.Granted(nil, "complete-task", stage.Finish(&b))
	y.Does(file.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.Granted(nil, "complete-task", stage.Finish(&file))
	stage.WaitFor(t, "all merged", func() bool {
		return y.Git("repo", "ls-files") == "b\nc\nd\nfile\n" && y.Git("repo", "show", "main:file") == "both\n"
	})
	stage.WaitFor(t, "all removed", func() bool { return !strings.Contains(y.Git("repo", "branch"), "task/") })
	require.Empty(t, y.Git("repo", "status", "--porcelain"))
	y.Stop()
}

// A kept branch that another one contains counts as merged. This is reported once.
func TestMergeQueueKeepsAll(t *testing.T) {
	t.Parallel()
	y := stage.NewRepoOf(t, `
agent "coder" {
  command = ["scripted", "coder"]
  workspace {
    worktree = "repo"
    keep     = "all"
  }
}
merge {
  queue = true
}
`, "coder")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "clash")
	y.Change("repo", "file", "theirs\n")
	y.Change(task.Workspace.Path, "file", "mine\n")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	heir := heirOf(y, coder, task.Workspace.Branch)
	require.Contains(t, y.Ask("why", task.ID), "is not merged: ")
	y.Does(heir.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.Granted(nil, "complete-task", stage.Finish(&heir))
	y.WaitForEvents(2, events.TaskMerged, "coder")
	require.Contains(t, y.Ask("why", task.ID), "is merged into main")

	late := y.Begin(coder, "late")
	y.Write("repo/late", "of the person\n")
	y.Change(late.Workspace.Path, "late", "mine\n")
	coder.Granted(nil, "complete-task", stage.Finish(&late))
	y.WaitForEvents(2, events.TaskUnmerged, "coder")
	require.NoError(t, os.Remove(y.Path("repo/late")))
	hand := y.Begin(coder, "hand")
	y.Change("repo", "file", "theirs again\n")
	y.Change(hand.Workspace.Path, "file", "mine again\n")
	coder.Granted(nil, "complete-task", stage.Finish(&hand))
	heirOf(y, coder, hand.Workspace.Branch)
	y.Does(hand.Workspace.Path, "git merge -q main 2>/dev/null; echo all >file; git commit -qam all")
	y.Ask("task", "merge", hand.ID)

	last := work(y, coder, "last", "mine\n")
	stage.WaitFor(t, "the last one merged", func() bool { return len(mergesOf(y, &last)) > 0 })
	next := work(y, coder, "next", "mine\n")
	stage.WaitFor(t, "the next round", func() bool { return len(mergesOf(y, &next)) > 0 })
	for _, of := range []wire.Task{task, late, hand, last} {
		require.Len(t, mergesOf(y, &of), 1, of.Name)
	}
	require.Contains(t, mergesOf(y, &hand)[0], "is merged into main: ", "with the commit")
	require.Contains(t, mergesOf(y, &late)[0], "is merged into main: ")
	require.Contains(t, y.Git("repo", "branch"), task.Workspace.Branch)
	y.Stop()
}

// mergesOf returns the texts of the events about the merge of a task.
func mergesOf(y *stage.Repo, of *wire.Task) (texts []string) {
	for _, e := range y.Events(events.TaskMerged, "coder") {
		if e.Task == of.ID {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// An obstacle to one branch does not keep the rest from being merged, and is reported once. When it is gone, the branch
// is merged. A conflict task continues with another run of its agent.
func TestMergeQueueGoesOn(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "  verify = [[\"./check\"]]\n}\nmerge {\n  queue = true\n")
	y.Change("repo", "check", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(y.Path("repo/check"), 0o700))
	y.Change("repo", "check", "#!/bin/sh\nexit 0\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	y.Write("repo/late", "of the person\n")
	late := work(y, coder, "late", "mine\n")
	put := y.WaitForEvents(1, events.TaskUnmerged, "coder")
	require.Contains(t, put[0].Text, "late")
	work(y, coder, "early", "mine\n")
	stage.WaitFor(t, "early merged", func() bool { return strings.Contains(y.Git("repo", "ls-files"), "early") })
	require.Len(t, y.Events(events.TaskUnmerged, "coder"), 1)

	bad := y.Begin(coder, "bad")
	y.Git(bad.Workspace.Path, "rm", "--quiet", "check")
	y.Git(bad.Workspace.Path, "commit", "--quiet", "-m", "no check")
	coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&bad))
	y.Does(bad.Workspace.Path, "git reset -q --hard HEAD~; echo '#!/bin/sh' >check; echo 'test ! -e early' >>check; git commit -qam strict")
	y.Git(bad.Workspace.Path, "rm", "--quiet", "early")
	y.Git(bad.Workspace.Path, "commit", "--quiet", "-m", "without early")
	require.NoError(t, os.Remove(y.Path("repo/late")))
	coder.Granted(nil, "complete-task", stage.Finish(&bad))
	stage.WaitFor(t, "all merged", func() bool { return y.Git("repo", "ls-files") == "check\nfile\nlate\n" })
	stage.WaitFor(t, "all removed", func() bool { return !strings.Contains(y.Git("repo", "branch"), late.Workspace.Branch) })

	task := y.Begin(coder, "clash")
	y.Change("repo", "file", "theirs\n")
	y.Change(task.Workspace.Path, "file", "mine\n")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	heir := heirOf(y, coder, task.Workspace.Branch)
	coder.Kill()
	coder = y.Team.NextRun("coder")
	coder.Assigned(heir.ID)
	heir = y.Enter(coder, heir.ID)
	y.Does(heir.Workspace.Path, "git merge -q main 2>/dev/null; echo both >file; git commit -qam both")
	coder.Granted(nil, "complete-task", stage.Finish(&heir))
	stage.WaitFor(t, "the conflict resolved", func() bool { return y.Git("repo", "show", "main:file") == "both\n" })
	y.Stop()
}

// The queue does not merge commits that were made after the task was completed. A person can.
func TestMergeQueueTakesWhatWasCompleted(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := work(y, coder, "done", "mine\n")
	y.Change(task.Workspace.Path, "later", "mine\n")
	y.Write("orchestrator.hcl", y.Read("orchestrator.hcl")+"\nmerge {\n  queue = true\n}\n")
	y.Ask("reload")
	put := y.WaitForEvents(1, events.TaskUnmerged, "coder")
	require.Contains(t, put[0].Text, "has new commits since its completion")
	require.Equal(t, "file\n", y.Git("repo", "ls-files"))
	require.Regexp(t, `next +It is done.*\n +Its branch is not merged: its branch has new commits.* merge it: orchestrator task merge `, y.Ask("why", task.ID))
	require.Regexp(t, `(?m)^  branch +is not merged: its branch has new commits`, y.Ask("task", "show", task.ID))
	y.Ask("task", "merge", task.ID)
	require.Equal(t, "done\nfile\nlater\n", y.Git("repo", "ls-files"))
	require.Regexp(t, `Its branch is merged into main: [0-9a-f]{40}\n`, y.Ask("why", task.ID))
	require.Regexp(t, `(?m)^  branch +is merged into main: [0-9a-f]{40}$`, y.Ask("task", "show", task.ID))
	_, stderr, code := y.Call("task", "diff", task.ID)
	require.Equal(t, cli.ExitNotFound, code)
	require.Regexp(t, `(?s)the branch of the task is merged into main: [0-9a-f]{40}\n.*git show -m --first-parent [0-9a-f]{40}`, stderr)
	stdout, stderr, code := y.Call("task", "merge", task.ID)
	require.Zero(t, code)
	require.Contains(t, stderr, task.Workspace.Branch+" is already merged into main.")
	require.Equal(t, y.Git("repo", "rev-parse", "main"), stdout)
	y.Stop()
}

// The configuration of git that agents write decides neither the target of a merge, nor about other tasks.
func TestMarksOfAnAgent(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	y.Git("repo", "branch", "release")
	task, other := work(y, coder, "mine", "mine\n"), y.Begin(coder, "open")
	mark := "branch." + task.Workspace.Branch + ".orchestrator-"
	y.Git("repo", "config", mark+"base", "release")
	y.Git("repo", "config", mark+"heir", other.ID)
	y.Git("repo", "config", mark+"began", "--output=stolen")
	require.Contains(t, y.Ask("workspace", "ls"), "main")
	y.Git("repo", "branch", "leaving", "main")
	y.Git("repo", "config", "branch.leaving.orchestrator-task", other.ID)
	y.Git("repo", "config", "branch.leaving.orchestrator-leaving", "main")
	y.Ask("workspace", "prune")
	require.DirExists(t, other.Workspace.Path, "of another branch")
	y.Ask("task", "merge", task.ID)
	require.Equal(t, "file\nmine\n", y.Git("repo", "ls-tree", "--name-only", "main"))
	require.Equal(t, "file\n", y.Git("repo", "ls-tree", "--name-only", "release"))
	require.Equal(t, wire.TaskRunning, y.TaskState(other.ID), "a task that is no heir is not cancelled")
	y.Stop()
}

// Actions of a person and a verify command while a merge is verified change neither its content nor its target.
func TestMergeAmidChanges(t *testing.T) {
	t.Parallel()
	const meanwhile = "case $PWD in */merges/merge-*) git -C ../../../repo switch -q -c feature; touch bad; git add bad; git commit -q -m bad;; esac"
	y := stage.NewRepo(t, "  verify = [[\"sh\", \"-c\", \""+meanwhile+"\"]]\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := work(y, coder, "mine", "mine\n")
	_, stderr, code := y.Call("task", "merge", task.ID, "--into", task.Workspace.Branch)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "is the branch of the task itself")
	require.DirExists(t, task.Workspace.Path)

	y.Ask("task", "merge", task.ID)
	require.Equal(t, "file\nmine\n", y.Git("repo", "ls-tree", "--name-only", "main"))
	require.Equal(t, "file\n", y.Git("repo", "ls-tree", "--name-only", "feature"))
	require.Empty(t, y.Git("repo", "status", "--porcelain"))
	y.Stop()
}

// A task to resolve a conflict begins at the branch that it is about, also if the orchestrator was killed after it had
// submitted the task.
func TestOrphanedHeir(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := work(y, coder, "file", "mine\n")
	y.Change("repo", "file", "theirs\n")
	id := strings.TrimSpace(y.Ask("task", "add", "Merge "+task.Workspace.Branch+" into main", "--role", "worker", "-q"))
	coder.Assigned(id)
	require.Contains(t, y.RefusesToMerge(task.ID).Hint, wire.ShortID(id), "there is no second one")
	heir := y.Enter(coder, id)
	require.Equal(t, y.Git("repo", "rev-parse", task.Workspace.Branch), y.Git(heir.Workspace.Path, "rev-parse", "HEAD"))

	other := work(y, coder, "file", "others\n")
	y.Change("repo", "file", "again\n")
	id = strings.TrimSpace(y.Ask("task", "add", "Merge "+other.Workspace.Branch+" into main", "--role", "worker", "-q"))
	coder.Assigned(id)
	heir = y.Enter(coder, id) // before it is asked for
	require.Equal(t, y.Git("repo", "rev-parse", other.Workspace.Branch), y.Git(heir.Workspace.Path, "rev-parse", "HEAD"))
	require.Contains(t, y.RefusesToMerge(other.ID).Hint, wire.ShortID(id))
	y.Stop()
}

// A link that leads out, a repository inside the repository and a huge file are merged as git has them: no file outside
// is read or changed, and a diff that is too large is refused.
func TestMergeOfHostileFiles(t *testing.T) {
	t.Parallel()
	y := stage.NewRepo(t, "")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	y.Write("secret", "not for a diff\n")
	task := y.Begin(coder, "hostile")
	in := func(name string) string { return filepath.Join(task.Workspace.Path, name) }
	require.NoError(t, os.Symlink(y.Path("secret"), in("link")))
	require.NoError(t, os.Mkdir(in("inner"), 0o700))
	y.Git(in("inner"), "init", "--quiet")
	y.Git(in("inner"), "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "inner")
	y.Change(task.Workspace.Path, "own", "own\n")
	require.NotContains(t, y.Ask("task", "diff", task.ID), "not for a diff")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	y.Ask("task", "merge", task.ID)
	to, err := os.Readlink(y.Path("repo/link"))
	require.NoError(t, err)
	require.Equal(t, y.Path("secret"), to)
	require.Equal(t, "not for a diff\n", y.Read("secret"))
	require.Contains(t, y.Git("repo", "ls-tree", "main"), "160000 commit")

	huge := work(y, coder, "huge", strings.Repeat("0123456789abcde\n", 400_000))
	_, stderr, code := y.Call("task", "diff", huge.ID)
	require.Equal(t, cli.ExitConflict, code)
	require.Contains(t, stderr, "more than 4 MiB")
	y.Ask("task", "merge", huge.ID)
	require.FileExists(t, y.Path("repo/huge"))
	y.Stop()
}
