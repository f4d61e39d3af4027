package workspace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A merge that a kill has cut off is recorded once, with its commit, before the branch is removed.
func TestMergeRecordedOnce(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, cut := range map[string]func(b *bench, commit string){
		"before it is recorded": func(*bench, string) {},
		"before its folder is removed": func(b *bench, commit string) {
			task, _ := b.task(id)
			b.m.note(events.TaskMerged, &task, "is merged into main: "+commit)
		},
		"in the middle of its removal": func(b *bench, commit string) {
			task, _ := b.task(id)
			b.m.note(events.TaskMerged, &task, "is merged into main: "+commit)
			b.git(b.top, "config", "branch.task/11111111.orchestrator-leaving", "main")
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
