package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

const first = "11111111-0000-4000-8000-000000000001"

// Notes of an earlier version in the configuration of git are taken over, once. Settings of people stay there.
func TestMarksOfAnEarlierVersion(t *testing.T) {
	b := newBench(t)
	commit := b.git(b.top, "rev-parse", "main")
	for key, value := range map[string]string{
		"branch.task/a.b.orchestrator-task": first, "branch.task/a.b.orchestrator-base": "main", "branch.task/a.b.orchestrator-began": commit,
		"branch.task/a.b.orchestrator-restarts": "2", "branch.task/a.b.orchestrator-leaving": "true", "branch.task/a.b.orchestrator-ready": "true",
		"branch.task/a.b.remote": "origin", "branch.old.orchestrator-earlier": first,
		"branch.odd.orchestrator-base": "--output=x", "branch.odd.orchestrator-began": "--output=x", "orchestrator.advancing": commit + " main",
	} {
		b.git(b.top, "config", key, value)
	}
	r := b.repository()
	noted, err := r.noted()
	require.NoError(t, err)
	require.Equal(t, page{Moving: &move{Branch: "main", Commit: commit}, Branches: map[string]mark{
		"task/a.b": {Task: first, Base: "main", Began: commit, Restarts: 2, Leaving: "main", Ready: true},
		"odd":      {Base: "output=x"},
	}}, noted)
	text := b.git(b.top, "config", "--local", "--list")
	require.NotContains(t, text, "orchestrator")
	require.Contains(t, text, "branch.task/a.b.remote=origin")

	b.git(b.top, "config", "branch.odd.orchestrator-task", first) // by an agent, later
	noted, err = b.repository().noted()
	require.NoError(t, err)
	require.Empty(t, noted.Branches["odd"].Task)
}

// The next orchestrator reads the file. An unreadable one stops it with a hint.
func TestMarksStay(t *testing.T) {
	b := newBench(t)
	b.m.book.path = filepath.Join(t.TempDir(), "workspaces.json")
	dir := b.begin(first)
	began := b.m.book
	b.m.book = &book{path: began.path}
	noted, err := b.repository().noted()
	require.NoError(t, err)
	require.Equal(t, *began.pages[b.top], noted)
	require.Equal(t, first, noted.Branches["task/11111111"].Task)

	left, err := os.ReadDir(filepath.Dir(began.path))
	require.NoError(t, err)
	require.Len(t, left, 1)
	for _, text := range []string{`{"`, `{"` + b.top + `":{"branches":{"task/11111111":5}}}`} {
		require.NoError(t, os.WriteFile(began.path, []byte(text), 0o600))
		b.m.book = &book{path: began.path}
		for range 2 {
			_, err = b.m.repository(t.Context(), b.ann)
			require.ErrorContains(t, err, "move it away")
		}
	}
	require.NoError(t, os.Remove(began.path))
	require.DirExists(t, dir)
}

// After a copy of the record was put in the place of another one, its file of notes may be missing. The record has enough.
func TestMarksAreMadeAgain(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	require.Nil(t, b.complete(first))
	b.waits(first)
	b.m.book = new(book)
	_, err := b.m.Diff(t.Context(), control.DiffRequest{TaskID: first})
	require.NoError(t, err)
	b.m.book = new(book)
	b.unmerged = func() []wire.Task {
		task, _ := b.Task(first)
		return []wire.Task{task}
	}
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Len(t, b.noted(events.TaskMerged), 1)
	require.Equal(t, "text", b.git(b.top, "show", "main:mine"))
	require.Empty(t, b.m.book.pages[b.top].Branches)
}

// The branch of an agent on a host is where it came back, and not at the path on the host.
func TestMarksOfAHostAreMadeAgain(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	require.Nil(t, b.complete(first))
	task, _ := b.Task(first)
	w := *task.Workspace
	w.Merge, w.Host, w.Path = hub.MergeWaiting, "far", "/far/repo/.workspaces/11111111"
	b.mu.Lock()
	b.tasks[first].Details = &wire.Details{Workspace: &w}
	b.mu.Unlock()
	b.m.book = new(book)
	b.unmerged = func() []wire.Task {
		task, _ := b.Task(first)
		return []wire.Task{task}
	}
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Empty(t, b.noted(events.TaskUnmerged))
	require.Len(t, b.noted(events.TaskMerged), 1)
}

// Without its notes and its record, a workspace keeps its base.
func TestWorkspaceIsFoundAgain(t *testing.T) {
	b := newBench(t)
	b.begin(first)
	task, _ := b.Task(first)
	b.m.book = new(book)
	again := b.begin(first)
	found, _ := b.Task(first)
	require.Equal(t, task.Workspace, found.Workspace)
	require.DirExists(t, again)
}

// Worktrees outlive the record and the notes. One is found by the name of its folder.
func TestStrandedWorktree(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	b.git(b.top, "worktree", "add", "--quiet", "-b", "of/a-person", ".workspaces/other")
	b.m.book = new(book)
	delete(b.tasks, first)
	list, err := b.m.List(t.Context(), struct{}{})
	require.NoError(t, err)
	require.Equal(t, []control.WorkspaceView{{TaskID: "11111111", Path: dir, Branch: "task/11111111", Base: "main", Ahead: 1, Moved: true}}, list.Workspaces)
	_, err = b.m.Merge(t.Context(), control.MergeRequest{TaskID: first})
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	require.DirExists(t, filepath.Join(b.top, ".workspaces/other"))
}

// A branch that somebody has removed with its worktree is forgotten.
func TestRemovedBranchIsForgotten(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.git(b.top, "worktree", "remove", dir)
	b.git(b.top, "branch", "-D", "task/11111111")
	_, err := b.m.Prune(t.Context(), struct{}{})
	require.NoError(t, err)
	require.Empty(t, b.m.book.pages[b.top].Branches)
}

// A removal that was interrupted is ended, unless a file was written to the folder since then.
func TestInterruptedRemoval(t *testing.T) {
	for name, harm := range map[string]func(b *bench, dir string){
		"half": func(b *bench, dir string) {
			require.NoError(b.t, os.Remove(filepath.Join(dir, ".git")))
			require.NoError(b.t, os.Remove(filepath.Join(dir, "file")))
		},
		"written": func(b *bench, dir string) {
			require.NoError(b.t, os.Remove(filepath.Join(dir, ".git")))
			b.write(dir, "late", "kept\n")
		},
		"branch left": func(b *bench, dir string) { b.git(b.top, "worktree", "remove", dir) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(first)
			b.change(dir, "own", "text\n")
			require.Nil(t, b.complete(first))
			b.git(b.top, "merge", "--quiet", "task/11111111")
			b.mark("task/11111111", func(m *mark) { m.Leaving = "main" })
			harm(b, dir)
			_, err := b.m.Prune(t.Context(), struct{}{})
			require.NoError(t, err)
			if name == "written" {
				require.FileExists(t, filepath.Join(dir, "late"))
				return
			}
			require.NoDirExists(t, dir)
			require.NotContains(t, b.git(b.top, "branch"), "task/")
			require.Empty(t, b.m.book.pages[b.top].Branches)
		})
	}
}

// A worktree is made again if git was killed before it had noted which branch is checked out there.
func TestInterruptedAddition(t *testing.T) {
	b := newBench(t)
	began := b.git(b.top, "rev-parse", "main")
	b.mark("task/11111111", func(m *mark) { *m = mark{Task: first, Base: "main", Began: began, Making: true} })
	b.git(b.top, "worktree", "add", "--quiet", "-b", "task/11111111", ".workspaces/11111111")
	b.write(b.top, ".git/worktrees/11111111/HEAD", strings.Repeat("0", 40)+"\n")
	b.write(b.top, ".git/worktrees/11111111/locked", "initializing\n")
	dir := b.begin(first)
	require.Equal(t, "task/11111111", b.git(dir, "branch", "--show-current"))
	require.Empty(t, b.git(dir, "status", "--porcelain"))
	require.False(t, b.m.book.pages[b.top].Branches["task/11111111"].Making)
}

// A merge continues after a kill in the middle of the files. A partly written file is written again.
func TestMergeKilledHalfway(t *testing.T) {
	b := newBench(t)
	b.change(b.top, "gone", "old\n")
	dir := b.begin(first)
	for name, text := range map[string]string{"whole": "whole\n", "part": "part of it\n", "file": "two, and longer\n", "odd [name]": "odd\n"} {
		b.change(dir, name, text)
	}
	b.git(dir, "rm", "--quiet", "gone")
	b.git(dir, "commit", "--quiet", "-m", "gone")
	require.Nil(t, b.complete(first))
	b.halfway("task/11111111")
	for name, text := range map[string]string{"whole": "whole\n", "part": "part o", "file": "two,", "odd [name]": "odd\n", ".git/index.lock": "", "other": "of the person\n"} {
		b.write(b.top, name, text)
	}
	require.NoError(t, os.Remove(filepath.Join(b.top, "gone")))
	_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: first})
	require.NoError(t, err)
	require.Equal(t, "part of it\n", b.read("part"))
	require.Equal(t, "two, and longer\n", b.read("file"))
	require.Equal(t, "file\nodd [name]\npart\nwhole", b.git(b.top, "ls-files"))
	require.Equal(t, "?? other", b.git(b.top, "status", "--porcelain"))
	require.NoDirExists(t, dir)
}

// If a person has worked on since a kill in the middle of a merge, their files stay unchanged.
func TestMergeKilledHalfwayThenAPerson(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "file", "two, and longer\nthree\n")
	require.Nil(t, b.complete(first))
	b.halfway("task/11111111")
	b.change(b.top, "mine", "of the person\n")
	b.write(b.top, "file", "two,")
	merge := func() error {
		_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: first})
		return err
	}
	require.True(t, hasReason("in_the_way", merge()))
	require.Equal(t, "two,", b.read("file"))
	b.git(b.top, "checkout", "--quiet", "file")
	b.write(b.top, ".git/refs/heads/main.lock", "")
	b.git(b.top, "checkout", "--quiet", "--detach")
	require.ErrorContains(t, merge(), "main.lock", "of a git that was killed: it is not tried for ever")
	require.NoError(t, os.Remove(filepath.Join(b.top, ".git/refs/heads/main.lock")))
	require.NoError(t, merge())
}

// halfway merges a branch elsewhere, and notes that main is being moved there.
func (b *bench) halfway(branch string) {
	b.t.Helper()
	apart := filepath.Join(b.t.TempDir(), "apart")
	b.git(b.top, "worktree", "add", "--quiet", "--detach", apart, "main")
	b.git(apart, "merge", "--quiet", "--no-ff", "-m", "Merge", branch)
	require.NoError(b.t, b.repository().moving(&move{Branch: "main", Commit: b.git(apart, "rev-parse", "HEAD")}))
}

// read returns the text of a file of a person.
func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.top, name))
	require.NoError(b.t, err)
	return string(text)
}

// A branch that has lost merged commits into it is reported at the next merge.
func TestLostMergeIsReported(t *testing.T) {
	b := newBench(t)
	var log strings.Builder
	b.m.options.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
	for i, id := range []string{first, "22222222-0000-4000-8000-000000000001", "33333333-0000-4000-8000-000000000001"} {
		b.change(b.begin(id), "mine"+id, "text\n")
		require.Nil(t, b.complete(id))
		_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
		require.NoError(t, err)
		require.Equal(t, i == 2, strings.Contains(log.String(), "has lost merged commits"), log.String())
		if b.change(b.top, "of-a-person"+id, "text\n"); i == 1 {
			b.git(b.top, "reset", "--hard", "--quiet", "HEAD~2")
		}
	}
}

// A task that is to merge the branch that another one needs begins there, also if it is given out after a kill, before
// the branch was made.
func TestAwaitedTask(t *testing.T) {
	b := newBench(t)
	into := b.git(b.top, "rev-parse", "main")
	b.change(b.top, "later", "text\n")
	const name = "Merge task/x for 22222222"
	require.NoError(t, b.repository().await(name, &mark{Base: "main", Began: into, Onto: b.git(b.top, "rev-parse", "main")}))
	b.tasks[first] = &wire.Task{ID: first, Name: name, State: wire.TaskRunning, AssignedTo: "ann", SubmittedBy: "operator"}
	require.Nil(t, b.m.Enter("ann", first))
	require.Equal(t, into, b.git(b.tasks[first].Workspace.Path, "rev-parse", "HEAD"))
	noted, err := b.repository().noted()
	require.NoError(t, err)
	require.Empty(t, noted.Awaited)
	require.NotEmpty(t, noted.Branches["task/11111111"].Onto)
}

// A task does not begin without the work that it needs, if git has removed that.
func TestNeededCommitIsGone(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	require.Nil(t, b.complete(first))
	const second = "22222222-0000-4000-8000-000000000001"
	b.mu.Lock()
	b.tasks[first].Workspace.Commit = strings.Repeat("1", 40)
	b.tasks[second] = &wire.Task{ID: second, State: wire.TaskRunning, AssignedTo: "ann", Links: []wire.Link{{On: first}}}
	b.mu.Unlock()
	refused := b.m.Enter("ann", second)
	require.NotNil(t, refused)
	require.Contains(t, refused.Message, "is gone from the repository")
	require.Contains(t, b.asked, "on task/11111111, is gone")
}

// An earlier attempt in this repository is not merged, when the task was done in another one.
func TestEarlierAttemptElsewhere(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	require.Nil(t, b.complete(first))
	b.mu.Lock()
	b.tasks[first].Details = &wire.Details{Restarts: 1, Workspace: &wire.Workspace{
		Path: "/elsewhere/.workspaces/11111111", Branch: "task/11111111", Base: "main", Commit: strings.Repeat("1", 40), Merge: hub.MergeDone,
	}}
	b.mu.Unlock()
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Empty(t, b.noted(events.TaskUnmerged))
	require.Empty(t, b.noted(events.TaskMerged))
	require.DirExists(t, dir)
	_, err := b.m.Diff(t.Context(), control.DiffRequest{TaskID: first})
	require.ErrorContains(t, err, "no workspace")
}
