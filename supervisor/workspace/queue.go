package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// note records what has happened to the branch of a task that has ended.
func (m *Manager) note(kind string, t *wire.Task, text string) {
	m.options.Note(&wire.TaskChecked{Kind: kind, Agent: t.AssignedTo, Task: t.ID, Name: t.Name, Text: text})
}

// tell records that the branch of a task is merged. The task that was to resolve why it was not is cancelled.
func (m *Manager) tell(t *wire.Task, w worktree, into, commit string) {
	m.note(events.TaskMerged, t, fmt.Sprintf("is merged into %s: %s", into, commit))
	withdraw(m, &w)
}

// withdraw cancels the task that was to resolve why a branch was not merged, because it is.
func withdraw(m *Manager, w *worktree) {
	if heir, ok := m.heir(w); ok && !heir.State.Final() {
		m.options.Cancel(w.heir, w.branch+" is merged")
	}
}

// heir returns the task that is to resolve why a branch was not merged. Its id is in the configuration of git, which
// agents can change, so it must be one that a person or the orchestrator has submitted, with the name of such a task.
func (m *Manager) heir(w *worktree) (wire.Task, bool) {
	if w.heir == "" {
		return wire.Task{}, false
	}
	t, ok := m.options.Task(w.heir)
	return t, ok && t.SubmittedBy == "operator" && strings.HasPrefix(t.Name, heirName(w.branch))
}

// heirName returns how the name of the heir of a branch begins.
func heirName(branch string) string { return "Merge " + branch + " into " }

// recorded returns the task of a worktree. The base of the worktree becomes that of the record, whatever its agent has
// written into the configuration of git.
func (m *Manager) recorded(w *worktree) (t wire.Task, ok bool) {
	if t, ok = m.options.Task(w.task); ok && t.Details != nil && t.Workspace != nil && t.Workspace.Base != "" {
		w.base = t.Workspace.Base
	}
	return t, ok
}

// handBack gives what could not be merged to the agent of the task, as a new task. The branch of the new task begins at
// that of the old one. handBack returns the error with a hint.
func (m *Manager) handBack(ctx context.Context, r *repository, w worktree, t *wire.Task, into string, err error) error {
	why, ok := errors.AsType[*wire.Error](err)
	if !ok || why.Details["reason"] != "conflict" && why.Details["reason"] != "not_verified" {
		return err
	}
	if heir, ok := m.heir(&w); ok && !heir.State.Final() {
		why.Hint = fmt.Sprintf("The task %s of %s is to resolve it: wait until it has ended, and merge that", wire.ShortID(heir.ID), heir.AssignedTo)
		if heir.AssignedTo == "" {
			why.Hint = fmt.Sprintf("No agent has the task %s yet, which is to resolve it. Give it to one: orchestrator task assign %[1]s AGENT", wire.ShortID(heir.ID))
		}
		return why
	} else if ok && heir.State == wire.TaskDone {
		why.Hint = "Its work is part of another task: orchestrator task merge " + wire.ShortID(heir.ID)
		return why
	}
	a := m.heirFor(ctx, r, t)
	if a == nil || w.rounds >= a.Attempts {
		return why
	}
	onto, failed := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if failed != nil {
		return why
	}
	to := into
	if _, work := m.options.Elsewhere(a.Name); work != nil || a.Placed {
		to = "the commit " + onto // the host may have another one as the end of the branch
	}
	id, who := "", t.AssignedTo
	failed = m.writing(ctx, r, func() (err error) { // so that the agent does not begin elsewhere meanwhile
		if known, ok := m.options.OpenTask(heirName(w.branch) + into); ok { // of an orchestrator that was killed then
			id, who = known.ID, known.AssignedTo
			if marks, err := r.marks(ctx); err != nil || marks[a.Branch(id)].task == id {
				return err // its agent has begun
			}
			return r.inherit(ctx, w, id, a.Branch(id), onto)
		}
		if id, err = m.options.Submit(resolving(t, a, &w, into, to, why)); err != nil {
			return err
		}
		if err = r.inherit(ctx, w, id, a.Branch(id), onto); err != nil {
			m.options.Cancel(id, "its branch could not be made")
		}
		return err
	})
	if failed != nil {
		return why // with the hint of how to resolve it
	}
	why.Details["task"] = id
	why.Hint = fmt.Sprintf("%s has the task %s to resolve it. When it is done: orchestrator task merge %[2]s", cmp.Or(who, "The team"), wire.ShortID(id))
	return why
}

// heirFor returns the agent of a task, if it can get another one to resolve why the branch could not be merged. There is
// none for a task of a session: only its planner adds tasks there, a member may know no others, and no reviewer would
// see the result. Nor is there one if the task had its workspace from a task block, since that block is about this task alone.
// A person decides then.
func (m *Manager) heirFor(ctx context.Context, r *repository, t *wire.Task) *Agent {
	team := m.configured()
	a := team.Agents[t.AssignedTo]
	if a == nil || a.Repository == "" {
		return nil
	}
	if t.Details != nil {
		if block := team.Blocks[t.Block]; team.Sessions[t.SessionID] != nil || block != nil && block.Repository != "" {
			return nil
		}
	}
	if own, err := open(ctx, m.run, a); err != nil || own.top != r.top {
		return nil
	}
	return a
}

// resolving returns the task to resolve why a branch could not be merged.
func resolving(t *wire.Task, a *Agent, w *worktree, into, to string, why *wire.Error) wire.SubmitTask {
	text := fmt.Sprintf("The branch %s of the task %q could not be merged into %s:\n%s\n\nYour branch begins at %[1]s. Merge %[5]s into it, correct what is wrong, and commit.",
		w.branch, t.Name, into, why.Message, to)
	if files, ok := why.Details["files"].([]string); ok {
		text += "\n\nBoth have changed:\n- " + strings.Join(files, "\n- ")
	}
	s := wire.SubmitTask{
		Type: t.Type, Name: heirName(w.branch) + into, Description: text, AssignTo: t.AssignedTo,
		RequiredRole: a.Role, RequiredCapabilities: t.RequiredCapabilities, // if that agent ends
	}
	if t.Details != nil {
		s.Details.Verify = t.Verify
	}
	return s
}

// adopt makes the branch of a task that is to resolve why another one could not be merged, if the orchestrator was killed
// after it had submitted the task.
func (m *Manager) adopt(ctx context.Context, r *repository, t *wire.Task) error {
	name, ok := strings.CutPrefix(t.Name, "Merge ")
	branch, into, also := strings.Cut(name, " into ")
	if !ok || !also || t.SubmittedBy != "operator" {
		return nil
	}
	return m.writing(ctx, r, func() error {
		marks, err := r.marks(ctx)
		own := r.agent.Branch(t.ID)
		if err != nil || marks[own].task != "" || marks[branch].task == "" {
			return err
		}
		onto, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
		if err == nil {
			_, err = r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
		}
		if err != nil {
			return nil // one of them is gone: there is nothing to resolve
		}
		w := marks[branch]
		m.recorded(&w)
		if heir, ok := m.heir(&w); ok && heir.ID != t.ID && !heir.State.Final() {
			return nil
		}
		return r.inherit(ctx, w, t.ID, own, onto)
	})
}

// inherit makes the branch of the task that is to resolve why another one could not be merged. Its task is noted last: if
// the orchestrator is killed before, inherit is called again.
func (r *repository) inherit(ctx context.Context, w worktree, heir, branch, onto string) error {
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return err
	}
	if there, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); isNo(err) {
		_, err = r.git(ctx, "branch", branch, head)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	} else if older, err := r.has(ctx, "merge-base", "--is-ancestor", there, head); err != nil || !older {
		return cmp.Or(err, fmt.Errorf("there is a branch %s already", branch))
	}
	section := "branch." + branch + ".orchestrator-"
	for _, mark := range [][2]string{
		{section + "base", w.base}, {section + "began", w.began}, {section + "rounds", strconv.Itoa(w.rounds + 1)}, {section + "onto", onto},
		{"branch." + w.branch + ".orchestrator-heir", heir}, {section + "task", heir},
	} {
		if _, err := r.git(ctx, "config", "--local", mark[0], mark[1]); err != nil {
			return err
		}
	}
	return nil
}

// A Queue merges the branches of tasks when they are done.
type Queue struct {
	stop  context.CancelFunc
	group sync.WaitGroup
	ended chan struct{} // holds a value if a task has ended since the last look
}

// OpenQueue begins to merge. Follow calls its function with each event from now on.
func (m *Manager) OpenQueue(follow func(ctx context.Context, send func(wire.Event) error) error) *Queue {
	ctx, stop := context.WithCancel(context.Background())
	q := &Queue{stop: stop, ended: make(chan struct{}, 1)}
	q.ended <- struct{}{} // those that were done before
	q.group.Go(func() {
		err := follow(ctx, func(e wire.Event) error {
			if e.Kind == events.TaskDone {
				select {
				case q.ended <- struct{}{}:
				default:
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			m.options.Log.Error("branches are no longer merged", "error", err)
		}
	})
	q.group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-q.ended:
			}
			if err := m.mergeAll(ctx); err != nil && ctx.Err() == nil {
				m.options.Log.Error("branches are not merged", "error", err)
			}
		}
	})
	return q
}

// Close ends the queue, which may be nil. A merge that runs is given up.
func (q *Queue) Close() {
	if q != nil {
		q.stop()
		q.group.Wait()
	}
}

// A candidate is a branch that could be merged.
type candidate struct {
	worktree
	of    wire.Task
	agent *Agent
}

// mergeAll merges all branches of tasks that are done.
func (m *Manager) mergeAll(ctx context.Context) error {
	ctx, end := m.begin(ctx, "")
	defer end()
	next, err := m.alone(ctx)
	if err != nil {
		return err
	}
	defer next()
	var failed []error
	for r, err := range m.repositories(ctx) {
		if err == nil {
			err = m.mergeIn(ctx, r)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// mergeIn merges the branches of one repository.
func (m *Manager) mergeIn(ctx context.Context, r *repository) error {
	all, places, err := r.list(ctx)
	if err != nil {
		return err
	}
	if err := m.finish(ctx, r, places); err != nil {
		return err
	}
	byBase := make(map[string][]candidate)
	var bases []string
	for _, w := range all {
		if c, ok := m.candidate(ctx, r, w); ok {
			if byBase[c.base] == nil {
				bases = append(bases, c.base)
			}
			byBase[c.base] = append(byBase[c.base], c)
		}
	}
	var failed []error
	for _, base := range bases {
		slices.SortFunc(byBase[base], func(a, b candidate) int { return strings.Compare(a.of.EndedAt, b.of.EndedAt) })
		failed = append(failed, m.mergeBatch(ctx, r, byBase[base], base))
	}
	m.clear(ctx, r, all)
	return errors.Join(failed...)
}

// clear removes the worktrees of done tasks that were merged with that of another one, or just before the orchestrator
// was killed.
func (m *Manager) clear(ctx context.Context, r *repository, all []worktree) {
	for _, w := range all {
		t, ok := m.recorded(&w)
		heir, inherited := m.heir(&w)
		if !ok || t.State != wire.TaskDone || inherited && !heir.State.Final() || m.configured().asOf(r.agent, &t).KeepAll {
			continue
		}
		moved, err := r.moved(ctx, w)
		if err == nil && (moved || w.leaving) && m.remove(ctx, r, w, w.base) {
			m.note(events.TaskMerged, &t, "is merged into "+w.base)
		}
	}
	m.endRemovals(ctx, r, all)
}

// endRemovals removes the branches whose worktrees were removed just before the orchestrator was killed.
func (m *Manager) endRemovals(ctx context.Context, r *repository, all []worktree) {
	marks, err := r.marks(ctx)
	if err != nil {
		return
	}
	for branch, w := range marks {
		if w.leaving && w.task != "" && !slices.ContainsFunc(all, func(have worktree) bool { return have.branch == branch }) {
			w.path = filepath.Join(r.top, folder, Name(w.task))
			if r.there(ctx, w.path) {
				continue // a worktree with another branch
			}
			m.recorded(&w)
			m.remove(ctx, r, w, w.base)
		}
	}
}

// candidate returns what is to be merged of a worktree, if it is complete and was not tried before.
func (m *Manager) candidate(ctx context.Context, r *repository, w worktree) (candidate, bool) {
	t, ok := m.recorded(&w)
	if !ok || t.State != wire.TaskDone || w.half || w.leaving {
		return candidate{}, false
	}
	c := candidate{worktree: w, of: t, agent: m.configured().asOf(r.agent, &t)}
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil || head == w.unmerged {
		return c, false
	}
	if loose, err := r.changes(ctx, w.path); err != nil || len(loose) > 0 {
		if err == nil {
			m.putOff(&c, fmt.Sprintf("%s in %s", count(len(loose), "file is not committed", "files are not committed"), w.path))
		}
		return c, false
	}
	if head == w.began {
		return c, false
	}
	if ok, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.base); err != nil || !ok {
		if err == nil {
			m.putOff(&c, "there is no branch "+w.base+", where it began")
		}
		return c, false
	}
	if merged, err := r.has(ctx, "merge-base", "--is-ancestor", head, "refs/heads/"+w.base); err != nil || merged {
		return c, false
	}
	if t.Details != nil && t.Workspace != nil && t.Workspace.Commit != "" && t.Workspace.Commit != head {
		m.putOff(&c, "its branch has commits since it was completed. Look at them, and merge it: orchestrator task merge "+wire.ShortID(t.ID))
		return c, false
	}
	return c, true
}

// putOff records why a branch is not merged now. The queue tries it again in its next round, and records it again only
// if there is another reason.
func (m *Manager) putOff(c *candidate, why string) {
	m.mu.Lock()
	known := m.late[c.branch] == why
	m.late[c.branch] = why
	m.mu.Unlock()
	if !known {
		m.note(events.TaskUnmerged, &c.of, "is not merged: "+why)
	}
}

// giveUp records why a branch was not merged. The queue tries it again when it has another commit.
func (m *Manager) giveUp(ctx context.Context, r *repository, c *candidate, why error) {
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+c.branch)
	if err == nil {
		_ = configure(ctx, m, r, "branch."+c.branch+".orchestrator-unmerged", head)
	}
	text := "is not merged: " + why.Error()
	if e, ok := errors.AsType[*wire.Error](why); ok {
		if id, ok := e.Details["task"].(string); ok {
			text += ". " + c.of.AssignedTo + " resolves it in the task " + wire.ShortID(id)
		}
	}
	m.note(events.TaskUnmerged, &c.of, text)
}

// mergeBatch merges branches together. If the result is not verified, it merges the halves one after another, so that
// only those remain with which it fails.
func (m *Manager) mergeBatch(ctx context.Context, r *repository, batch []candidate, into string) error {
	if len(batch) == 0 {
		return nil
	}
	before, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if err != nil {
		return err
	}
	var joined []candidate
	var commit string
	err = m.apart(ctx, r, Name("queue "+into), before, func(at string) error {
		var agents []*Agent
		for _, c := range batch {
			if err := r.join(ctx, at, c.worktree, into); err != nil {
				if ctx.Err() != nil {
					return err
				}
				if _, err := r.gitIn(ctx, at, "reset", "--hard", "--quiet"); err != nil {
					return err
				}
				m.giveUp(ctx, r, &c, m.handBack(ctx, r, c.worktree, &c.of, into, asWire(err)))
				continue
			}
			joined, agents = append(joined, c), append(agents, c.agent)
		}
		if len(joined) == 0 {
			return nil
		}
		var err error
		if commit, err = r.gitIn(ctx, at, "rev-parse", "HEAD"); err != nil { // before commands run there
			return err
		}
		return m.verifyMerged(ctx, agents, at)
	})
	inTheWay := false
	if err == nil && len(joined) > 0 {
		err = m.merged(ctx, r, joined, into, before, commit)
		inTheWay = err != nil // such as a file of a person
	}
	switch {
	case len(joined) == 0 || err == nil:
		return err
	case hasReason("moved", err):
		return m.mergeBatch(ctx, r, joined, into)
	case ctx.Err() != nil || !inTheWay && !hasReason("not_verified", err):
		return err
	case len(joined) == 1 && inTheWay:
		m.putOff(&joined[0], err.Error())
		return nil
	case len(joined) == 1:
		m.giveUp(ctx, r, &joined[0], m.handBack(ctx, r, joined[0].worktree, &joined[0].of, into, err))
		return nil
	}
	half := len(joined) / 2
	if err := m.mergeBatch(ctx, r, joined[:half], into); err != nil {
		return err
	}
	return m.mergeBatch(ctx, r, joined[half:], into)
}

// hasReason reports whether an error has a reason.
func hasReason(reason string, err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Details["reason"] == reason
}

// merged moves the branch into which others were merged, and removes their worktrees.
func (m *Manager) merged(ctx context.Context, r *repository, joined []candidate, into, before, commit string) error {
	if err := m.advance(ctx, r, into, before, commit); err != nil {
		return err
	}
	for _, c := range joined {
		m.tell(&c.of, c.worktree, into, commit)
		if !c.agent.KeepAll {
			m.remove(ctx, r, c.worktree, into)
		}
	}
	return nil
}
