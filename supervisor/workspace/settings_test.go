package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
)

// Git of the orchestrator executes no program that the repository names: no filter, driver, hook or monitor.
func TestForeignPrograms(t *testing.T) {
	b := newBench(t)
	owned := filepath.Join(filepath.Dir(b.top), "owned")
	evil := "echo $0 >>" + owned + "; cat"
	b.change(b.top, ".gitattributes", "* filter=x diff=x merge=x\n*.p filter=p\n")
	dir := b.begin("11111111-0000-4000-8000-000000000001")
	b.change(dir, "file", "two\n")
	b.change(b.top, "other", "three\n")
	for _, key := range []string{
		"filter.x.clean", "filter.x.smudge", "filter.p.process", "diff.x.textconv", "diff.x.command", "diff.external", "merge.x.driver", "core.fsmonitor", "core.pager", "core.editor", "gpg.program",
		"filter.a=b.clean",
	} {
		b.git(b.top, "config", key, "sh -c '"+evil+"'")
	}
	b.git(b.top, "config", "filter.x.required", "true")
	b.git(b.top, "config", "commit.gpgSign", "true")
	require.NoError(t, os.MkdirAll(filepath.Join(b.top, ".git/hooks"), 0o700))
	for _, hook := range []string{"post-checkout", "pre-merge-commit", "post-merge", "reference-transaction", "post-index-change"} {
		b.write(b.top, ".git/hooks/"+hook, "#!/bin/sh\n"+evil+"\n")
		require.NoError(t, os.Chmod(filepath.Join(b.top, ".git/hooks", hook), 0o700))
	}
	b.write(dir, "new", "new\n")
	diff, err := b.m.Diff(t.Context(), control.DiffRequest{TaskID: "11111111-0000-4000-8000-000000000001"})
	require.NoError(t, err)
	require.Contains(t, diff.Patch, "+new")
	_, err = b.m.List(t.Context(), struct{}{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "new")))
	require.Nil(t, b.complete("11111111-0000-4000-8000-000000000001"))
	reply, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: "11111111-0000-4000-8000-000000000001"})
	require.NoError(t, err)
	require.True(t, reply.Removed)
	b.begin("22222222-0000-4000-8000-000000000001")
	require.NoFileExists(t, owned)
}

// A worktree with files that name another repository is refused, and no program of that repository
// runs.
func TestSwappedGit(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, swap := range map[string]func(b *bench, dir, own string){
		"file": func(b *bench, dir, own string) { b.write(dir, ".git", "gitdir: "+own+"\n") },
		"common": func(b *bench, dir, own string) {
			b.write(b.top, ".git/worktrees/11111111/commondir", own+"\n")
		},
		"link": func(b *bench, dir, own string) {
			away := filepath.Join(filepath.Dir(b.top), "away")
			require.NoError(b.t, os.Rename(dir, away))
			require.NoError(b.t, os.Symlink(away, dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := b.begin(id)
			b.change(dir, "file", "two\n")
			require.Nil(t, b.complete(id))
			own, owned := filepath.Join(filepath.Dir(b.top), "own"), filepath.Join(filepath.Dir(b.top), "owned")
			b.git(filepath.Dir(b.top), "clone", "--quiet", b.top, "own-tree")
			require.NoError(t, os.Rename(filepath.Join(filepath.Dir(b.top), "own-tree/.git"), own))
			b.git(own, "config", "filter.x.clean", "sh -c 'touch "+owned+"; cat'")
			b.git(own, "symbolic-ref", "HEAD", "refs/heads/task/11111111")
			b.write(own, "info/attributes", "* filter=x\n")
			swap(b, dir, own)
			b.write(dir, "fresh", "")

			list, err := b.m.List(t.Context(), struct{}{})
			require.NoError(t, err)
			require.Len(t, list.Workspaces, 1)
			require.Contains(t, list.Workspaces[0].Trouble, "no longer belongs to the repository")
			_, err = b.m.Diff(t.Context(), control.DiffRequest{TaskID: id})
			require.ErrorContains(t, err, "no longer belongs to the repository")
			_, err = b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
			require.ErrorContains(t, err, "no longer belongs to the repository")
			b.tasks[id].State = "running"
			require.NotNil(t, b.complete(id))
			require.NoFileExists(t, owned)
		})
	}
}

// Attributes of the repository and of an agent do not hide a text from a diff.
func TestDiffShowsText(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	dir := b.begin(id)
	b.write(b.top, ".git/info/attributes", "* binary\n")
	b.change(dir, ".gitattributes", "* binary\n")
	b.change(dir, "file", "two\n")
	for _, whole := range []bool{false, true} {
		diff, err := b.m.Diff(t.Context(), control.DiffRequest{TaskID: id, Whole: whole})
		require.NoError(t, err)
		require.Contains(t, diff.Patch, "-one\n+two\n")
	}
}
