package workspace

import (
	"context"
	"fmt"
	"strings"

	"orchestrator/wire"
)

// join makes the merged commit in a worktree of its own, and verifies it there.
func (m *Manager) join(ctx context.Context, r *repository, w worktree, into, before string) (commit string, err error) {
	err = m.apart(ctx, r, Name(w.task), before, func(at string) error {
		if err := r.join(ctx, at, w, into); err != nil {
			return err
		}
		if commit, err = r.gitIn(ctx, at, "rev-parse", "HEAD"); err != nil { // before commands run there
			return err
		}
		return m.verifyMerged(ctx, []*Agent{r.agent}, at)
	})
	return commit, err
}

// join merges the branch of a task into what is checked out in a folder. It never rebases: that would make commits that
// no command has verified, leave out what a merge commit has resolved, and skip a change that was made and taken back.
func (r *repository) join(ctx context.Context, at string, w worktree, into string) error {
	args := []string{"merge", "--no-ff", "--quiet", "-m", fmt.Sprintf("Merge %s into %s", w.branch, into), "refs/heads/" + w.branch}
	if named, err := r.has(ctx, "config", "user.email"); err != nil {
		return err
	} else if !named {
		args = append([]string{"-c", "user.name=orchestrator", "-c", "user.email=orchestrator@localhost"}, args...)
	}
	_, err := r.gitIn(ctx, at, args...)
	if err == nil {
		return nil
	}
	files, _ := r.gitIn(ctx, at, "diff", "--name-only", "--diff-filter=U")
	if files == "" {
		return err
	}
	names := strings.Split(files, "\n")
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("%s and %s change the same lines of %s", w.branch, into, some(names)),
		Hint: fmt.Sprintf("Merge %s into the branch in %s, and ask again", into, w.path), Details: map[string]any{"reason": "conflict", "files": names},
	}
}
