package workspace

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// join makes the merged commit in a separate worktree, and verifies it there.
func (m *Manager) join(ctx context.Context, r *repository, w worktree, in control.MergeRequest, before string) (commit string, err error) {
	err = m.apart(ctx, r, Name(w.Task), before, func(at string) error {
		if err := r.join(ctx, at, w, cmp.Or(in.Commit, "refs/heads/"+w.branch), in.Into); err != nil {
			return err
		}
		if commit, err = r.gitIn(ctx, at, "rev-parse", "HEAD"); err != nil { // before commands run there
			return err
		}
		return m.verifyMerged(ctx, r, []*Agent{r.agent}, at, commit)
	})
	return commit, err
}

// join merges a commit of the branch of a task into the commit that is checked out in a folder. It never rebases: that
// would make commits that no command has verified, drop the resolutions of merge commits, and skip a change that was
// made and reverted.
func (r *repository) join(ctx context.Context, at string, w worktree, commit, into string) error {
	names, err := r.mergeAt(ctx, at, commit, fmt.Sprintf("Merge %s into %s", w.branch, into))
	if err == nil || names == nil {
		return err
	}
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("%s and %s change the same lines of %s", w.branch, into, some(names)),
		Hint: fmt.Sprintf("Merge %s into the branch in %s, and ask again", into, w.path), Details: map[string]any{"reason": "conflict", "files": names},
	}
}

// mergeAt merges a commit into the commit that is checked out in a folder. If it fails because of conflicts, it also
// returns the files that have them.
func (r *repository) mergeAt(ctx context.Context, at, commit, message string) (conflicts []string, err error) {
	args := []string{"merge", "--no-ff", "--quiet", "-m", message, commit}
	if named, err := r.has(ctx, "config", "user.email"); err != nil {
		return nil, err
	} else if !named {
		args = append([]string{"-c", "user.name=orchestrator", "-c", "user.email=orchestrator@localhost"}, args...)
	}
	if _, err = r.gitIn(ctx, at, args...); err == nil {
		return nil, nil
	}
	if files, _ := r.gitIn(ctx, at, "diff", "--name-only", "--diff-filter=U"); files != "" {
		conflicts = strings.Split(files, "\n")
	}
	return conflicts, err
}
