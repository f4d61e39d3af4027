package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/hub"
)

// An agent on another machine has its workspaces there. The host makes them in its own copy of the repository, and runs
// only the commands of its configuration file: a hub cannot name commands. When the agent completes a task, the commits
// of its branch come back with the reply of the host, as a bundle of git. So the hub has the branch, and shows and
// merges it like any other. Commits that the repository of the host lacks come from a remote that it has, or else from
// the hub, as a bundle too.

// A request asks a host for an operation on the workspace of a task.
type request struct {
	Task     string `json:"task"`
	Name     string `json:"name"`
	Base     string `json:"base"`              // the first commit of a new workspace
	Onto     string `json:"onto,omitzero"`     // a commit that the agent is to merge
	Restarts int    `json:"restarts,omitzero"` // how often the task was tried again on a fresh branch
	Complete bool   `json:"complete,omitzero"`
	Bundle   []byte `json:"bundle,omitzero"` // Base and Onto, if a host lacks them

	Session string     `json:"session,omitzero"`
	Block   string     `json:"block,omitzero"`
	Verify  [][]string `json:"verify,omitzero"` // the commands of the task itself
}

// requestFor returns a request for a task that begins at a commit.
func requestFor(t *wire.Task, base string) request {
	in := request{Task: t.ID, Name: t.Name, Base: base, Restarts: restarts(t)}
	if t.Details != nil {
		in.Session, in.Block, in.Verify = t.SessionID, t.Block, t.Verify
	}
	return in
}

// foreign returns the first verify command of a request that is in no session and no task block of a team, or nil.
func (in *request) foreign(t *Team) []string {
	for _, argv := range in.Verify {
		known := false
		for g := range t.groups {
			known = known || slices.ContainsFunc(g.Verify, func(own []string) bool { return slices.Equal(own, argv) })
		}
		if !known {
			return argv
		}
	}
	return nil
}

// commits returns the commits that a host needs.
func (in *request) commits() []string {
	if in.Onto == "" {
		return []string{in.Base}
	}
	return []string{in.Base, in.Onto}
}

// A reply is the answer of a host.
type reply struct {
	Workspace wire.Workspace `json:"workspace,omitzero"`
	Ran       int            `json:"ran,omitzero"`  // verify commands
	Said      []byte         `json:"said,omitzero"` // by them
	Changed   []string       `json:"changed,omitzero"`
	Head      string         `json:"head,omitzero"`    // the last commit of the branch
	Began     string         `json:"began,omitzero"`   // the commit where it began
	Bundle    []byte         `json:"bundle,omitzero"`  // the commits since then
	Failed    string         `json:"failed,omitzero"`  // why it is not verified
	Fresh     bool           `json:"fresh,omitzero"`   // the workspace was not there, and was made
	Swapped   string         `json:"swapped,omitzero"` // why the files of git there cannot be believed
	Lacks     bool           `json:"lacks,omitzero"`   // a commit: the hub sends the request again, with a bundle
	Has       []string       `json:"has,omitzero"`     // the last commits of branches
}

// maxBundle is the maximum size of a bundle from a host. maxSent is the maximum from a hub: it is lower because a
// request is one line of the link. maxFetch is how long a host waits for its remotes, and the hub for a bundle.
const (
	maxBundle = 32 << 20
	maxSent   = 512 << 10
	maxFetch  = 30 * time.Second
)

// Serve answers a request of a hub about an agent of this host.
func (m *Manager) Serve(ctx context.Context, agent string, text []byte) ([]byte, error) {
	var in request
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	team := m.configured()
	a := team.of(agent, &wire.Task{Details: &wire.Details{SessionID: in.Session, Block: in.Block, Verify: in.Verify}})
	if a == nil {
		return nil, fmt.Errorf("the configuration there has no agent %q", agent)
	}
	if argv := in.foreign(team); in.Complete && argv != nil {
		return nil, fmt.Errorf("the verify command %q of the task is not in a session or task block of the host's configuration, and a host runs only those: add it to the files of the hub and its hosts", words(argv))
	}
	a.Base = in.Base
	ctx, end := m.begin(ctx, agent)
	defer end()
	out, err := m.serve(ctx, a, &in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (m *Manager) serve(ctx context.Context, a *Agent, in *request) (out reply, err error) {
	dir := a.Dir
	var r *repository
	if in.Base != "" {
		if a.Repository == "" {
			return out, errors.New("the agent has no workspace in the configuration there: use the same file on the hub and its hosts")
		}
		if r, err = m.repository(ctx, a); err != nil {
			return out, err
		}
		marks, err := r.marks()
		if err != nil {
			return out, err
		}
		if mark := marks[a.Branch(in.Task)]; mark.Task == in.Task && mark.Restarts >= in.Restarts {
			a.Base, out.Began = mark.Base, mark.Began
		} else if out.Lacks, err = m.lacks(ctx, r, in); err != nil {
			return out, err
		} else if out.Lacks {
			out.Has, err = r.tips(ctx)
			return out, err
		} else {
			out.Began = in.Base
		}
		t := &wire.Task{ID: in.Task, Name: in.Name, Details: &wire.Details{Restarts: in.Restarts}}
		out.Workspace, out.Fresh, err = m.enter(ctx, a, t)
		if in.Complete && errors.Is(err, errSwapped) {
			out.Swapped, err = err.Error(), nil
		}
		if err != nil || out.Swapped != "" || in.Complete && out.Fresh {
			return out, err
		}
		dir = out.Workspace.Path
	}
	if !in.Complete {
		return out, nil
	}
	if r != nil {
		loose, err := r.changes(ctx, dir)
		if err != nil {
			return out, err
		}
		if len(loose) > 0 {
			out.Failed = fmt.Sprintf("%s: %s. Commit them first: only commits are sent to the hub", count(len(loose), "file is not committed", "files are not committed"), some(loose))
			return out, nil
		}
	}
	out.Ran = len(a.Verify)
	if out.Said, err = m.each(ctx, a, a.Verify, dir); err != nil {
		if _, ok := errors.AsType[*failed](err); !ok {
			return out, err
		}
		out.Failed = err.Error()
		return out, nil
	}
	if r != nil {
		err = m.pack(ctx, r, dir, &out)
	}
	return out, err
}

// pack adds the changes in a workspace to a reply.
func (m *Manager) pack(ctx context.Context, r *repository, dir string, out *reply) (err error) {
	if out.Changed, err = m.changed(ctx, r.agent, out.Workspace); err != nil {
		return err
	}
	if out.Head, err = r.gitIn(ctx, dir, "rev-parse", "HEAD"); err != nil || out.Head == out.Began {
		return err
	}
	out.Bundle, err = r.runIn(ctx, command{argv: []string{"git", "bundle", "create", "--quiet", "-", out.Began + "..HEAD"}, dir: dir, most: maxBundle})
	if errors.Is(err, errLong) {
		err = fmt.Errorf("the commits of the branch %s have more than %d MiB: bring them to the repository of the orchestrator yourself, and complete the task for the agent", out.Workspace.Branch, maxBundle>>20)
	}
	return err
}

// lacks reports whether the repository lacks a commit of a request, also after a fetch from its remotes. It adds the
// bundle of the request first.
func (m *Manager) lacks(ctx context.Context, r *repository, in *request) (bool, error) {
	if in.Bundle != nil {
		if err := m.take(ctx, r, in.Bundle); err != nil {
			return false, err
		}
	}
	missing := func() (string, error) {
		for _, commit := range in.commits() {
			if there, err := r.has(ctx, "rev-parse", "--verify", "--quiet", commit+"^{commit}"); !there || err != nil {
				return commit, err
			}
		}
		return "", nil
	}
	commit, err := missing()
	if commit == "" || err != nil {
		return false, err
	}
	fetching, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	r.fetch(fetching)
	if commit, err = missing(); commit != "" && err == nil && in.Bundle != nil {
		err = fmt.Errorf("the repository %s there has no commit %.12s, and the hub has not sent it", r.top, commit)
	}
	return commit != "", err
}

// fetch fetches from the remotes of the repository, as its agent would.
func (r *repository) fetch(ctx context.Context) {
	if g, err := r.at(ctx, r.top); err == nil {
		g.remotes = true
		_, _ = r.run(ctx, r.agent, command{argv: []string{"git", "fetch", "--all", "--quiet", "--no-write-fetch-head", "--upload-pack", "git-upload-pack"}, dir: r.top, git: g})
	}
}

// unbundle adds the commits of a bundle to the repository.
func (r *repository) unbundle(ctx context.Context, file, refs string) error {
	g, err := r.at(ctx, r.top)
	if err != nil {
		return err
	}
	g.bundle = true
	argv := []string{"git", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", file, refs}
	_, err = r.run(ctx, r.agent, command{argv: argv, dir: r.top, git: g})
	return err
}

// sent is where refs to the commits of a bundle of the hub are, in both repositories.
const sent = "refs/orchestrator/sent/"

// take adds the commits of a bundle of the hub to the repository of a host.
func (m *Manager) take(ctx context.Context, r *repository, bundle []byte) error {
	file, remove, err := lend(ctx, r.agent, bundle)
	if err != nil {
		return err
	}
	defer remove()
	return m.writing(ctx, r, func() error {
		r.dropSent(ctx)
		return r.unbundle(ctx, file, sent+"*:"+sent+"*")
	})
}

// tips returns the last commits of the branches of a repository.
func (r *repository) tips(ctx context.Context) ([]string, error) {
	text, err := r.git(ctx, "for-each-ref", "--count=1000", "--sort=-committerdate", "--format=%(objectname)", "refs/heads", "refs/remotes", sent)
	return strings.Fields(text), err
}

// dropSent removes the refs to the commits of earlier bundles.
func (r *repository) dropSent(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	refs, _ := r.git(ctx, "for-each-ref", "--format=%(refname)", sent)
	for _, ref := range strings.Fields(refs) {
		_, _ = r.git(ctx, "update-ref", "-d", ref)
	}
}

// bundle returns the commits of a request that a host lacks.
func (m *Manager) bundle(ctx context.Context, r *repository, in *request, has []string) (text []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxFetch, errors.New("the commits that the repository there lacks could not be collected in time"))
	defer cancel()
	argv := []string{"git", "bundle", "create", "--quiet", "-", "--ignore-missing"}
	for _, commit := range in.commits() {
		argv = append(argv, sent+commit)
	}
	err = m.writing(ctx, r, func() error {
		r.dropSent(ctx) // of a hub that was killed
		defer r.dropSent(ctx)
		for _, commit := range in.commits() {
			if _, err := r.git(ctx, "update-ref", sent+commit, commit); err != nil {
				return err
			}
		}
		more := slices.Clone(argv)
		for _, commit := range has {
			if isCommit.MatchString(commit) {
				more = append(more, "^"+commit)
			}
		}
		text, err = r.runIn(ctx, command{argv: more, dir: r.top, most: maxSent})
		if _, failed := errors.AsType[*failed](err); failed && len(has) > 0 { // such as a shallow copy, which has only the last commits
			text, err = r.runIn(ctx, command{argv: argv, dir: r.top, most: maxSent})
		}
		return err
	})
	if errors.Is(err, errLong) {
		err = fmt.Errorf("the repository there lacks more than %d KiB of commits: bring it up to date, or give it a remote that has them", maxSent>>10)
	}
	return text, err
}

// ask sends a request to the host of a task. The error is a [hostlink.Failure] if the host has answered.
func (m *Manager) ask(ctx context.Context, work func(context.Context, []byte) ([]byte, error), in request) (out reply, err error) {
	text, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	if text, err = work(ctx, text); err != nil {
		return out, err
	}
	if err = json.Unmarshal(text, &out); err != nil {
		err = hostlink.Failure("its answer cannot be read: " + err.Error())
	}
	return out, err
}

// enterSomewhere is enter, on the machine of the agent.
func (m *Manager) enterSomewhere(ctx context.Context, a *Agent, t *wire.Task) (w wire.Workspace, err error) {
	host, work := m.options.Tasks.Elsewhere(a.Name)
	switch {
	case work == nil && a.Placed:
		return w, errors.New("the host of its agent is not connected")
	case work == nil:
		w, _, err = m.enter(ctx, a, t)
		return w, err
	}
	base, from, onto, err := m.start(ctx, a, t)
	if err != nil {
		return w, err
	}
	in := requestFor(t, from)
	in.Onto = onto
	out, err := m.ask(ctx, work, in)
	if err == nil && out.Lacks {
		out, err = m.askAgain(ctx, a, work, in, out.Has)
	}
	if err != nil {
		return w, fmt.Errorf("on %s: %w", host, err)
	}
	w = out.Workspace
	w.Host, w.Base, w.Began = host, base, out.Began
	return w, nil
}

// askAgain is ask, with the commits that a host lacks.
func (m *Manager) askAgain(ctx context.Context, a *Agent, work func(context.Context, []byte) ([]byte, error), in request, has []string) (out reply, err error) {
	r, err := m.repository(ctx, a)
	if err != nil {
		return out, err
	}
	if in.Bundle, err = m.bundle(ctx, r, &in, has); err != nil {
		return out, err
	}
	return m.ask(ctx, work, in)
}

// start returns the base of the branch of a task, and its first commit: for a branch that came back before, its end at
// that time. Onto is the commit that the agent is to merge, if the task is to resolve a conflict.
func (m *Manager) start(ctx context.Context, a *Agent, t *wire.Task) (base, commit, onto string, err error) {
	if a.Repository == "" {
		return "", "", "", nil
	}
	r, err := m.repository(ctx, a)
	if err == nil {
		err = m.adopt(ctx, r, t)
	}
	if err != nil {
		return "", "", "", err
	}
	mark, err := m.reserved(ctx, r, t)
	if err != nil {
		return "", "", "", err
	}
	if mark.Task == t.ID {
		if commit, err = r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+mark.branch); err == nil {
			return mark.Base, commit, mark.Onto, nil
		}
	}
	base, commit, err = m.beginning(ctx, r, t)
	return base, commit, mark.Onto, err
}

// reserved returns the mark of the branch of a task, if this attempt has one.
func (m *Manager) reserved(ctx context.Context, r *repository, t *wire.Task) (mark worktree, err error) {
	m.worktrees.Lock() // handBack may be about to make the branch
	defer m.worktrees.Unlock()
	marks, err := r.marks()
	if mark = marks[r.agent.Branch(t.ID)]; mark.Task != t.ID || mark.Restarts < restarts(t) {
		return worktree{}, err
	}
	return mark, err
}

// runElsewhere is run, on the host of the agent.
func (v *verification) runElsewhere(ctx context.Context, host string, work func(context.Context, []byte) ([]byte, error)) (report *hub.Artifact, changed []string, refused *wire.Error) {
	doing, did := "is being verified on "+host, "is verified on "+host
	if len(v.a.Verify) == 0 {
		doing, did = "comes back from "+host, "has come back from "+host
	}
	v.note(events.TaskVerifying, doing)
	began := time.Now()
	base, from, err := "", "", error(nil)
	if v.task.Details != nil && v.task.Workspace != nil { // otherwise the agent does not know of one
		base, from, _, err = v.m.start(ctx, v.a, v.task)
	}
	var out reply
	lost := false
	if err == nil {
		in := requestFor(v.task, from)
		in.Complete = true
		out, err = v.m.ask(ctx, work, in)
		_, answered := errors.AsType[hostlink.Failure](err)
		lost = err != nil && !answered
	}
	switch {
	case err != nil:
	case out.Lacks:
		err = errors.New("the host's repository has neither the workspace of the task nor its first commit")
	case out.Swapped != "":
		v.m.refused(v.a.Name, "on "+host+": "+out.Swapped)
		return nil, nil, v.unusable("the workspace on " + host + " cannot be used: " + out.Swapped)
	case out.Fresh:
		return nil, nil, v.remade(out.Workspace.Path)
	case out.Failed != "":
		err = errors.New(out.Failed)
	case out.Ran < len(v.a.Verify):
		err = fmt.Errorf("%s of %d ran there: use the same file and the same version on the hub and its hosts", count(out.Ran, "verify command", "verify commands"), len(v.a.Verify))
	case out.Bundle != nil && (!isCommit.MatchString(out.Head) || !isCommit.MatchString(out.Began)):
		err = errors.New("the host has sent no commits")
	}
	if err == nil && out.Bundle != nil {
		err = v.m.bringBack(ctx, v.a, v.task, base, &out)
	}
	if err == nil && out.Head != "" && isCommit.MatchString(out.Head) {
		v.at(out.Head)
	}
	switch {
	case err == nil:
		v.note(events.TaskVerified, fmt.Sprintf("%s, in %s", did, time.Since(began).Round(100*time.Millisecond)))
		text := strings.ToValidUTF8(string(out.Said), "\uFFFD")
		if text == "" {
			return nil, out.Changed, nil
		}
		return &hub.Artifact{Name: "verification.txt", Type: "text/plain", Content: text, Size: int64(len(text))}, out.Changed, nil
	case lost && ctx.Err() == nil:
		v.note(events.TaskUnverified, "was not verified: on "+host+": "+err.Error())
		return nil, nil, refusal("interrupted", "the verification on "+host+" was not possible: "+err.Error(), "complete the task again")
	case ctx.Err() != nil:
		v.note(events.TaskUnverified, "was not verified: its agent is being stopped, or the task has ended")
		return nil, nil, refusal("interrupted", "the verification was interrupted", "complete the task again")
	}
	return nil, nil, v.refuse("not_verified", fmt.Errorf("on %s: %w", host, err))
}

// isCommit matches the id of a commit.
var isCommit = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// lend writes a text to a new file that the user of an agent can read. The returned function removes it.
func lend(ctx context.Context, a *Agent, text []byte) (file string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "orchestrator-bundle-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file = filepath.Join(dir, "bundle")
	if err = writeFor(ctx, a, dir, file, text); err != nil {
		remove()
	}
	return file, remove, err
}

// writeFor writes the file of lend. The user gets the folder last, and so cannot put another file there before.
func writeFor(ctx context.Context, a *Agent, dir, file string, text []byte) error {
	var spec child.Spec
	if err := a.Fill(ctx, &spec); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && spec.User != nil {
		err = f.Chown(spec.User.UID, spec.User.GID)
	}
	if err = errors.Join(err, f.Close()); err == nil && spec.User != nil {
		err = os.Chown(dir, spec.User.UID, spec.User.GID)
	}
	return err
}

// bringBack adds the commits of a host to the branch of a task.
func (m *Manager) bringBack(ctx context.Context, a *Agent, t *wire.Task, base string, back *reply) error {
	r, err := m.repository(ctx, a)
	if err != nil {
		return err
	}
	file, remove, err := lend(ctx, a, back.Bundle)
	if err != nil {
		return err
	}
	defer remove()
	branch := a.Branch(t.ID)
	err = m.writing(ctx, r, func() error {
		if err := r.setAside(ctx, t); err != nil {
			return err
		}
		if err := r.unbundle(ctx, file, "HEAD"); err != nil {
			return err
		}
		if there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+branch); there || err != nil {
			return err
		}
		if err := r.note(ctx, branch, mark{Task: t.ID, Base: base, Began: back.Began, Restarts: restarts(t)}); err != nil {
			return err
		}
		if err := r.ignore(ctx); err != nil {
			return err
		}
		_, err := r.git(ctx, "branch", branch, back.Head)
		return err
	})
	if err != nil {
		return err
	}
	w, _, err := m.make(ctx, r, t)
	if err != nil {
		return err
	}
	head, err := r.gitIn(ctx, w.path, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	loose, err := r.changes(ctx, w.path)
	switch {
	case err != nil:
		return err
	case head == w.Back && len(loose) == 0: // unchanged here: the commits of the host replace it
		_, err = r.gitIn(ctx, w.path, "reset", "--hard", "--quiet", back.Head)
	default:
		_, err = r.gitIn(ctx, w.path, "merge", "--ff-only", "--quiet", back.Head)
	}
	if err == nil {
		err = r.mark(branch, func(m *mark) { m.Back = back.Head })
	}
	return err
}
