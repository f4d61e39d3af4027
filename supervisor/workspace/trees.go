package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orchestrator/wire"
)

// Merged and published files must be the verified ones: no file may differ from the commit while commands run, and git
// must show the same commits and files as in a clone.

// differing prints the files of a worktree that differ from a commit, whatever its index records about them.
const differing = `set -e
GIT_INDEX_FILE=$GIT_DIR/orchestrator-index.$$
export GIT_INDEX_FILE
trap 'rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"' EXIT
git read-tree "$1"
git update-index -q --refresh >/dev/null || :
git diff-files --name-only --ignore-submodules=all -z`

// same returns an error if files of a merge differ from its commit.
func (r *repository) same(ctx context.Context, at, commit, when string) error {
	out, err := r.runIn(ctx, command{argv: []string{"sh", "-c", differing, "sh", commit}, dir: at})
	if err != nil || len(out) == 0 {
		return err
	}
	names := strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 })
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("nothing was merged: %s the verify commands, files of the merge differ from its commit: %s", when, some(names)),
		Hint: "Verify commands must not change files of the repository. If none of them does, another process did", Details: map[string]any{"reason": "not_verified", "files": names},
	}
}

// history returns the entries that make git show other commits or files than in a clone: replacement refs, grafts, and
// the ends of a shallow clone.
func (r *repository) history(ctx context.Context) ([]string, error) {
	refs, err := r.git(ctx, "for-each-ref", "--format=%(refname)=%(objectname)", "refs/replace")
	if err != nil {
		return nil, err
	}
	all := strings.Fields(refs)
	for _, name := range []string{"info/grafts", "shallow"} {
		text, err := os.ReadFile(filepath.Join(r.common, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				sum := sha256.Sum256([]byte(line))
				all = append(all, name+"="+hex.EncodeToString(sum[:8]))
			}
		}
	}
	return all, nil
}

// unaltered is the mark of a branch that began in a repository without such entries.
const unaltered = "none"

// altered returns an error if the repository has got entries of history since the branch began. The marks of an earlier
// version do not record the entries.
func (r *repository) altered(ctx context.Context, w worktree) error {
	if w.History == "" {
		return nil
	}
	now, err := r.history(ctx)
	if err != nil {
		return err
	}
	before := strings.Fields(w.History)
	i := slices.IndexFunc(now, func(one string) bool { return !slices.Contains(before, one) })
	if i < 0 {
		return nil
	}
	name, _, _ := strings.Cut(now[i], "=")
	hint := "Remove it: rm " + filepath.Join(r.common, name)
	if of, ok := strings.CutPrefix(name, "refs/replace/"); ok {
		hint = "Remove it: git replace -d " + of
	}
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("%s was not in the repository when the branch %s began: git shows other files or commits with it than a clone has", name, w.branch),
		Hint: hint, Details: map[string]any{"reason": "altered"},
	}
}
