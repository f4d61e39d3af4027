package workspace

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
)

// A replacement ref does not show verify, a diff or a merge other files than a clone gets.
func TestReplacedFiles(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	b.ann.Verify = [][]string{{"grep", "-q", "GOOD", "code"}}
	dir := b.begin(id)
	b.change(dir, "code", "EVIL\n")
	b.write(dir, "good", "GOOD\n")
	good := b.git(dir, "hash-object", "-w", "good")
	replaced := b.git(dir, "rev-parse", "HEAD:code")
	b.git(dir, "replace", replaced, good)
	b.git(dir, "checkout", "--", "code")
	b.git(dir, "update-index", "--assume-unchanged", "code")
	b.git(dir, "clean", "--quiet", "--force")

	refused := b.complete(id)
	require.NotNil(t, refused)
	require.Contains(t, refused.Message, "refs/replace/"+replaced+" was not in the repository when the branch task/11111111 began")
	b.end(id)
	_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
	require.ErrorContains(t, err, "refs/replace/"+replaced)
	diff, err := b.m.Diff(t.Context(), control.DiffRequest{TaskID: id})
	require.NoError(t, err)
	require.Contains(t, diff.Patch, "+EVIL")
	require.Equal(t, "file", b.git(b.top, "ls-tree", "--name-only", "main"))

	b.git(dir, "replace", "-d", replaced)
	b.git(dir, "update-index", "--no-assume-unchanged", "code")
	b.git(dir, "checkout", "HEAD", "--", "code")
	require.NotNil(t, b.complete(id), "verify sees the file of the commit")
}

// Grafts and the ends of a shallow clone refuse a merge if they were not there before.
func TestAlteredHistory(t *testing.T) {
	const id, other = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000001"
	for _, name := range []string{"info/grafts", "shallow"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b := newBench(t)
			b.change(b.top, "second", "two\n")
			dir := b.begin(id)
			b.change(dir, "file", "two\n")
			require.Nil(t, b.complete(id))
			b.write(b.top, ".git/"+name, b.git(b.top, "rev-parse", "main")+"\n")
			_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
			require.ErrorContains(t, err, name+" was not in the repository when the branch task/11111111 began")
			later := b.begin(other)
			b.change(later, "other", "two\n")
			require.Nil(t, b.complete(other), "it was there when the branch began")
			_, err = b.m.Merge(t.Context(), control.MergeRequest{TaskID: other})
			require.NoError(t, err)
		})
	}
}

// A verify command that changes a file of the merge refuses it, because the commit has other files than were verified.
func TestVerifyChangesFiles(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	b := newBench(t)
	dir := b.begin(id)
	b.change(dir, "file", "two\n")
	b.ann.Verify = [][]string{{"sh", "-c", "echo three >file; touch built"}}
	b.end(id)
	_, err := b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
	require.ErrorContains(t, err, "after the verify commands, files of the merge differ from its commit: file")
	require.Equal(t, "one", b.git(b.top, "show", "main:file"))
	b.ann.Verify = [][]string{{"sh", "-c", "touch built"}}
	_, err = b.m.Merge(t.Context(), control.MergeRequest{TaskID: id})
	require.NoError(t, err)
}
