package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// The branch of a task begins at a commit that holds the work of every task that it needs. With a merge queue the base
// has it already. Otherwise the base is merged with the branches of these tasks. If two of them conflict, the task waits
// for another one, which merges them.

// maxNeeds is the maximum number of tasks that legacies looks at.
const maxNeeds = 1000

// A legacy is the work of a needed task.
type legacy struct {
	task   wire.Task
	branch string // as people know it
	commit string
}

// A clash is a conflict between the work of two needed tasks.
type clash struct {
	legacy          // could not be merged
	files  []string // that both have changed
	with   []legacy // that are in the commit
	into   string   // the commit that holds them
}

// beginning returns the base of the branch of a task, and its first commit.
func (m *Manager) beginning(ctx context.Context, r *repository, t *wire.Task) (base, commit string, err error) {
	if base, err = r.base(ctx); err != nil {
		return "", "", err
	}
	if commit, err = r.git(ctx, "rev-parse", "--verify", "--quiet", r.ref(ctx, base)+"^{commit}"); err != nil {
		return "", "", err
	}
	left, err := m.legacies(ctx, r, t)
	if err != nil {
		return "", "", err
	}
	if left, err = r.newest(ctx, left, commit); err != nil || len(left) == 0 {
		return base, commit, err
	}
	if len(left) == 1 { // no merge is needed if the base has not moved since
		if follows, err := r.has(ctx, "merge-base", "--is-ancestor", commit, left[0].commit); err != nil || follows {
			return base, left[0].commit, err
		}
	}
	commit, clashed, err := m.gather(ctx, r, t, base, commit, left)
	if err == nil && clashed != nil {
		err = m.reconcile(ctx, r, t, base, clashed)
	}
	return base, commit, err
}

// legacies returns the work of the tasks that a task needs, directly or by way of tasks without a branch here.
func (m *Manager) legacies(ctx context.Context, r *repository, t *wire.Task) (left []legacy, err error) {
	marks, err := r.marks()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{t.ID: true}
	for queue := needed(t); len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] || len(seen) > maxNeeds {
			continue
		}
		seen[queue[0]] = true
		up, ok := m.options.Tasks.Task(queue[0])
		if !ok || up.State != wire.TaskDone {
			continue
		}
		of, ok, err := r.legacy(ctx, &up, marks)
		if err != nil {
			return nil, err
		}
		if ok {
			left = append(left, of)
		} else {
			queue = append(queue, needed(&up)...)
		}
	}
	return left, nil
}

// needed returns the tasks without which a task is not given out.
func needed(t *wire.Task) (ids []string) {
	for _, l := range t.Links {
		if l.Type != hub.DependsRelated {
			ids = append(ids, l.On)
		}
	}
	return ids
}

// legacy returns the work of a done task, and whether it is in this repository.
func (r *repository) legacy(ctx context.Context, t *wire.Task, marks map[string]worktree) (legacy, bool, error) {
	if t.Details == nil || t.Workspace == nil || t.Workspace.Branch == "" {
		return legacy{}, false, nil
	}
	of := legacy{task: *t, branch: t.Workspace.Branch, commit: t.Workspace.Commit}
	if of.commit == "" { // a person has ended it
		if marks[of.branch].Task != t.ID {
			return of, false, nil
		}
		head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+of.branch)
		if isNo(err) {
			return of, false, nil
		}
		of.commit = head
		return of, err == nil, err
	}
	there, err := r.has(ctx, "cat-file", "-e", of.commit+"^{commit}")
	if f, ok := errors.AsType[*failed](err); ok && f.code == 128 {
		there, err = false, nil
	}
	if !there && err == nil && t.Workspace.Host == "" && t.Workspace.Merge != hub.MergeDone && r.mine(t.Workspace.Path) { // not of another repository
		err = fmt.Errorf("%w: the commit %s of %q, on %s, is gone from the repository", errUnmergeable, of.commit, t.Name, of.branch)
	}
	return of, there, err
}

// newest returns the legacies with commits that neither the base nor another legacy contains.
func (r *repository) newest(ctx context.Context, left []legacy, base string) (newest []legacy, err error) {
	if len(left) == 0 {
		return nil, nil
	}
	args := []string{"merge-base", "--independent", base}
	for _, of := range left {
		args = append(args, of.commit)
	}
	text, err := r.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	independent := strings.Fields(text)
	seen := map[string]bool{base: true}
	for _, of := range left {
		if slices.Contains(independent, of.commit) && !seen[of.commit] {
			newest = append(newest, of)
		}
		seen[of.commit] = true
	}
	return newest, nil
}

// gather merges the work of needed tasks into a commit. It leaves out and returns the first conflict with the rest.
func (m *Manager) gather(ctx context.Context, r *repository, t *wire.Task, base, commit string, left []legacy) (begins string, clashed *clash, err error) {
	err = m.apart(ctx, r, Name(t.ID), commit, func(at string) error {
		var in []legacy
		for _, of := range left {
			text := fmt.Sprintf("Merge %s into %s for %s", of.branch, base, r.agent.Branch(t.ID))
			files, err := r.mergeAt(ctx, at, of.commit, text)
			switch {
			case err != nil && files == nil:
				return err
			case err == nil:
				in = append(in, of)
				continue
			}
			if _, err := r.gitIn(ctx, at, "reset", "--hard", "--quiet"); err != nil {
				return err
			}
			if clashed == nil {
				clashed = &clash{legacy: of, files: files}
			}
		}
		if begins, err = r.gitIn(ctx, at, "rev-parse", "HEAD"); clashed != nil {
			clashed.with, clashed.into = in, begins
		}
		return err
	})
	return begins, clashed, err
}

// reconcileName returns the name of a task that reconciles the needs of another task.
func reconcileName(c *clash, t *wire.Task) string {
	return fmt.Sprintf("Merge %s for %s", c.branch, wire.ShortID(t.ID))
}

// errUnmergeable reports that a person has to merge the needs of a task.
var errUnmergeable = errors.New("the branches that it needs cannot be merged")

// reconcile has an agent merge the work of two needed tasks. It returns an error, because the task has to wait for
// that.
func (m *Manager) reconcile(ctx context.Context, r *repository, t *wire.Task, base string, c *clash) error {
	whole := fmt.Errorf("%w: %s and the other branches that it needs change the same lines of %s", errUnmergeable, c.branch, some(c.files))
	a := m.configured().of(t.AssignedTo, t)
	if a == nil || m.tries(t) >= a.Attempts {
		return whole
	}
	name := reconcileName(c, t)
	id := ""
	err := m.writing(ctx, r, func() (err error) { // so that the agent does not begin elsewhere before its branch is made
		what := mark{Base: base, Began: c.into, Onto: c.commit}
		if known, ok := m.options.Tasks.OpenTask(name); ok { // of an orchestrator that was killed then
			id = known.ID
		} else {
			if err = r.await(name, &what); err != nil {
				return err
			}
			if id, err = m.options.Tasks.Submit(reconciling(t, a, base, name, c)); err != nil {
				return err
			}
		}
		if err = r.reserve(ctx, id, name, what); err != nil {
			m.options.Tasks.Cancel(id, "its branch could not be made")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w (%v)", whole, err)
	}
	m.options.Tasks.Hold(t.AssignedTo, t.ID, id, fmt.Sprintf("%s conflicts with the other branches that it needs, and %s merges them", c.branch, wire.ShortID(id)))
	return fmt.Errorf("it waits for the task %s, which merges what it needs: %s conflicts in %s", wire.ShortID(id), c.branch, some(c.files))
}

// tries returns how many tasks were submitted to reconcile the needs of a task.
func (m *Manager) tries(t *wire.Task) (n int) {
	for _, id := range needed(t) {
		if up, ok := m.options.Tasks.Task(id); ok && up.SubmittedBy == "operator" && strings.HasPrefix(up.Name, "Merge ") && strings.HasSuffix(up.Name, " for "+wire.ShortID(t.ID)) {
			n++
		}
	}
	return n
}

// reconciling returns a task that reconciles the needs of another task.
func reconciling(t *wire.Task, a *Agent, base, name string, c *clash) wire.SubmitTask {
	var in []string
	for _, of := range c.with {
		in = append(in, fmt.Sprintf("- %s, of %q, at %s", of.branch, of.task.Name, of.commit))
	}
	if in == nil {
		in = []string{"- only " + base}
	}
	text := fmt.Sprintf("The task %q needs the work of several others, and their branches conflict.\n\nYour branch holds:\n%s\n\nMerge the commit %s into it, which is %s, of %q. Resolve the conflicts and commit.\n\nBoth have changed:\n- %s",
		t.Name, strings.Join(in, "\n"), c.commit, c.branch, c.task.Name, strings.Join(c.files, "\n- "))
	s := wire.SubmitTask{
		Type: t.Type, Name: name, Description: text, AssignTo: t.AssignedTo, RequiredRole: a.Role, RequiredCapabilities: t.RequiredCapabilities,
	}
	if t.Details != nil {
		s.Verify = t.Verify
	}
	return s
}

// reserve makes the branch of a task that reconciles the needs of another one.
func (r *repository) reserve(ctx context.Context, task, name string, what mark) error {
	marks, err := r.marks()
	branch := r.agent.Branch(task)
	if err != nil || marks[branch].Task == task {
		return err
	}
	if there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+branch); err != nil {
		return err
	} else if !there {
		if _, err := r.git(ctx, "branch", branch, what.Began); err != nil {
			return err
		}
	}
	what.Task = task
	if err := r.note(ctx, branch, what); err != nil {
		return err
	}
	return r.await(name, nil)
}

// origin returns the commit since which the work of a task counts: where its branch began, or where it has last taken over
// its base.
func (r *repository) origin(ctx context.Context, w *worktree) (string, error) {
	taken, err := r.gitIn(ctx, w.path, "merge-base", r.ref(ctx, w.Base), "HEAD")
	if w.Began == "" {
		return taken, err
	}
	if err == nil {
		if later, err := r.has(ctx, "merge-base", "--is-ancestor", w.Began, taken); later && err == nil {
			return taken, nil
		}
	}
	own, unsure := r.gitIn(ctx, w.path, "merge-base", w.Began, "HEAD")
	if unsure != nil { // its agent has moved the branch elsewhere
		return taken, err
	}
	return own, nil
}
