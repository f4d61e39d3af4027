package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A merge that a kill has cut off is recorded once, with its commit, before the branch is removed.
func TestMergeRecordedOnce(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, cut := range map[string]func(b *bench, commit string){
		"before it is recorded": func(*bench, string) {},
		"before its folder is removed": func(b *bench, commit string) {
			task, _ := b.Task(id)
			b.m.note(events.TaskMerged, &task, "is merged into main: "+commit)
		},
		"in the middle of its removal": func(b *bench, commit string) {
			task, _ := b.Task(id)
			b.m.note(events.TaskMerged, &task, "is merged into main: "+commit)
			b.mark("task/11111111", func(m *mark) { m.Leaving = "main" })
			b.git(b.top, "worktree", "remove", ".workspaces/11111111")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(id)
			b.change(dir, "file", "two\n")
			require.Nil(t, b.complete(id))
			b.git(b.top, "merge", "--quiet", "--no-ff", "-m", "merge", "task/11111111")
			commit := b.git(b.top, "rev-parse", "main")
			b.change(b.top, "later", "of a person\n")
			cut(b, commit)
			q := &Queue{m: b.m}
			for range 2 {
				require.NoError(t, q.mergeAll(t.Context()))
			}
			require.Equal(t, []string{"is merged into main: " + commit}, b.noted(events.TaskMerged))
			require.NoDirExists(t, dir)
			require.NotContains(t, b.git(b.top, "branch"), "task/")
			reply, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
			require.NoError(t, err)
			require.Equal(t, control.MergeReply{FormatVersion: reply.FormatVersion, Branch: "task/11111111", Into: "main", Commit: commit, Already: true}, reply)
		})
	}
}

// A merge does not wait for one into another branch.
func TestMergesOfTwoBranches(t *testing.T) {
	b := newBench(t)
	next, err := b.m.alone(t.Context(), branchIn{b.top, "main"})
	require.NoError(t, err)
	defer next()
	other, err := b.m.alone(t.Context(), branchIn{b.top, "release"})
	require.NoError(t, err)
	other()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.m.alone(gone, branchIn{b.top, "main"})
	require.ErrorIs(t, err, context.Canceled)
}

// Git locks a worktree while it adds it. A kill in between leaves an entry that git does not remove by itself.
func TestMergeAfterAnInterruptedAddition(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	dir := b.begin(id)
	b.change(dir, "file", "two\n")
	require.Nil(t, b.complete(id))
	task, _ := b.Task(id)
	at := filepath.Join(b.top, folder, "merge-"+Name("queue "+task.Workspace.Base))
	b.git(b.top, "worktree", "add", "--quiet", "--detach", "--lock", at, "main")
	require.NoError(t, os.RemoveAll(at))
	require.NoError(t, os.Mkdir(at, 0o700)) // as it is made for the next merge
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Len(t, b.noted(events.TaskMerged), 1)
}

// If the queue cannot work, waiting tasks get the reason.
func TestQueueThatCannotWork(t *testing.T) {
	b := newBench(t)
	waiting := wire.Task{ID: "a", Details: &wire.Details{Workspace: &wire.Workspace{Merge: hub.MergeWaiting}}}
	refused := wire.Task{ID: "b", Details: &wire.Details{Workspace: &wire.Workspace{Merge: hub.MergeRefused}}}
	b.unmerged = func() []wire.Task { return []wire.Task{waiting, refused} }
	(&Queue{m: b.m}).abandon(errors.New("git is gone\nand more"))
	require.Equal(t, []string{"is not merged: git is gone"}, b.noted(events.TaskUnmerged))
}

// With a queue, only commits are merged: a completion that leaves changes behind is refused.
func TestQueueWantsCommits(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	b.team.Queue = true
	b.m.Set(b.team)
	dir := b.begin(id)
	b.write(dir, "loose", "text\n")
	refused := b.complete(id)
	require.NotNil(t, refused)
	require.Contains(t, refused.Message, "1 file is not committed: loose. Commit them first")
	b.git(dir, "add", "--all")
	b.git(dir, "commit", "--quiet", "-m", "all")
	require.Nil(t, b.complete(id))
}

// Files that verify commands write and git does not ignore refuse a completion too, and stay.
func TestQueueWantsVerifiedCommits(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	b.team.Queue = true
	b.team.Agents["ann"].Verify = [][]string{{"touch", "report"}}
	b.m.Set(b.team)
	dir := b.begin(id)
	refused := b.complete(id)
	require.NotNil(t, refused)
	require.Contains(t, refused.Message, "after the verify commands, 1 file is not committed: report. Commit them first")
	require.FileExists(t, filepath.Join(dir, "report"))
	b.write(dir, ".gitignore", "report\n")
	b.git(dir, "add", "--all")
	b.git(dir, "commit", "--quiet", "-m", "all")
	require.Nil(t, b.complete(id))
}

// A lock of a killed git is free again for the next run, and a lock of the present run is not.
func TestLocksOfAnEarlierRun(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	dir := b.begin(id)
	lock := filepath.Join(b.top, ".git/worktrees/11111111/index.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	assigned := func(at time.Time) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tasks[id].AssignedAt = object.Timestamp(at)
	}
	assigned(time.Now().Add(-time.Hour))
	require.Nil(t, b.m.Enter("ann", id))
	require.FileExists(t, lock)
	assigned(time.Now().Add(time.Hour))
	require.Nil(t, b.m.Enter("ann", id))
	require.NoFileExists(t, lock)
	b.git(dir, "status")
}

// The git of a stopped agent leaves no lock, which would keep all later ones from the repository.
func TestStoppedGitLeavesNoLock(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := b.repository()
	go func() {
		for ctx.Err() == nil {
			if said, _ := os.ReadFile(filepath.Join(b.top, "said")); strings.Contains(string(said), "prepare: ok") {
				cancel()
			}
		}
	}()
	const hang = `{ printf "start\ncreate refs/heads/new $(git rev-parse HEAD)\nprepare\n"; sleep 600; } | git update-ref --stdin >said`
	_, err := r.runIn(ctx, command{argv: []string{"sh", "-c", hang}, dir: b.top})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(b.top, ".git/refs/heads/new.lock"))
}

// The completed commit is merged, whatever becomes of the branch, the folder or the marks before that.
func TestQueueMergesWhatWasCompleted(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, test := range map[string]struct {
		harm func(b *bench, dir string)
		why  string
	}{
		"moved to a commit of others": {func(b *bench, dir string) {
			b.change(b.top, "theirs", "text\n")
			b.git(dir, "reset", "--hard", "--quiet", "main")
		}, "its branch no longer contains the completed commit"},
		"moved back":     {func(b *bench, dir string) { b.git(dir, "reset", "--hard", "--quiet", "HEAD~1") }, "its branch no longer contains the completed commit"},
		"branch removed": {func(b *bench, dir string) { b.git(dir, "update-ref", "-d", "refs/heads/task/11111111") }, "its branch task/11111111 is gone"},
		"folder removed": {func(b *bench, dir string) { require.NoError(b.t, os.RemoveAll(dir)) }, "its workspace "},
		"index damaged": {func(b *bench, dir string) {
			require.NoError(b.t, os.WriteFile(filepath.Join(b.top, ".git/worktrees/11111111/index"), []byte("x"), 0o600))
		}, "git status"},
		"marked as refused": {func(b *bench, dir string) {
			b.mark("task/11111111", func(m *mark) { m.Unmerged = b.git(dir, "rev-parse", "HEAD") })
		}, "it could not be merged before"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(id)
			b.change(dir, "file", "two\n")
			require.Nil(t, b.complete(id))
			b.waits(id)
			test.harm(b, dir)
			require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
			require.Empty(t, b.noted(events.TaskMerged))
			require.Empty(t, b.noted(events.TaskUnchanged))
			require.Len(t, b.noted(events.TaskUnmerged), 1)
			require.Contains(t, b.noted(events.TaskUnmerged)[0], test.why)
			require.NotContains(t, b.git(b.top, "show", "main:file"), "two")
		})
	}
}

// A commit that is added to a branch while its batch is verified is not merged with a half of the batch.
func TestQueueMergesNothingLater(t *testing.T) {
	const second = "22222222-0000-4000-8000-000000000001"
	b := newBench(t)
	dirs := map[string]string{"a": b.begin(first), "b": b.begin(second)}
	for name, dir := range dirs {
		b.change(dir, name, "text\n")
	}
	require.Nil(t, b.complete(first))
	require.Nil(t, b.complete(second))
	b.ann.Verify = [][]string{{"sh", "-c", "git -C " + dirs["a"] + " commit --quiet --allow-empty -m later; test ! -e a -o ! -e b"}}
	b.set()
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Equal(t, "a\nfile", b.git(b.top, "ls-files"))
	require.NotContains(t, b.git(b.top, "log", "--format=%s"), "later")
	require.DirExists(t, dirs["a"])
}

// A branch is merged when its obstacle is gone, even if no other task ends.
func TestQueueTriesAgain(t *testing.T) {
	file := func(at string) [2]func(b *bench) {
		return [2]func(b *bench){
			func(b *bench) { b.write(b.top, at, "of the person\n") },
			func(b *bench) { assert.NoError(b.t, os.Remove(filepath.Join(b.top, at))) },
		}
	}
	for name, is := range map[string][2]func(b *bench){
		"a file of a person": file("mine"),
		"a git of a person":  file(".git/index.lock"),
		"a setting that stops git": {
			func(b *bench) { b.git(b.top, "config", "merge.verbosity", "loud") },
			func(b *bench) { b.git(b.top, "config", "--unset", "merge.verbosity") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(first)
			b.change(dir, "mine", "text\n")
			require.Nil(t, b.complete(first))
			is[0](b)
			ctx, stop := context.WithCancel(t.Context())
			q := &Queue{m: b.m, pause: time.Millisecond, ended: make(chan struct{}, 1)}
			q.ended <- struct{}{}
			rounds := 0
			b.merged = func() {
				if rounds++; rounds == 1 {
					is[1](b)
				} else if len(b.noted(events.TaskMerged)) > 0 {
					stop()
				}
			}
			q.work(ctx)
			require.Equal(t, "text", b.git(b.top, "show", "main:mine"))
			require.False(t, b.m.Merging())
		})
	}
}

// The errors of git are about the failure, without arguments that git always gets.
func TestErrorsOfGit(t *testing.T) {
	b := newBench(t)
	b.write(b.top, ".git/index.lock", "")
	_, err := b.repository().git(t.Context(), "reset", "--hard", "main")
	require.ErrorContains(t, err, "index.lock")
	require.NotContains(t, err.Error(), "graft")
}

// Two teams can work on one repository: their merges have folders of their own, and their changes wait for each other.
func TestTwoTeams(t *testing.T) {
	b := newBench(t)
	b.m.options.Notes = filepath.Join(t.TempDir(), "one.json")
	r, other := b.repository(), New(b.m.options)
	other.options.Notes = filepath.Join(t.TempDir(), "two.json")
	other.Set(b.team)
	require.NoError(t, b.m.apart(t.Context(), r, "main", "main", func(one string) error {
		return other.apart(t.Context(), r, "main", "main", func(two string) error {
			require.FileExists(t, filepath.Join(one, "file"))
			require.FileExists(t, filepath.Join(two, "file"))
			return nil
		})
	}))
	var teams sync.WaitGroup
	for range 2 {
		teams.Go(func() {
			team := exec.Command("sleep", "600") // with a running orchestrator
			if !assert.NoError(t, team.Start()) {
				return
			}
			defer func() {
				assert.NoError(t, team.Process.Kill())
				assert.Error(t, team.Wait())
			}()
			for range 10 {
				_, err := r.runIn(t.Context(), command{argv: []string{"sh", "-c", busy, "sh", strconv.Itoa(team.Process.Pid), "a"}, dir: b.top})
				assert.NoError(t, err)
				inside := filepath.Join(b.top, "inside")
				assert.NoError(t, os.Mkdir(inside, 0o700), "both teams make a change")
				_, err = r.git(t.Context(), "status")
				assert.NoError(t, errors.Join(err, os.Remove(inside), os.Remove(filepath.Join(b.top, ".git/orchestrator-busy"))))
			}
		})
	}
	teams.Wait()
}

// A writerFunc is a function that gets the text of the log.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// A commit that a person makes just before the branch is moved is merged with, and not put off.
func TestQueueAmidCommits(t *testing.T) {
	b := newBench(t)
	dir := b.begin(first)
	b.change(dir, "mine", "text\n")
	require.Nil(t, b.complete(first))
	require.NoError(t, b.repository().arrived("main", strings.Repeat("1", 40))) // is gone, as logged just before
	theirs := func() { b.change(b.top, "theirs", "text\n") }
	b.m.options.Log = hclog.New(&hclog.LoggerOptions{Output: writerFunc(sync.OnceFunc(theirs))})
	require.NoError(t, (&Queue{m: b.m}).mergeAll(t.Context()))
	require.Empty(t, b.noted(events.TaskUnmerged))
	require.Equal(t, "file\nmine\ntheirs", b.git(b.top, "ls-files"))
}

// The mark of a change that is empty stops no other change. If it cannot be written, the error has the reason.
func TestChangeThatIsNotMarked(t *testing.T) {
	b := newBench(t)
	mark := filepath.Join(b.top, ".git/orchestrator-busy")
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	require.NoError(t, b.m.writing(t.Context(), b.repository(), func() error { return nil }))
	require.NoFileExists(t, mark)
	require.NoError(t, os.Mkdir(mark, 0o700))
	require.ErrorContains(t, b.m.writing(t.Context(), b.repository(), func() error { return nil }), "orchestrator-busy: ")
}

// A task that is tried again begins on a fresh branch, also if names are taken and the last attempt was left elsewhere.
func TestSetAside(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, harm := range map[string]func(b *bench, dir string){
		"as it was":            func(*bench, string) {},
		"the name is taken":    func(b *bench, _ string) { b.git(b.top, "branch", "task/11111111-try1") },
		"another branch there": func(b *bench, dir string) { b.git(dir, "switch", "--quiet", "--create", "elsewhere") },
		"killed before its task was unset": func(b *bench, dir string) {
			b.git(b.top, "worktree", "move", dir, dir+"-try1")
			b.git(b.top, "branch", "-m", "task/11111111", "task/11111111-try1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(id)
			b.change(dir, "mine", "text\n")
			harm(b, dir)
			b.mu.Lock()
			b.tasks[id].Details = &wire.Details{Restarts: 1}
			b.mu.Unlock()
			require.Nil(t, b.m.Enter("ann", id))
			require.Equal(t, dir, b.tasks[id].Workspace.Path)
			require.NoFileExists(t, filepath.Join(dir, "mine"))
			require.Equal(t, "task/11111111", strings.TrimSpace(b.git(dir, "branch", "--show-current")))
			require.FileExists(t, filepath.Join(dir+"-try1", "mine"))
			require.Nil(t, b.m.Enter("ann", id))
		})
	}
}
