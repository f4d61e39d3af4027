package workspace

import (
	"context"
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// join makes the merged commit in a worktree of its own, and verifies it there.
func (m *Manager) join(ctx context.Context, r *repository, w worktree, in control.MergeRequest, before string) (commit string, err error) {
	err = m.apart(ctx, r, Name(w.task), before, func(at string) error {
		join := r.join
		if in.Rebase {
			join = r.rebase
		}
		if err := join(ctx, at, w, in.Into); err != nil {
			return err
		}
		if err := m.verifyMerged(ctx, []*Agent{r.agent}, at); err != nil {
			return err
		}
		commit, err = r.gitIn(ctx, at, "rev-parse", "HEAD")
		return err
	})
	return commit, err
}

// join merges the branch of a task into what is checked out in a folder.
func (r *repository) join(ctx context.Context, at string, w worktree, into string) error {
	err := r.commits(ctx, at, "merge", "--no-ff", "--quiet", "-m", fmt.Sprintf("Merge %s into %s", w.branch, into), "refs/heads/"+w.branch)
	return r.conflict(ctx, at, w, into, err)
}

// rebase makes the commits of the branch of a task again, behind what is checked out in a folder.
func (r *repository) rebase(ctx context.Context, at string, w worktree, into string) error {
	before, err := r.gitIn(ctx, at, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if _, err := r.gitIn(ctx, at, "checkout", "--detach", "--quiet", "refs/heads/"+w.branch); err != nil {
		return err
	}
	return r.conflict(ctx, at, w, into, r.commits(ctx, at, "rebase", "--quiet", before))
}

// commits runs git in a folder, to make commits. They have an author also if git knows none.
func (r *repository) commits(ctx context.Context, dir string, args ...string) error {
	named, err := r.has(ctx, "config", "user.email")
	if err != nil {
		return err
	}
	if !named {
		args = append([]string{"-c", "user.name=orchestrator", "-c", "user.email=orchestrator@localhost"}, args...)
	}
	_, err = r.gitIn(ctx, dir, args...)
	return err
}

// conflict returns the error of git in a folder. It names the files if both branches have changed the same lines.
func (r *repository) conflict(ctx context.Context, at string, w worktree, into string, err error) error {
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

// advanceRebased is advance for a branch whose commits were made again. Its own branch moves first, so that no commit is
// in both forms if the orchestrator is killed.
func (r *repository) advanceRebased(ctx context.Context, w worktree, head, into, place, before string, reply *control.MergeReply) error {
	if err := r.replace(ctx, w, head, reply.Commit); err != nil {
		return err
	}
	if reply.Already = reply.Commit == before; reply.Already { // others have made the same changes
		return nil
	}
	err := r.advance(ctx, into, place, before, reply.Commit)
	if err != nil {
		_ = r.replace(ctx, w, reply.Commit, head)
	}
	return err
}

// replace moves the branch of a task to other commits, with the files of its worktree, if it has not moved meanwhile.
func (r *repository) replace(ctx context.Context, w worktree, from, to string) error {
	head, err := r.gitIn(ctx, w.path, "rev-parse", "HEAD")
	if err == nil && head != from {
		err = errMoved(w)
	}
	if err == nil {
		_, err = r.gitIn(ctx, w.path, "reset", "--keep", "--quiet", to)
	}
	return err
}

func errMoved(w worktree) error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("the branch %s has moved since you have looked at it", w.branch),
		Hint: "Look again: orchestrator task diff " + wire.ShortID(w.task), Details: map[string]any{"reason": "moved"},
	}
}
