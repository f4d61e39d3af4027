package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// find returns the worktree of a task.
func (m *Manager) find(ctx context.Context, task string) (*repository, worktree, map[string]string, error) {
	for r, err := range m.repositories(ctx) {
		if err != nil {
			return nil, worktree{}, nil, err
		}
		if t, ok := m.options.Tasks.Task(task); ok {
			err = r.remember(&t)
		}
		if err != nil {
			return nil, worktree{}, nil, err
		}
		all, places, err := r.list(ctx)
		if err != nil {
			return nil, worktree{}, nil, err
		}
		if i := slices.IndexFunc(all, func(w worktree) bool { return (w.Task == task || w.Task == Name(task)) && m.latest(&w) }); i >= 0 {
			return r, all[i], places, nil
		}
	}
	none := &wire.Error{Code: wire.CodeNotFound, Message: "the task has no workspace", Hint: "List the workspaces: orchestrator workspace ls"}
	if t, _ := m.options.Tasks.Task(task); t.State == wire.TaskPending || t.State == wire.TaskAssigned {
		none.Message = "the task has no workspace yet, because it has not started"
		none.Hint = "See why: orchestrator why " + wire.ShortID(task)
	} else if t.AssignedTo != "" {
		if t.Details != nil && t.Workspace != nil && exists(t.Workspace.Path) {
			none.Message = fmt.Sprintf("the workspace %s does not have the branch %s checked out", t.Workspace.Path, t.Workspace.Branch)
			none.Hint = "In this folder: git switch " + t.Workspace.Branch
		} else if a := m.configured().of(t.AssignedTo, &t); a != nil && a.Repository == "" {
			none.Message += fmt.Sprintf(": %s works in %s, and so may other agents", a.Name, a.Dir)
			none.Hint = "Give the agent a workspace block: orchestrator help verified"
		}
	}
	return nil, worktree{}, nil, none
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// repositories yields the repositories of the team, each once.
func (m *Manager) repositories(ctx context.Context) func(func(*repository, error) bool) {
	t := m.configured()
	var all []*Agent
	for _, name := range slices.Sorted(maps.Keys(t.Agents)) {
		all = append(all, t.Agents[name])
	}
	for g := range t.groups {
		if a := t.as(g); a != nil {
			all = append(all, a)
		}
	}
	return func(yield func(*repository, error) bool) {
		seen := make(map[string]bool)
		for _, a := range all {
			if a.Repository == "" {
				continue
			}
			r, err := m.repository(ctx, a)
			if err == nil && seen[r.top] {
				continue
			}
			if err == nil {
				seen[r.top] = true
			}
			if err == nil && !m.options.ReadOnly { // an empty change repairs the repository after a killed orchestrator
				err = m.writing(ctx, r, func() error { return nil })
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// compare prints the changes since a commit, with uncommitted ones. It adds new files to a copy of the index, and their
// contents to a folder of objects that it removes, so the repository does not change. Settings of the repository do not
// change the form of the output.
const compare = `set -e
own=$(git rev-parse --path-format=absolute --git-path orchestrator-diff).$$
objects=$(git rev-parse --path-format=absolute --git-path objects)
mkdir "$own"
trap 'rm -rf "$own"' EXIT
cp -p "$(git rev-parse --path-format=absolute --git-path index)" "$own/index"
export GIT_INDEX_FILE="$own/index" GIT_OBJECT_DIRECTORY="$own" GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects"
git add --all
GIT_ATTR_SOURCE=$(git hash-object -t tree /dev/null) # attributes of an agent would hide changes
export GIT_ATTR_SOURCE
began=$1
shift
git diff --cached --text --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/ --submodule=short "$@" "$began"`

// Diff returns the changes of a task since its branch began, with uncommitted ones.
func (m *Manager) Diff(ctx context.Context, in control.DiffRequest) (control.TaskDiff, error) {
	ctx, end := m.begin(ctx, "")
	defer end()
	r, w, _, err := m.find(ctx, in.TaskID)
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	if _, err := os.Lstat(w.path); errors.Is(err, fs.ErrNotExist) {
		return control.TaskDiff{}, &wire.Error{
			Code: wire.CodeNotFound, Message: "the folder of the workspace is gone: " + w.path,
			Hint: fmt.Sprintf("The branch is still there: git diff %s...%s", w.Base, w.branch),
		}
	}
	commit, err := r.gitIn(ctx, w.path, "rev-parse", "HEAD")
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	m.recorded(&w)
	began, err := r.origin(ctx, &w)
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	argv := []string{"sh", "-c", compare, "sh", began}
	if in.Whole {
		argv = append(argv, "--binary", "--full-index")
	}
	patch, err := r.runIn(ctx, command{argv: argv, dir: w.path, most: maxDiff})
	if errors.Is(err, errLong) {
		return control.TaskDiff{}, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the task has changed more than %d MiB", maxDiff>>20),
			Hint: "Look at it with git, in " + w.path + ": git diff " + began, Details: map[string]any{"reason": "too_large"},
		}
	}
	if err != nil {
		return control.TaskDiff{}, asWire(err)
	}
	loose, err := r.changes(ctx, w.path)
	d := control.TaskDiff{
		FormatVersion: wire.FormatVersion, Path: w.path, Branch: w.branch, Base: w.Base, Commit: commit, Uncommitted: loose, Patch: strings.ToValidUTF8(string(patch), "\uFFFD"),
	}
	if in.Whole && d.Patch != string(patch) {
		d.Bytes = patch
	}
	return d, asWire(err)
}

// Merge merges the branch of a task into another one, after its verify commands have succeeded on the result. It
// changes no other branch, and does not push.
func (m *Manager) Merge(ctx context.Context, in control.MergeRequest) (control.MergeReply, error) {
	ctx, end := m.begin(ctx, "")
	defer end()
	r, w, _, err := m.find(ctx, in.TaskID)
	if err != nil {
		return m.mergedBefore(in, asWire(err))
	}
	m.recorded(&w)
	next, err := m.alone(ctx, branchIn{r.top, cmp.Or(in.Into, w.Base)})
	if err != nil {
		return control.MergeReply{}, err
	}
	defer next()
	r, w, places, err := m.find(ctx, in.TaskID)
	if err != nil { // the queue may have merged it
		return m.mergedBefore(in, asWire(err))
	}
	t, ok := m.recorded(&w)
	if ok && !t.State.Final() {
		return control.MergeReply{}, &wire.Error{
			Code: wire.CodeConflict, Message: "the task has not ended, and its agent may still work on the branch " + w.branch,
			Hint: "Wait until it has ended", Details: map[string]any{"reason": "open"},
		}
	}
	if in.Into == "" {
		in.Into = w.Base
	}
	if in.Into == w.branch {
		return control.MergeReply{}, &wire.Error{
			Code: wire.CodeConflict, Message: w.branch + " is the branch of the task itself", Hint: "Name another one: --into BRANCH", Details: map[string]any{"reason": "itself"},
		}
	}
	r.agent = m.configured().asOf(r.agent, &t)
	reply, err := m.merge(ctx, r, w, in, places)
	if err != nil {
		return reply, m.handBack(ctx, r, w, &t, in.Into, asWire(err))
	}
	if reply.Already {
		m.tellOnce(ctx, r, &t, w)
	} else {
		m.tell(&t, w, in.Into, reply.Commit)
		if in.Into == w.Base {
			_ = m.forget(r, &w)
		}
	}
	if !r.agent.KeepAll {
		reply.Removed = m.remove(ctx, r, w, in.Into)
	}
	return reply, nil
}

// latest reports whether a worktree is of the latest attempt at its task. An earlier one may be in another repository.
func (m *Manager) latest(w *worktree) bool {
	t, ok := m.options.Tasks.Task(w.Task)
	return !ok || w.Restarts >= restarts(&t)
}

// open reports whether a task has not ended.
func (m *Manager) open(task string) bool {
	t, ok := m.options.Tasks.Task(task)
	return ok && !t.State.Final()
}

// mergedBefore answers for a task without a workspace because its branch is merged. Otherwise it returns the error.
func (m *Manager) mergedBefore(in control.MergeRequest, err error) (control.MergeReply, error) {
	reply := control.MergeReply{FormatVersion: wire.FormatVersion, Already: true}
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeNotFound {
		return reply, err
	}
	ok := false
	if reply.Into, reply.Commit, ok = m.lastMerge(in.TaskID); !ok || in.Into != "" && in.Into != reply.Into {
		return control.MergeReply{}, err
	}
	if t, _ := m.options.Tasks.Task(in.TaskID); t.Details != nil && t.Workspace != nil {
		reply.Branch = t.Workspace.Branch
	}
	return reply, nil
}

// alone waits until no other merge into a branch runs, so that each is verified with those before. The returned function
// lets the next one run.
func (m *Manager) alone(ctx context.Context, into branchIn) (next func(), err error) {
	m.mu.Lock()
	merging := m.merging[into]
	if merging == nil {
		merging = make(chan struct{}, 1)
		m.merging[into] = merging
	}
	m.mu.Unlock()
	select {
	case merging <- struct{}{}:
		return func() { <-merging }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *Manager) merge(ctx context.Context, r *repository, w worktree, in control.MergeRequest, places map[string]string) (control.MergeReply, error) {
	into := in.Into
	reply := control.MergeReply{FormatVersion: wire.FormatVersion, Branch: w.branch, Into: into}
	if w.Leaving != "" { // its removal was interrupted
		reply.Already = true
		reply.Commit, _ = r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
		return reply, nil
	}
	if err := r.complete(ctx, w, in.Commit); err != nil {
		return reply, err
	}
	if err := r.altered(ctx, w); err != nil {
		return reply, err
	}
	if err := m.finish(ctx, r, places); err != nil {
		return reply, err
	}
	before, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if err != nil {
		return reply, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("the branch %q to merge into does not exist", into), Hint: "Name one: --into BRANCH"}
	}
	if merged, err := r.has(ctx, "merge-base", "--is-ancestor", "refs/heads/"+w.branch, before); err != nil || merged {
		reply.Commit, reply.Already = before, merged
		return reply, err
	}
	if reply.Commit, err = m.join(ctx, r, w, in, before); err != nil {
		return reply, err
	}
	return reply, m.advance(ctx, r, into, before, reply.Commit)
}

// complete returns an error unless the branch of a task has a commit to merge, and its folder no uncommitted file. If
// want is set, it must be the last commit.
func (r *repository) complete(ctx context.Context, w worktree, want string) error {
	loose, err := r.changes(ctx, w.path)
	if err != nil {
		return err
	}
	if len(loose) > 0 {
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("%s in %s: %s", count(len(loose), "file is not committed", "files are not committed"), w.path, some(loose)),
			Hint: "Commit them on the branch " + w.branch + ", or discard them", Details: map[string]any{"reason": "uncommitted", "files": loose},
		}
	}
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return err
	}
	if want != "" && want != head {
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the branch %s has changed since you reviewed it", w.branch),
			Hint: "Review it again: orchestrator task diff " + wire.ShortID(w.Task), Details: map[string]any{"reason": "moved"},
		}
	}
	moved, err := r.moved(ctx, w)
	if err == nil && !moved {
		err = &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("the branch %s has no commit to merge", w.branch), Details: map[string]any{"reason": "nothing"}}
	}
	return err
}

// writing calls do, which changes a repository. Calls are made one after another.
func (m *Manager) writing(ctx context.Context, r *repository, do func() error) error {
	m.worktrees.Lock()
	defer m.worktrees.Unlock()
	done, err := r.writes(ctx)
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// remove removes a worktree and its branch, if the branch is part of another one and the worktree has no changes that
// are not committed. It completes an interrupted removal, unless files were added since.
func (m *Manager) remove(ctx context.Context, r *repository, w worktree, into string) bool {
	stay := func(m *mark) { m.Leaving = "" }
	return m.writing(ctx, r, func() error {
		into = cmp.Or(w.Leaving, into)
		head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
		if isNo(err) && w.Leaving != "" { // only its mark is left
			return r.unmark(w.branch)
		}
		if err != nil {
			return err
		}
		merged, err := r.has(ctx, "merge-base", "--is-ancestor", head, r.ref(ctx, into))
		if err != nil || !merged || into == w.branch {
			return cmp.Or(err, errNotMerged)
		}
		if w.Leaving == "" {
			loose, err := r.changes(ctx, w.path)
			if err == nil && len(loose) > 0 {
				err = errNotMerged
			}
			if err == nil {
				err = r.mark(w.branch, func(m *mark) { m.Leaving = into })
			}
			if err != nil {
				return err
			}
			if _, err := r.git(ctx, "worktree", "remove", w.path); err != nil {
				_ = r.mark(w.branch, stay)
				return err
			}
		} else {
			if changed, err := r.touched(ctx, w); err != nil || changed {
				_ = r.mark(w.branch, stay)
				return cmp.Or(err, errNotMerged)
			}
			_, _ = r.git(ctx, "worktree", "remove", "--force", "--force", w.path)
			if _, err := r.runIn(ctx, command{argv: []string{"rm", "-rf", w.path}, dir: r.top}); err != nil {
				return err
			}
			_, _ = r.git(ctx, "worktree", "prune")
		}
		if _, err = r.git(ctx, "update-ref", "-d", "refs/heads/"+w.branch, head); err != nil { // it has a new commit
			_ = r.mark(w.branch, stay)
			return err
		}
		return r.unmark(w.branch)
	}) == nil
}

// errNotMerged reports that a worktree has unmerged commits or files.
var errNotMerged = errors.New("not all of it was merged")

// endRemovals removes branches without a worktree, if the orchestrator was killed before it could remove the branch,
// too. It forgets branches that a person has removed with their worktrees.
func (m *Manager) endRemovals(ctx context.Context, r *repository, all []worktree) {
	marks, err := r.marks()
	if err != nil {
		return
	}
	maps.DeleteFunc(marks, func(branch string, _ worktree) bool {
		return slices.ContainsFunc(all, func(have worktree) bool { return have.branch == branch })
	})
	if len(marks) == 0 {
		return
	}
	_ = m.writing(ctx, r, func() error { return r.forgetGone(ctx, marks) })
	for _, w := range marks {
		if w.Leaving != "" {
			w.path = filepath.Join(r.top, folder, Name(w.Task))
			if r.there(ctx, w.path) {
				continue // a worktree with another branch
			}
			m.recorded(&w)
			m.remove(ctx, r, w, w.Base)
		}
	}
}

// forgetGone removes the marks of branches that are gone.
func (r *repository) forgetGone(ctx context.Context, marks map[string]worktree) error {
	text, err := r.git(ctx, "for-each-ref", "--format=%(refname)", "refs/heads")
	if err != nil {
		return err
	}
	there := strings.Split(text, "\n")
	for branch, w := range marks {
		if w.Leaving == "" && !slices.Contains(there, "refs/heads/"+branch) && !exists(filepath.Join(r.top, folder, Name(w.Task))) {
			if err := r.unmark(branch); err != nil {
				return err
			}
		}
	}
	return nil
}

// List describes the workspaces of the team.
func (m *Manager) List(ctx context.Context, _ struct{}) (control.WorkspaceList, error) {
	list := control.WorkspaceList{FormatVersion: wire.FormatVersion, Workspaces: []control.WorkspaceView{}}
	err := m.visit(ctx, func(_ *repository, v control.WorkspaceView, _ worktree) { list.Workspaces = append(list.Workspaces, v) })
	return list, err
}

// Prune removes merged workspaces.
func (m *Manager) Prune(ctx context.Context, _ struct{}) (control.WorkspaceList, error) {
	for r, err := range m.repositories(ctx) {
		if err != nil {
			return control.WorkspaceList{}, asWire(err)
		}
		all, _, err := r.list(ctx)
		if err != nil {
			return control.WorkspaceList{}, asWire(err)
		}
		m.endRemovals(ctx, r, all)
	}
	list := control.WorkspaceList{FormatVersion: wire.FormatVersion, Workspaces: []control.WorkspaceView{}}
	err := m.visit(ctx, func(r *repository, v control.WorkspaceView, w worktree) {
		if v.Trouble == "" && v.Ahead == 0 && v.Uncommitted == 0 && v.Moved && !r.agent.KeepAll && !m.open(w.Task) && m.remove(ctx, r, w, w.Base) {
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
			m.recorded(&w)
			v := control.WorkspaceView{TaskID: w.Task, Path: w.path, Branch: w.branch, Base: w.Base, Heir: w.Heir}
			if err := r.examine(ctx, w, &v); err != nil {
				v.Trouble = firstLine(err)
			}
			do(r, v, w)
		}
	}
	return nil
}

// examine adds the contents of a workspace.
func (r *repository) examine(ctx context.Context, w worktree, v *control.WorkspaceView) error {
	if w.Leaving != "" {
		v.Moved = true
		return nil
	}
	if _, err := os.Lstat(w.path); errors.Is(err, fs.ErrNotExist) {
		v.Missing = true
	} else if loose, err := r.changes(ctx, w.path); err == nil {
		v.Uncommitted = len(loose)
	} else {
		return err
	}
	if there, err := r.has(ctx, "rev-parse", "--verify", "--quiet", r.ref(ctx, w.Base)+"^{commit}"); err != nil || !there {
		return cmp.Or(err, fmt.Errorf("%s is gone, where it began", w.Base))
	}
	ahead, err := r.git(ctx, "rev-list", "--count", r.ref(ctx, w.Base)+"..refs/heads/"+w.branch)
	if err != nil {
		return err
	}
	if v.Ahead, err = strconv.Atoi(ahead); err != nil {
		return err
	}
	v.Moved, err = r.moved(ctx, w)
	return err
}

// some returns the first names.
func some(names []string) string {
	const maxNames = 5
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
