package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// A Queue merges the branches of tasks when they are done.
type Queue struct {
	m     *Manager
	pause time.Duration // before branches that are put off are tried again
	stop  context.CancelFunc
	group sync.WaitGroup
	ended chan struct{} // holds a value if a task has ended since the last look
}

// OpenQueue begins to merge, when tasks end by events after one.
func (m *Manager) OpenQueue(since int64) *Queue {
	ctx, stop := context.WithCancel(context.Background())
	q := &Queue{m: m, pause: 30 * time.Second, stop: stop, ended: make(chan struct{}, 1)}
	q.ended <- struct{}{} // for tasks that ended before
	q.group.Go(func() {
		err := m.options.Tasks.Follow(ctx, since, func(e wire.Event) error {
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
	q.group.Go(func() { q.work(ctx) })
	return q
}

// maxRounds is how often the queue tries to merge, one round after another, if git fails.
const maxRounds = 4

// work merges when a task has ended. If that fails, it tries again, and then records that the branches are not merged.
// After a pause, it tries unmerged branches again: the obstacle may be gone.
func (q *Queue) work(ctx context.Context) {
	defer func() { // a merge may be given up halfway
		q.m.queued.Store(false)
		q.m.options.Tasks.Merged()
	}()
	var again <-chan time.Time
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-q.ended:
		case <-again:
		}
		q.m.queued.Store(true)
		err := q.mergeAll(ctx)
		pause := q.pause
		switch failures++; {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		case failures < maxRounds:
			q.m.options.Log.Warn("branches are not merged, and the queue tries again", "error", err)
			pause = time.Duration(failures) * time.Second
		case failures == maxRounds:
			q.m.options.Log.Error("branches are not merged", "error", err)
			fallthrough
		default:
			q.abandon(err)
		}
		again = nil
		if err != nil || q.m.anyLate() {
			again = time.After(pause)
		}
		q.m.queued.Store(err != nil && failures < maxRounds)
		q.m.options.Tasks.Merged()
	}
}

// abandon records why the branches of done tasks are not merged.
func (q *Queue) abandon(why error) {
	for _, t := range q.m.options.Tasks.Unmerged() {
		if t.Workspace.Merge == hub.MergeWaiting {
			q.m.note(events.TaskUnmerged, &t, "is not merged: "+firstLine(why))
		}
	}
}

// Merging reports whether the queue is at work.
func (m *Manager) Merging() bool { return m.queued.Load() }

// Close ends the queue, which may be nil. A merge that runs is given up.
func (q *Queue) Close() {
	if q != nil {
		q.stop()
		q.group.Wait()
	}
}

// A branchIn is a branch of a repository.
type branchIn struct{ top, branch string }

// A candidate is a branch that could be merged.
type candidate struct {
	worktree
	top    string // of its repository
	commit string // the commit to merge: an agent may add commits during the merge
	merge  string // the commit that merges it
	of     wire.Task
	agent  *Agent

	settled bool // has no commit to merge, or failed before with this one
}

// mergeAll merges all branches of tasks that are done.
func (q *Queue) mergeAll(ctx context.Context) error {
	ctx, end := q.m.begin(ctx, "")
	defer end()
	var failed []error
	seen := make(map[string]bool)
	for r, err := range q.m.repositories(ctx) {
		if err == nil {
			err = q.mergeIn(ctx, r, seen)
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return q.findLost(ctx, seen)
}

// findLost records whether the branches of done tasks without a worktree are merged. A person may have removed the
// worktree, or the orchestrator was killed after it had removed a merged one.
func (q *Queue) findLost(ctx context.Context, seen map[string]bool) error {
	for _, t := range q.m.options.Tasks.Unmerged() {
		if seen[t.ID] || t.Workspace.Merge != hub.MergeWaiting {
			continue
		}
		merged := false
		for r, err := range q.m.repositories(ctx) {
			if err != nil {
				return err
			}
			if t.Workspace.Commit != "" && !merged {
				merged, _ = r.has(ctx, "merge-base", "--is-ancestor", t.Workspace.Commit, "refs/heads/"+t.Workspace.Base) // not in other repositories
			}
		}
		if merged {
			q.m.note(events.TaskMerged, &t, fmt.Sprintf("is merged into %s: %s", t.Workspace.Base, t.Workspace.Commit))
		} else {
			q.m.note(events.TaskUnmerged, &t, "is not merged: its workspace "+t.Workspace.Path+" is gone")
		}
	}
	return nil
}

// mergeIn merges the branches of one repository.
func (q *Queue) mergeIn(ctx context.Context, r *repository, seen map[string]bool) error {
	for _, t := range q.m.options.Tasks.Unmerged() {
		if err := r.remember(&t); err != nil {
			return err
		}
	}
	all, places, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		seen[w.Task] = seen[w.Task] || q.m.latest(&w)
	}
	if err := q.m.finish(ctx, r, places); err != nil {
		return err
	}
	byBase := make(map[string][]candidate)
	var bases []string
	for _, w := range all {
		if c, ok := q.candidate(ctx, r, w); ok {
			if byBase[c.Base] == nil {
				bases = append(bases, c.Base)
			}
			byBase[c.Base] = append(byBase[c.Base], c)
		}
	}
	var failed []error
	for _, base := range bases {
		slices.SortFunc(byBase[base], func(a, b candidate) int { return strings.Compare(a.of.EndedAt, b.of.EndedAt) })
		next, err := q.m.alone(ctx, branchIn{r.top, base})
		if err != nil {
			return err
		}
		failed = append(failed, q.mergeBatch(ctx, r, byBase[base], base))
		next()
	}
	q.clear(ctx, r, all)
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	maps.DeleteFunc(q.m.late, func(of branchIn, _ string) bool {
		return of.top == r.top && !slices.ContainsFunc(all, func(w worktree) bool { return w.branch == of.branch })
	})
	return errors.Join(failed...)
}

// clear removes the worktrees of done tasks that were merged with another branch, or just before the orchestrator was
// killed.
func (q *Queue) clear(ctx context.Context, r *repository, all []worktree) {
	for _, w := range all {
		t, ok := q.m.recorded(&w)
		heir, inherited := q.m.heir(&w)
		if !ok || t.State != wire.TaskDone || w.Restarts < restarts(&t) || inherited && !heir.State.Final() {
			continue
		}
		if q.m.configured().asOf(r.agent, &t).KeepAll {
			q.recordMerged(ctx, r, &w, &t)
			continue
		}
		if done := completedAt(&t); done != "" && w.Leaving == "" {
			if merged, err := r.has(ctx, "merge-base", "--is-ancestor", done, "refs/heads/"+w.Base); err != nil || !merged {
				continue // its branch may have been moved to a commit of another, merged branch
			}
		}
		moved, err := r.moved(ctx, w)
		if err == nil && (moved || w.Leaving != "") && q.m.tellOnce(ctx, r, &t, w) {
			q.m.remove(ctx, r, w, w.Base)
		}
	}
	q.m.endRemovals(ctx, r, all)
}

// recordMerged records that a branch has been merged, if the record still calls it unmerged.
func (q *Queue) recordMerged(ctx context.Context, r *repository, w *worktree, t *wire.Task) {
	if w.Unmerged == "" && q.m.lateness(branchIn{r.top, w.branch}) == "" {
		return
	}
	if q.m.tellOnce(ctx, r, t, *w) {
		_ = q.m.forget(r, w) // otherwise the next round tries it again
	}
}

// candidate returns the commit to merge of a worktree, if its task is done and the commit was not tried before.
func (q *Queue) candidate(ctx context.Context, r *repository, w worktree) (candidate, bool) {
	t, ok := q.m.recorded(&w)
	if !ok || t.State != wire.TaskDone || w.half || w.Leaving != "" || w.Restarts < restarts(&t) {
		return candidate{}, false
	}
	c := candidate{worktree: w, top: r.top, of: t, agent: q.m.configured().asOf(r.agent, &t)}
	why, err := q.obstacle(ctx, r, &c)
	switch {
	case ctx.Err() != nil:
		return c, false
	case err != nil:
		q.putOff(&c, firstLine(asWire(err)))
		return c, false
	case why != "":
		q.putOff(&c, why)
		return c, false
	}
	return c, !c.settled
}

// obstacle returns why a branch cannot be merged now. It sets settled if the branch has no commit to merge, or failed
// before with the same one.
func (q *Queue) obstacle(ctx context.Context, r *repository, c *candidate) (why string, err error) {
	waits := c.of.Details != nil && c.of.Workspace != nil && c.of.Workspace.Merge == hub.MergeWaiting
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+c.branch)
	switch {
	case isNo(err):
		return "its branch " + c.branch + " is gone", nil
	case err != nil:
		return "", err
	case head == c.Unmerged:
		c.settled = true
		if waits { // the record does not say so yet
			return "it could not be merged before. Correct it on the branch, and merge it: orchestrator task merge " + wire.ShortID(c.of.ID), nil
		}
		return "", nil
	}
	c.commit = head
	if err := r.altered(ctx, c.worktree); err != nil {
		return "", err
	}
	if _, err := os.Lstat(c.path); errors.Is(err, fs.ErrNotExist) {
		return "its workspace " + c.path + " is gone", nil
	}
	loose, err := r.changes(ctx, c.path)
	switch {
	case err != nil:
		return "", err
	case len(loose) > 0:
		return fmt.Sprintf("%s in %s: %s", count(len(loose), "file is not committed", "files are not committed"), c.path, some(loose)), nil
	}
	if done := completedAt(&c.of); done != "" && done != head {
		if later, err := r.has(ctx, "merge-base", "--is-ancestor", done, head); err != nil || !later {
			return fmt.Sprintf("its branch no longer contains the completed commit %.12s. Review it, and merge it: orchestrator task merge %s", done, wire.ShortID(c.of.ID)), err
		}
		if merged, err := r.has(ctx, "merge-base", "--is-ancestor", head, "refs/heads/"+c.Base); err != nil || !merged {
			return "its branch has new commits since its completion. Review them, and merge it: orchestrator task merge " + wire.ShortID(c.of.ID), err
		}
	}
	if head == c.Began {
		if c.settled = true; waits {
			q.m.note(events.TaskUnchanged, &c.of, "has no commit, so nothing is merged")
		}
		return "", nil
	}
	if ok, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+c.Base); err != nil || !ok {
		return "the branch " + c.Base + ", where it began, does not exist", err
	}
	c.settled, err = r.has(ctx, "merge-base", "--is-ancestor", head, "refs/heads/"+c.Base)
	return "", err
}

// completedAt returns the commit of a completed task, or "".
func completedAt(t *wire.Task) string {
	if t.Details == nil || t.Workspace == nil {
		return ""
	}
	return t.Workspace.Commit
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// anyLate reports whether a branch is put off.
func (m *Manager) anyLate() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.late) > 0
}

// lateness returns why a branch is put off, or "".
func (m *Manager) lateness(of branchIn) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late[of]
}

// putOff records why a branch is not merged now. The queue tries it again in its next round, and records it again only
// if there is another reason.
func (q *Queue) putOff(c *candidate, why string) {
	if of := (branchIn{c.top, c.branch}); q.m.lateness(of) != why {
		q.m.mu.Lock()
		q.m.late[of] = why
		q.m.mu.Unlock()
		q.m.note(events.TaskUnmerged, &c.of, "is not merged: "+why)
		if strings.Contains(why, errSwapped.Error()) {
			q.m.refused(c.of.AssignedTo, why)
		}
	}
}

// giveUp records why a branch was not merged. The queue tries it again when it has another commit.
func (q *Queue) giveUp(r *repository, c *candidate, why error) {
	text := "is not merged: " + why.Error()
	if e, ok := errors.AsType[*wire.Error](why); ok {
		if id, ok := e.Details["task"].(string); ok {
			text += ". " + c.of.AssignedTo + " resolves it in the task " + wire.ShortID(id)
		} else {
			text += ". Correct it on the branch, and merge it: orchestrator task merge " + wire.ShortID(c.of.ID)
		}
	}
	q.m.note(events.TaskUnmerged, &c.of, text)
	_ = r.mark(c.branch, func(m *mark) { m.Unmerged = c.commit })
}

// mergeBatch merges branches together. If verification fails, it merges the halves one after another, so that only the
// failing branches remain.
func (q *Queue) mergeBatch(ctx context.Context, r *repository, batch []candidate, into string) error {
	if len(batch) == 0 {
		return nil
	}
	before, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if err != nil {
		return err
	}
	var joined []candidate
	var commit string
	err = q.m.apart(ctx, r, Name("queue "+into), before, func(at string) (err error) {
		if joined, err = q.joinEach(ctx, r, at, batch, into); err != nil || len(joined) == 0 {
			return err
		}
		var agents []*Agent
		for _, c := range joined {
			agents = append(agents, c.agent)
		}
		commit = joined[len(joined)-1].merge
		return q.m.verifyMerged(ctx, r, agents, at, commit)
	})
	inTheWay := false
	if err == nil && len(joined) > 0 {
		err = q.merged(ctx, r, joined, into, before, commit)
		inTheWay = err != nil && !hasReason("locked", err) // such as a file of a person
	}
	switch {
	case len(joined) == 0 || err == nil:
		return err
	case hasReason("moved", err):
		return q.mergeBatch(ctx, r, joined, into)
	case ctx.Err() != nil || !inTheWay && !hasReason("not_verified", err):
		return err
	case len(joined) == 1 && inTheWay:
		q.putOff(&joined[0], err.Error())
		return nil
	case len(joined) == 1:
		q.giveUp(r, &joined[0], q.m.handBack(ctx, r, joined[0].worktree, &joined[0].of, into, err))
		return nil
	}
	half := len(joined) / 2
	if err := q.mergeBatch(ctx, r, joined[:half], into); err != nil {
		return err
	}
	return q.mergeBatch(ctx, r, joined[half:], into)
}

// joinEach merges branches in a folder, one after another, and returns those without conflicts.
func (q *Queue) joinEach(ctx context.Context, r *repository, at string, batch []candidate, into string) (joined []candidate, err error) {
	for _, c := range batch {
		err := r.join(ctx, at, c.worktree, c.commit, into)
		if err == nil {
			if c.merge, err = r.gitIn(ctx, at, "rev-parse", "HEAD"); err != nil { // before commands run there
				return joined, err
			}
			joined = append(joined, c)
			continue
		}
		if ctx.Err() != nil {
			return joined, err
		}
		if _, err := r.gitIn(ctx, at, "reset", "--hard", "--quiet"); err != nil {
			return joined, err
		}
		if hasReason("conflict", err) {
			q.giveUp(r, &c, q.m.handBack(ctx, r, c.worktree, &c.of, into, err))
		} else {
			q.putOff(&c, err.Error())
		}
	}
	return joined, nil
}

// hasReason reports whether an error has a reason.
func hasReason(reason string, err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Details["reason"] == reason
}

// merged moves the target branch to a merge of other branches, and removes their worktrees.
func (q *Queue) merged(ctx context.Context, r *repository, joined []candidate, into, before, commit string) error {
	if err := q.m.advance(ctx, r, into, before, commit); err != nil {
		return err
	}
	for _, c := range joined {
		q.m.tell(&c.of, c.worktree, into, c.merge)
		_ = q.m.forget(r, &c.worktree) // otherwise the next round finds it merged
		if !c.agent.KeepAll {
			q.m.remove(ctx, r, c.worktree, into)
		}
	}
	return nil
}
