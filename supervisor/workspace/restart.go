package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"orchestrator/wire"
)

// restarts returns how often a task was tried again on a fresh branch.
func restarts(t *wire.Task) int {
	if t.Details == nil {
		return 0
	}
	return t.Restarts
}

// setAside renames the branch and the folder of an earlier attempt at a task, to retry it on fresh ones. It removes
// them if they hold no work. It can be called again after a crash.
func (r *repository) setAside(ctx context.Context, t *wire.Task) error {
	if restarts(t) == 0 {
		return nil
	}
	marks, err := r.marks()
	if err != nil {
		return err
	}
	for _, w := range marks {
		if w.Task == t.ID && w.Restarts < restarts(t) {
			if err := r.setAsideOne(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// setAsideOne sets one branch aside. Its mark is removed last: until then, setAside is called again.
func (r *repository) setAsideOne(ctx context.Context, w worktree) error {
	path := filepath.Join(r.top, folder, Name(w.Task))
	w.path = path
	there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return err
	}
	if r.there(ctx, path) {
		loose, err := r.changes(ctx, path)
		if err != nil {
			return err
		}
		own, err := r.gitIn(ctx, path, "branch", "--show-current")
		if err != nil {
			return err
		}
		moved := true
		if there && own == w.branch {
			if moved, err = r.moved(ctx, w); err != nil {
				return err
			}
		}
		if !moved && len(loose) == 0 {
			if _, err = r.git(ctx, "worktree", "remove", "--force", path); err == nil {
				_, err = r.git(ctx, "branch", "-D", w.branch)
			}
			if err == nil {
				err = r.unmark(w.branch)
			}
			return err
		}
		if _, err := r.git(ctx, "worktree", "move", path, unused(path, w.Restarts)); err != nil {
			return err
		}
	}
	if there {
		aside := w.branch + asideMark + strconv.Itoa(w.Restarts+1)
		for n := 2; ; n++ {
			taken, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+aside)
			if err != nil {
				return err
			}
			if !taken {
				break
			}
			aside = fmt.Sprintf("%s%s%d-%d", w.branch, asideMark, w.Restarts+1, n)
		}
		if _, err := r.git(ctx, "branch", "-m", w.branch, aside); err != nil {
			return err
		}
	}
	return r.unmark(w.branch)
}

// asideMark is in the name of a branch of an earlier attempt, before the number of the attempt.
const asideMark = "-try"

// unused returns a name for the folder of an earlier attempt that no other folder has.
func unused(path string, restarts int) string {
	aside := path + asideMark + strconv.Itoa(restarts+1)
	for n := 2; exists(aside); n++ {
		aside = fmt.Sprintf("%s%s%d-%d", path, asideMark, restarts+1, n)
	}
	return aside
}
