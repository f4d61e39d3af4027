package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// note records an event about the branch of an ended task.
func (m *Manager) note(kind string, t *wire.Task, text string) {
	m.options.Tasks.Note(&wire.TaskChecked{Kind: kind, Agent: t.AssignedTo, Task: t.ID, Name: t.Name, Text: text})
}

// tell records that the branch of a task is merged, and waits until that is durable, because without the branch only
// the record leads to the merge. The task to resolve an earlier conflict of the branch is cancelled.
func (m *Manager) tell(t *wire.Task, w worktree, into, commit string) {
	m.note(events.TaskMerged, t, mergedInto+into+": "+commit)
	m.options.Tasks.Settle()
	m.withdraw(&w)
}

// mergedInto begins the text about a branch that is merged.
const mergedInto = "is merged into "

// lastMerge returns the target branch and the commit of the latest merge of a task.
func (m *Manager) lastMerge(task string) (into, commit string, ok bool) {
	text, ok := m.options.Tasks.LastMerge(task)
	if at := strings.LastIndex(text, mergedInto); ok && at >= 0 {
		into, commit, ok = strings.Cut(text[at+len(mergedInto):], ": ")
	}
	return into, commit, ok && isCommit.MatchString(commit)
}

// tellOnce is tell for a branch that was merged earlier. It reports whether the record has that merge now.
func (m *Manager) tellOnce(ctx context.Context, r *repository, t *wire.Task, w worktree) bool {
	into := cmp.Or(w.Leaving, w.Base)
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return isNo(err) && w.Leaving != "" // its merge was recorded before its removal began
	}
	if merged, err := r.has(ctx, "merge-base", "--is-ancestor", head, r.ref(ctx, into)); err != nil || !merged {
		return false
	}
	if known, commit, ok := m.lastMerge(t.ID); ok && known == into {
		if has, err := r.has(ctx, "merge-base", "--is-ancestor", head, commit); err == nil && has {
			m.withdraw(&w)
			return true
		}
	}
	merges, err := r.git(ctx, "rev-list", "--first-parent", "--ancestry-path", head+".."+r.ref(ctx, into))
	if err != nil {
		return false
	}
	all := strings.Fields(merges)
	if len(all) == 0 {
		all = []string{head} // the branch was moved to it
	}
	m.tell(t, w, into, all[len(all)-1])
	return true
}

// forget is called when a branch has been merged. It removes the reasons why the branch was not merged before.
func (m *Manager) forget(r *repository, w *worktree) error {
	m.mu.Lock()
	delete(m.late, branchIn{r.top, w.branch})
	m.mu.Unlock()
	if w.Unmerged == "" {
		return nil
	}
	return r.mark(w.branch, func(m *mark) { m.Unmerged = "" })
}

// withdraw is called when a branch has been merged. It cancels the task that was to resolve its conflict.
func (m *Manager) withdraw(w *worktree) {
	if heir, ok := m.heir(w); ok && !heir.State.Final() {
		m.options.Tasks.Cancel(w.Heir, w.branch+" is merged")
	}
}

// heir returns the task to resolve a failed merge of a branch. Agents could change its id in the notes of an earlier
// version, so heir accepts only a task that a person or the orchestrator has submitted, with the name of such a task.
func (m *Manager) heir(w *worktree) (wire.Task, bool) {
	if w.Heir == "" {
		return wire.Task{}, false
	}
	t, ok := m.options.Tasks.Task(w.Heir)
	return t, ok && t.SubmittedBy == "operator" && strings.HasPrefix(t.Name, heirName(w.branch))
}

// heirName returns the beginning of the name of the heir of a branch.
func heirName(branch string) string { return "Merge " + branch + " into " }

// recorded returns the task of a worktree. The base of the worktree is set from the record.
func (m *Manager) recorded(w *worktree) (t wire.Task, ok bool) {
	if t, ok = m.options.Tasks.Task(w.Task); ok && t.Details != nil && t.Workspace != nil && t.Workspace.Base != "" {
		w.Base = t.Workspace.Base
	}
	return t, ok
}

// handBack submits a task to resolve a failed merge, for the agent of the merged task. The new branch begins at the old
// one. handBack returns the error with a hint.
func (m *Manager) handBack(ctx context.Context, r *repository, w worktree, t *wire.Task, into string, err error) error {
	why, ok := errors.AsType[*wire.Error](err)
	if !ok || why.Details["reason"] != "conflict" && why.Details["reason"] != "not_verified" {
		return err
	}
	if heir, ok := m.heir(&w); ok && !heir.State.Final() {
		why.Hint = fmt.Sprintf("The task %s of %s resolves it: wait until it ends, and merge that task", wire.ShortID(heir.ID), heir.AssignedTo)
		if heir.AssignedTo == "" {
			why.Hint = fmt.Sprintf("No agent has the task %s yet, which resolves it. Assign it: orchestrator task assign %[1]s AGENT", wire.ShortID(heir.ID))
		}
		return why
	} else if ok && heir.State == wire.TaskDone {
		why.Hint = "Its work is part of another task: orchestrator task merge " + wire.ShortID(heir.ID)
		return why
	}
	a := m.heirFor(ctx, r, t)
	if a == nil || w.Rounds >= a.Attempts {
		return why
	}
	onto, failed := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+into)
	if failed != nil {
		return why
	}
	to := into
	if _, work := m.options.Tasks.Elsewhere(a.Name); work != nil || a.Placed {
		to = "the commit " + onto // the host may have another one as the end of the branch
	}
	id, who := "", t.AssignedTo
	failed = m.writing(ctx, r, func() (err error) { // so that the agent does not begin elsewhere before the branch is made
		if known, ok := m.options.Tasks.OpenTask(heirName(w.branch) + into); ok { // of an orchestrator that was killed then
			id, who = known.ID, known.AssignedTo
			if marks, err := r.marks(); err != nil || marks[a.Branch(id)].Task == id {
				return err // its agent has begun
			}
			return r.inherit(ctx, w, &wire.Task{ID: id}, a.Branch(id), onto)
		}
		if id, err = m.options.Tasks.Submit(resolving(t, a, &w, into, to, why)); err != nil {
			return err
		}
		if err = r.inherit(ctx, w, &wire.Task{ID: id}, a.Branch(id), onto); err != nil {
			m.options.Tasks.Cancel(id, "its branch could not be made")
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

// heirFor returns the agent of a task if it can get a second task, to resolve a failed merge. It returns nil for a task
// of a session: only its planner adds tasks there, a member may know no other tasks, and no reviewer would see the
// result. It also returns nil for a workspace from a task block, since the block applies to this task alone. Then a
// person decides.
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
	if own, err := m.repository(ctx, a); err != nil || own.top != r.top {
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
		s.Verify = t.Verify
	}
	return s
}

// adopt makes the branch of a task that is to resolve a conflict, if the orchestrator was killed after it had submitted
// the task.
func (m *Manager) adopt(ctx context.Context, r *repository, t *wire.Task) error {
	noted, err := r.noted()
	if err != nil {
		return err
	}
	if what, ok := noted.Awaited[t.Name]; ok && t.SubmittedBy == "operator" {
		return m.writing(ctx, r, func() error { return r.reserve(ctx, t.ID, t.Name, what) })
	}
	name, ok := strings.CutPrefix(t.Name, "Merge ")
	branch, into, also := strings.Cut(name, " into ")
	if !ok || !also || t.SubmittedBy != "operator" {
		return nil
	}
	return m.writing(ctx, r, func() error {
		if err := r.setAside(ctx, t); err != nil { // it is tried again, and begins at the same branch
			return err
		}
		marks, err := r.marks()
		own := r.agent.Branch(t.ID)
		if err != nil || marks[own].Task != "" || marks[branch].Task == "" {
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
		return r.inherit(ctx, w, t, own, onto)
	})
}

// inherit makes the branch of the task that is to resolve why another one could not be merged. If the orchestrator is
// killed before the branch is noted, inherit is called again.
func (r *repository) inherit(ctx context.Context, w worktree, heir *wire.Task, branch, onto string) error {
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
		return cmp.Or(err, fmt.Errorf("the branch %s already exists", branch))
	}
	if err := r.mark(w.branch, func(m *mark) { m.Heir = heir.ID }); err != nil {
		return err
	}
	return r.note(ctx, branch, mark{Task: heir.ID, Base: w.Base, Began: w.Began, Rounds: w.Rounds + 1, Onto: onto, Restarts: restarts(heir)})
}
