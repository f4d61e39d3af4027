package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// Verify checks the result of a task that an agent completes, and runs the verify commands. Tested reports whether the
// agent claims that its tests passed. Verify returns a report of the commands, the files that have changed in the
// workspace, and a refusal if a check fails.
func (m *Manager) Verify(agent, id string, result []byte, tested bool) (report *hub.Artifact, changed []string, refused *wire.Error) {
	t, ok := m.options.Tasks.Held(agent, id)
	if own := m.configured().Agents[agent]; t.ID == "" && own != nil && own.Role == wire.RolePlanner { // it may complete tasks of other agents
		if of, _ := m.options.Tasks.Task(id); of.AssignedTo != "" {
			agent = of.AssignedTo
			t, ok = m.options.Tasks.Held(agent, id)
		}
	}
	if !ok {
		return nil, nil, nil // the decision refuses it
	}
	v := &verification{m: m, a: m.configured().of(agent, &t), task: &t, claims: claims{result: result, tested: tested}}
	switch {
	case v.a == nil && t.Details != nil && t.Verify != nil:
		v.a = &Agent{Name: agent, Attempts: 1}
		v.note(events.TaskVerifying, "is being verified")
		return nil, nil, v.refuse("not_verified", errors.New("its agent was not started by this orchestrator, so its commands cannot run"))
	case v.a == nil:
		return nil, nil, nil
	}
	if err := v.a.mismatch(&t, result); err != nil {
		v.note(events.TaskVerifying, "is being verified: its result")
		return nil, nil, v.refuse("result", err)
	}
	if len(v.a.Verify) == 0 && v.a.Repository == "" {
		return nil, nil, nil
	}
	ctx, end := m.begin(context.Background(), agent)
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go m.watch(ctx, cancel, agent, t.ID)
	switch host, work := m.options.Tasks.Elsewhere(agent); {
	case work != nil:
		return v.runElsewhere(ctx, host, work)
	case v.a.Placed:
		return nil, nil, refusal("interrupted", "the task is not verified, because the host of its agent is not connected", "complete the task again")
	}
	return v.run(ctx)
}

// A verification is one of a task.
type verification struct {
	m    *Manager
	a    *Agent
	task *wire.Task
	claims
	begun bool // task.verifying was noted
}

// note records a step of the verification.
func (v *verification) note(kind, text string) {
	v.begun = v.begun || kind == events.TaskVerifying
	v.m.options.Tasks.Note(&wire.TaskChecked{Kind: kind, Agent: v.a.Name, Task: v.task.ID, Text: text})
}

// run runs the commands.
func (v *verification) run(ctx context.Context) (report *hub.Artifact, changed []string, refused *wire.Error) {
	if len(v.a.Verify) > 0 {
		v.note(events.TaskVerifying, "is being verified: "+words(v.a.Verify[0]))
	}
	if v.a.Repository != "" && restarts(v.task) > 0 && v.task.Workspace == nil {
		return nil, nil, v.unusable("the task is tried again in a new workspace. The agent must call get-task to get its path")
	}
	began := time.Now()
	var w wire.Workspace
	dir, err := v.a.Dir, error(nil)
	if v.task.Details != nil && v.task.Workspace != nil && v.a.Repository != "" { // otherwise the agent does not know of one
		var fresh bool
		w, fresh, err = v.m.enter(ctx, v.a, v.task)
		switch {
		case err != nil && ctx.Err() == nil:
			if errors.Is(err, errSwapped) {
				v.m.refused(v.a.Name, err.Error())
			}
			return nil, nil, v.unusable("the workspace cannot be used: " + err.Error())
		case err == nil && fresh:
			return nil, nil, v.remade(w.Path)
		case err == nil:
			dir = w.Path
			if err := v.m.altered(ctx, v.a, w); err != nil && ctx.Err() == nil {
				return nil, nil, v.unusable(err.Error())
			}
			if changed, err = v.m.changed(ctx, v.a, w); err == nil {
				err = v.m.committed(ctx, v.a, w)
			}
		}
	}
	var said []byte
	if err == nil {
		said, err = v.m.each(ctx, v.a, v.a.Verify, dir)
	}
	if err == nil && w.Path != "" {
		if len(v.a.Verify) > 0 {
			if err = v.m.committed(ctx, v.a, w); err != nil {
				err = fmt.Errorf("after the verify commands, %w. Add the commands' output to .gitignore", err)
			}
		}
		if err == nil {
			v.completed(ctx, w.Path)
		}
	}
	switch {
	case err == nil && len(v.a.Verify) == 0:
		return nil, changed, nil
	case len(v.a.Verify) == 0 && ctx.Err() == nil:
		return nil, nil, refusal("no_workspace", "the task is not done: "+err.Error(), "correct it, and complete the task again")
	case err == nil:
		v.note(events.TaskVerified, fmt.Sprintf("is verified: %s, in %s", allWords(v.a.Verify), time.Since(began).Round(100*time.Millisecond)))
		text := strings.ToValidUTF8(string(said), "\uFFFD")
		return &hub.Artifact{Name: "verification.txt", Type: "text/plain", Content: text, Size: int64(len(text))}, changed, nil
	case ctx.Err() != nil:
		v.note(events.TaskUnverified, "was not verified: its agent is being stopped, or the task has ended")
		return nil, nil, refusal("interrupted", "the verification was interrupted", "complete the task again")
	}
	return nil, nil, v.refuse("not_verified", v.against(err))
}

// refused reports that an agent has made files of git name another repository.
func (m *Manager) refused(agent, why string) {
	m.options.Tasks.Refused(agent, "has changed files that git uses to find a repository: "+why)
}

// unusable refuses a completion because its workspace cannot be used.
func (v *verification) unusable(why string) *wire.Error {
	if v.begun {
		v.note(events.TaskUnverified, "was not verified: "+why)
	}
	return refusal("no_workspace", "the task is not done: "+why, "correct it, and complete the task again")
}

// remade refuses a completion because its workspace was gone and has been made again, without the uncommitted changes.
func (v *verification) remade(path string) *wire.Error {
	why := fmt.Sprintf("the folder of its workspace was removed or replaced, and is created again from the branch: %s. Uncommitted changes are lost", path)
	v.m.options.Tasks.Note(&wire.TaskChecked{Kind: events.TaskWorkspace, Agent: v.a.Name, Task: v.task.ID, Text: "has its workspace again: " + why, Workspace: v.task.Workspace})
	return v.unusable(why)
}

// committed returns an error if the task is to merge a commit and its branch lacks that commit. It also returns an
// error for uncommitted changes in a workspace with a branch for the merge queue, because the queue merges only
// commits.
func (m *Manager) committed(ctx context.Context, a *Agent, w wire.Workspace) error {
	r, err := m.repository(ctx, a)
	if err != nil {
		return err
	}
	marks, err := r.marks()
	if err != nil {
		return err
	}
	if onto := marks[w.Branch].Onto; onto != "" {
		if merged, err := r.has(ctx, "merge-base", "--is-ancestor", onto, "refs/heads/"+w.Branch); err == nil && !merged {
			return fmt.Errorf("the commit %s is not part of the branch: merge it, as the task says", onto)
		}
	}
	if !m.configured().Queue {
		return nil
	}
	loose, err := r.changes(ctx, w.Path)
	if err == nil && len(loose) > 0 {
		err = fmt.Errorf("%s: %s. Commit them first: only commits are merged", count(len(loose), "file is not committed", "files are not committed"), some(loose))
	}
	return err
}

// completed records the last commit of the branch. The queue merges no later one.
func (v *verification) completed(ctx context.Context, dir string) {
	r, err := v.m.repository(ctx, v.a)
	if err != nil {
		return
	}
	if head, err := r.gitIn(ctx, dir, "rev-parse", "HEAD"); err == nil {
		v.at(head)
	}
}

func (v *verification) at(head string) {
	w := *v.task.Workspace
	w.Commit = head
	v.m.options.Tasks.Note(&wire.TaskChecked{Kind: events.TaskWorkspace, Agent: v.a.Name, Task: v.task.ID, Text: "is completed at " + head, Workspace: &w})
}

// refuse refuses a completion. After several failures, a person is asked.
func (v *verification) refuse(reason string, err error) *wire.Error {
	v.m.options.Tasks.Note(&wire.TaskChecked{Kind: events.TaskUnverified, Agent: v.a.Name, Task: v.task.ID, Text: "is not verified: " + firstLine(err), Failed: true})
	n := 1
	if v.task.Details != nil {
		n += v.task.Unverified
	}
	text := "the task is not done, because it is not verified"
	question := fmt.Sprintf("The task %[1]q was verified %[2]s without success: %[3]s.\nWhat should the agent do? It gets your answer. To end the task instead: orchestrator task done %[4]s, or task fail %[4]s",
		v.task.Name, times(n), err.Error(), wire.ShortID(v.task.ID))
	if n%v.a.Attempts != 0 || v.m.options.Tasks.Ask(v.a.Name, v.task.ID, question) != nil {
		return refusal(reason, text+": "+err.Error(), "correct it, and complete the task again")
	}
	return refusal("needs_human", text+", and a person is asked what to do: "+err.Error(), "wait for the answer")
}

// mismatch returns why a result does not match the schema for its task.
func (a *Agent) mismatch(t *wire.Task, result []byte) error {
	for _, of := range append([]string{t.Type}, t.RequiredCapabilities...) {
		if check := a.Outputs[of]; check != nil && result != nil {
			if err := check(result); err != nil {
				return fmt.Errorf("the result does not match the schema of %s: %w", of, err)
			}
		}
	}
	return nil
}

// watch cancels a verification when its task has ended, or has gone to another agent.
func (m *Manager) watch(ctx context.Context, cancel context.CancelFunc, agent, task string) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if t, _ := m.options.Tasks.Held(agent, task); t.ID == "" {
				cancel()
			}
		}
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// claims are the statements of an agent about its work when it completes a task.
type claims struct {
	result []byte
	tested bool // its tests have passed
}

// against adds the claims of the agent to the error of a command, if they contradict it.
func (c *claims) against(err error) error {
	f, ok := errors.AsType[*failed](err)
	if !ok {
		return err
	}
	var said struct {
		Evidence []struct {
			Command string `json:"command"`
			Exit    *int   `json:"exit"`
		} `json:"evidence"`
	}
	_ = json.Unmarshal(c.result, &said) // most results have no evidence
	for _, e := range said.Evidence {
		if e.Command == words(f.argv) && e.Exit != nil && *e.Exit != f.code {
			return fmt.Errorf("%w\nThe result says that it ended with exit %d", err, *e.Exit)
		}
	}
	if c.tested {
		return fmt.Errorf("%w\nThe completion says that the tests have passed", err)
	}
	return err
}

// altered returns an error if a clone of the repository would have other files than the workspace.
func (m *Manager) altered(ctx context.Context, a *Agent, w wire.Workspace) error {
	r, err := m.repository(ctx, a)
	if err != nil {
		return err
	}
	marks, err := r.marks()
	if err != nil {
		return err
	}
	return r.altered(ctx, marks[w.Branch])
}

// changed returns the files that have changed in a workspace since its branch began.
func (m *Manager) changed(ctx context.Context, a *Agent, w wire.Workspace) ([]string, error) {
	r, err := m.repository(ctx, a)
	if err != nil {
		return nil, err
	}
	marks, err := r.marks()
	if err != nil {
		return nil, err
	}
	began, err := r.origin(ctx, &worktree{path: w.Path, mark: mark{Base: w.Base, Began: marks[w.Branch].Began}})
	if err != nil {
		return nil, err
	}
	tracked, err := r.gitIn(ctx, w.Path, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", began)
	if err != nil {
		return nil, err
	}
	committed, err := r.gitIn(ctx, w.Path, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", began, "HEAD")
	if err != nil {
		return nil, err
	}
	fresh, err := r.gitIn(ctx, w.Path, "ls-files", "--others", "--exclude-standard", "-z")
	files := strings.FieldsFunc(tracked+"\x00"+committed+"\x00"+fresh, func(c rune) bool { return c == 0 })
	slices.Sort(files)
	return append([]string{}, slices.Compact(files)...), err // not nil, because it is known
}
