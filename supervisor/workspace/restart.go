package workspace

import (
	"context"
	"fmt"

	"orchestrator/wire"
)

// restarts returns how often a task was tried again on a fresh branch.
func restarts(t *wire.Task) int {
	if t.Details == nil {
		return 0
	}
	return t.Restarts
}

// setAside gives another name to the branch and the folder of an earlier attempt at a task, which is tried again on a
// fresh one. If there is nothing in them, it removes them. It can be called again after a crash.
func (r *repository) setAside(ctx context.Context, t *wire.Task) error {
	all, _, err := r.list(ctx)
	if err != nil {
		return err
	}
	marks, err := r.marks(ctx)
	if err != nil {
		return err
	}
	w, ok := marks[r.agent.Branch(t.ID)]
	if !ok || w.task != t.ID || w.restarts >= restarts(t) {
		return nil
	}
	for _, have := range all {
		if have.branch == w.branch {
			w = have
		}
	}
	aside := fmt.Sprintf("%s-try%d", w.branch, w.restarts+1)
	if w.path != "" && r.there(ctx, w.path) {
		loose, err := r.changes(ctx, w.path)
		if err != nil {
			return err
		}
		moved, err := r.moved(ctx, w)
		if err == nil && !moved && len(loose) == 0 {
			if _, err = r.git(ctx, "worktree", "remove", "--force", w.path); err == nil {
				_, err = r.git(ctx, "branch", "-D", w.branch) // and its marks
			}
			return err
		}
		if err == nil {
			_, err = r.git(ctx, "worktree", "move", w.path, fmt.Sprintf("%s-try%d", w.path, w.restarts+1))
		}
		if err != nil {
			return err
		}
	}
	if there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch); err != nil || !there {
		if err == nil {
			_, err = r.git(ctx, "config", "--local", "--remove-section", "branch."+w.branch)
		}
		return err
	}
	if _, err := r.git(ctx, "config", "--local", "branch."+w.branch+".orchestrator-earlier", t.ID); err != nil {
		return err
	}
	if _, err := r.git(ctx, "config", "--local", "--unset", "branch."+w.branch+".orchestrator-task"); err != nil {
		return err
	}
	_, err = r.git(ctx, "branch", "-m", w.branch, aside) // with its marks
	return err
}
