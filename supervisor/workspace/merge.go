package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// find returns the worktree of a task.
func (m *Manager) find(ctx context.Context, task string) (*repository, worktree, map[string]string, error) {
	for r, err := range m.repositories(ctx) {
		if err != nil {
			return nil, worktree{}, nil, err
		}
		all, places, err := r.list(ctx)
		if err != nil {
			return nil, worktree{}, nil, err
		}
		if i := slices.IndexFunc(all, func(w worktree) bool { return w.task == task }); i >= 0 {
			return r, all[i], places, nil
		}
	}
	return nil, worktree{}, nil, &wire.Error{Code: wire.CodeNotFound, Message: "the task has no workspace", Hint: "See which have one: orchestrator workspace ls"}
}

// repositories yields the repositories of the team, each once.
func (m *Manager) repositories(ctx context.Context) func(func(*repository, error) bool) {
	m.mu.Lock()
	agents := maps.Clone(m.agents)
	m.mu.Unlock()
	return func(yield func(*repository, error) bool) {
		seen := make(map[string]bool)
		for _, name := range slices.Sorted(maps.Keys(agents)) {
			if agents[name].Repository == "" {
				continue
			}
			r, err := open(ctx, m.run, agents[name])
			if err == nil && seen[r.top] {
				continue
			}
			if err == nil {
				seen[r.top] = true
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Diff returns what a task has changed since its branch began, with what is not committed.
func (m *Manager) Diff(ctx context.Context, in control.TaskRequest) (control.TaskDiff, error) {
	ctx, end := m.begin(ctx, "")
	defer end()
	r, w, _, err := m.find(ctx, in.TaskID)
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	began, err := r.gitIn(ctx, w.path, "merge-base", w.base, "HEAD")
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	// A copy of the index gets the new files, so that the one of the agent stays as it is.
	script := `i=$(git rev-parse --path-format=absolute --git-path orchestrator-index).$$ && cp "$(git rev-parse --path-format=absolute --git-path index)" "$i" &&
		export GIT_INDEX_FILE="$i" && git -c core.fsmonitor=false add --all && git -c core.fsmonitor=false -c core.quotePath=false diff --cached --no-color --no-ext-diff --no-textconv "$1"; code=$?; rm -f "$i"; exit $code`
	patch, err := m.run(ctx, r.agent, command{argv: []string{"sh", "-c", script, "sh", began}, dir: w.path, most: mostDiff})
	if errors.Is(err, errLong) {
		return control.TaskDiff{}, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the task has changed more than %d MiB", mostDiff>>20),
			Hint: "Look at it with git, in " + w.path + ": git diff " + began, Details: map[string]any{"reason": "too_large"},
		}
	}
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	loose, err := r.changes(ctx, w.path)
	return control.TaskDiff{
		FormatVersion: wire.FormatVersion, Path: w.path, Branch: w.branch, Base: w.base, Uncommitted: loose, Patch: strings.ToValidUTF8(string(patch), "\uFFFD"),
	}, asWire(err)
}

// Merge merges the branch of a task into another one, after its verify commands have succeeded on the result.
// It changes nothing else, and pushes nothing.
func (m *Manager) Merge(ctx context.Context, in control.MergeRequest) (control.MergeReply, error) {
	m.merging.Lock()
	defer m.merging.Unlock()
	ctx, end := m.begin(ctx, "")
	defer end()
	r, w, places, err := m.find(ctx, in.TaskID)
	if err != nil {
		return control.MergeReply{}, asWire(err)
	}
	if in.Into == "" {
		in.Into = w.base
	}
	reply, err := m.merge(ctx, r, w, in.Into, places[in.Into])
	if err != nil {
		return reply, asWire(err)
	}
	if !r.agent.KeepAll {
		reply.Removed = r.remove(ctx, w)
	}
	return reply, nil
}

func (m *Manager) merge(ctx context.Context, r *repository, w worktree, into, place string) (control.MergeReply, error) {
	reply := control.MergeReply{FormatVersion: wire.FormatVersion, Branch: w.branch, Into: into}
	loose, err := r.changes(ctx, w.path)
	if err != nil {
		return reply, err
	}
	if len(loose) > 0 {
		return reply, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("%s in %s: %s", count(len(loose), "file is not committed", "files are not committed"), w.path, some(loose)),
			Hint: "Commit them on the branch " + w.branch + ", or throw them away", Details: map[string]any{"reason": "uncommitted", "files": loose},
		}
	}
	before, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if err != nil {
		return reply, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no branch %q to merge into", into), Hint: "Name one: --into BRANCH"}
	}
	if merged, err := r.has(ctx, "merge-base", "--is-ancestor", "refs/heads/"+w.branch, before); err != nil || merged {
		reply.Commit, reply.Already = before, merged
		return reply, err
	}
	if reply.Commit, err = m.join(ctx, r, w, into, before); err != nil {
		return reply, err
	}
	if place != "" { // its files change with it, unless that would overwrite something
		_, err = r.gitIn(ctx, place, "merge", "--ff-only", "--quiet", reply.Commit)
	} else {
		_, err = r.git(ctx, "update-ref", "-m", "merge "+w.branch, "refs/heads/"+into, reply.Commit, before)
	}
	return reply, err
}

// join makes the merged commit in a worktree of its own, and verifies it there.
func (m *Manager) join(ctx context.Context, r *repository, w worktree, into, before string) (commit string, err error) {
	at := filepath.Join(r.top, folder, "merge-"+short(w.task))
	drop := func(ctx context.Context) { _, _ = r.git(ctx, "worktree", "remove", "--force", at) }
	drop(ctx) // one of a merge that was killed
	if _, err := r.git(ctx, "worktree", "add", "--detach", at, before); err != nil {
		return "", err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		drop(ctx)
	}()
	args := []string{"merge", "--no-ff", "--quiet", "-m", fmt.Sprintf("Merge %s into %s", w.branch, into), "refs/heads/" + w.branch}
	if named, err := r.has(ctx, "config", "user.email"); err != nil {
		return "", err
	} else if !named {
		args = append([]string{"-c", "user.name=orchestrator", "-c", "user.email=orchestrator@localhost"}, args...)
	}
	if _, err = r.gitIn(ctx, at, args...); err != nil {
		files, _ := r.gitIn(ctx, at, "diff", "--name-only", "--diff-filter=U")
		if files == "" {
			return "", err
		}
		names := strings.Split(files, "\n")
		return "", &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("%s and %s change the same lines of %s", w.branch, into, some(names)),
			Hint: fmt.Sprintf("Merge %s into the branch in %s, and ask again", into, w.path), Details: map[string]any{"reason": "conflict", "files": names},
		}
	}
	if _, err := m.each(ctx, r.agent, r.agent.Verify, at); err != nil {
		if f, ok := errors.AsType[*failed](err); ok {
			return "", &wire.Error{Code: wire.CodeConflict, Message: "the merged files are not verified, so nothing was merged: " + f.Error(), Details: map[string]any{"reason": "not_verified"}}
		}
		return "", err
	}
	return r.gitIn(ctx, at, "rev-parse", "HEAD")
}

// remove removes a worktree and its branch, if all of it has been merged. Git refuses to remove more.
func (r *repository) remove(ctx context.Context, w worktree) bool {
	if _, err := r.git(ctx, "worktree", "remove", w.path); err != nil {
		return false
	}
	_, err := r.git(ctx, "branch", "--delete", w.branch)
	return err == nil
}

// List describes the workspaces of the team.
func (m *Manager) List(ctx context.Context, _ struct{}) (control.WorkspaceList, error) {
	list := control.WorkspaceList{FormatVersion: wire.FormatVersion, Workspaces: []control.WorkspaceView{}}
	err := m.visit(ctx, func(_ *repository, v control.WorkspaceView, _ worktree) { list.Workspaces = append(list.Workspaces, v) })
	return list, err
}

// Prune removes the workspaces whose work has been merged.
func (m *Manager) Prune(ctx context.Context, _ struct{}) (control.WorkspaceList, error) {
	m.merging.Lock()
	defer m.merging.Unlock()
	list := control.WorkspaceList{FormatVersion: wire.FormatVersion, Workspaces: []control.WorkspaceView{}}
	err := m.visit(ctx, func(r *repository, v control.WorkspaceView, w worktree) {
		if v.Ahead == 0 && v.Uncommitted == 0 && v.Moved && !r.agent.KeepAll && r.remove(ctx, w) {
			list.Workspaces = append(list.Workspaces, v)
		}
	})
	return list, err
}

// visit calls do with each workspace.
func (m *Manager) visit(ctx context.Context, do func(*repository, control.WorkspaceView, worktree)) error {
	ctx, end := m.begin(ctx, "")
	defer end()
	for r, err := range m.repositories(ctx) {
		if err != nil {
			return asWire(err)
		}
		all, _, err := r.list(ctx)
		if err != nil {
			return asWire(err)
		}
		for _, w := range all {
			v := control.WorkspaceView{TaskID: w.task, Path: w.path, Branch: w.branch, Base: w.base}
			if loose, err := r.changes(ctx, w.path); err == nil {
				v.Uncommitted = len(loose)
			} else {
				v.Missing = true
			}
			ahead, _ := r.git(ctx, "rev-list", "--count", w.base+"..refs/heads/"+w.branch)
			_, _ = fmt.Sscan(ahead, &v.Ahead)
			moves, _ := r.git(ctx, "reflog", "show", "--format=%H", "refs/heads/"+w.branch)
			v.Moved = strings.Contains(moves, "\n")
			do(r, v, w)
		}
	}
	return nil
}

// some returns the first names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
