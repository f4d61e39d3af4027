package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

const (
	// maxRun is how long one command may run.
	maxRun = 30 * time.Minute
	// maxOutput is how much of the output of one command is kept: its end. maxDiff is the maximum size of a diff.
	maxOutput = 256 << 10
	maxDiff   = 4 << 20
	// lull is how long git may take to remove its locks when it is ended.
	lull = 2 * time.Second
)

// Options configure a Manager.
type Options struct {
	Start func(child.Spec) (Process, error)
	Tasks Tasks // nil: the Manager works for a host, without tasks
	Log   hclog.Logger
	// Apart returns a folder that confined agents cannot change, for the files of merges. The user, if not nil, can make
	// files in it.
	Apart func(*child.User) (string, error)
	// Notes is the path of the file with the notes about branches; "": they are kept in memory.
	Notes string
	// ReadOnly leaves repositories as they are. Then only Task is called of Tasks.
	ReadOnly bool
}

// Tasks are the tasks of the team of a Manager.
type Tasks interface {
	// Held returns a task that an agent holds, and whether the agent could complete it now.
	Held(agent, task string) (t wire.Task, completable bool)
	Task(id string) (wire.Task, bool) // any task
	// OpenTask returns the open task of a name that the operator has submitted.
	OpenTask(name string) (wire.Task, bool)
	Note(wire.Message) // submits a message of the orchestrator itself
	Submit(wire.SubmitTask) (id string, err error)
	Cancel(id, why string)
	// Elsewhere returns the host of an agent, and a function that sends it a request, or nil if the agent is on this
	// machine.
	Elsewhere(agent string) (host string, work func(ctx context.Context, request []byte) (reply []byte, err error))
	Unmerged() []wire.Task // the done tasks with branches that the queue has not merged
	Merged()               // the queue is at rest
	// Hold makes a task wait for another one.
	Hold(agent, task, on, text string)
	// LastMerge returns the text of the latest task.merged event of a task.
	LastMerge(task string) (text string, ok bool)
	Settle() // waits until everything that was noted is durable
	// Refused reports a refused attempt of an agent.
	Refused(agent, what string)
	// Ask makes a person decide about a task, in the name of its agent.
	Ask(agent, task, question string) error
	// Follow calls send for each event after one, until ctx ends.
	Follow(ctx context.Context, since int64, send func(wire.Event) error) error
}

// errSlow reports a command that took too long.
var errSlow = errors.New("did not end")

// errLong reports an output that was not kept whole.
var errLong = errors.New("printed more than the limit")

// A Process is a command that runs.
type Process interface {
	Signal(syscall.Signal)
	Kill()
}

// A Manager makes the workspaces of the tasks of a team, and runs its verify commands.
type Manager struct {
	options Options
	book    *book

	worktrees sync.Mutex // held while git adds or removes a worktree

	queued atomic.Bool // the queue is at work

	mu      sync.Mutex
	merging map[branchIn]chan struct{} // each holds a value during a merge into a branch
	late    map[branchIn]string        // why branches are put off
	team    Team
	running map[*job]bool
	stopped map[string]bool // agents
}

// New returns a Manager without agents.
func New(o Options) *Manager {
	return &Manager{
		options: o, book: &book{path: o.Notes, readOnly: o.ReadOnly},
		merging: make(map[branchIn]chan struct{}), late: make(map[branchIn]string), running: make(map[*job]bool), stopped: make(map[string]bool),
	}
}

// Set replaces the configuration.
func (m *Manager) Set(t Team) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.team = t
}

// configured returns the configuration. It is not modified.
func (m *Manager) configured() *Team {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.team
	return &t
}

// Check returns why workspaces could not be made, or commands not run: the first reason for each agent and group.
func (m *Manager) Check(ctx context.Context, t Team) (reasons []string) {
	seen := make(map[string]bool)
	check := func(name, place string, a *Agent) {
		if a == nil || seen[place] { // another replica
			return
		}
		seen[place] = true
		if err := m.check(ctx, a); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %s: %s", place, name, firstLine(err)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Agents)) {
		check("agent "+name, t.Agents[name].Place, t.Agents[name])
	}
	for g := range t.groups {
		check(g.Name, g.Place, t.as(g))
	}
	return reasons
}

func (m *Manager) check(ctx context.Context, a *Agent) error {
	ctx, end := m.begin(ctx, "")
	defer end()
	if a.Repository != "" {
		r, err := m.repository(ctx, a)
		if err == nil {
			_, err = r.base(ctx)
		}
		if err == nil {
			err = r.prepare(ctx)
		}
		if err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
	}
	for of, commands := range map[string][][]string{"setup": a.Setup, "verify": a.Verify} {
		for _, argv := range commands {
			if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
				continue // it is in the repository
			}
			_, err := m.run(ctx, a, command{argv: []string{"sh", "-c", `command -v "$1"`, "sh", argv[0]}, dir: a.Dir})
			if _, ok := errors.AsType[*failed](err); ok {
				return fmt.Errorf("%s: program not found: %q", of, argv[0])
			}
			if err != nil {
				return fmt.Errorf("%s: %w", of, err)
			}
		}
	}
	return nil
}

// Stop ends the commands that run for an agent, and refuses the requests that they were for. Until Resume, no command
// begins.
func (m *Manager) Stop(agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped[agent] = true
	for j := range m.running {
		if j.agent == agent {
			j.cancel()
		}
	}
}

// Resume allows commands for an agent again, after Stop.
func (m *Manager) Resume(agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stopped, agent)
}

// A job is an operation in progress, mostly for an agent.
type job struct {
	agent  string
	cancel context.CancelFunc
}

// begin begins a job. It returns its context, and a function that ends it.
func (m *Manager) begin(ctx context.Context, agent string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	j := &job{agent: agent, cancel: cancel}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[j] = true; m.stopped[agent] {
		cancel()
	}
	return ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, j)
		cancel()
	}
}

// Wants reports whether work is to be done before a message of an agent about a task is decided.
func (m *Manager) Wants(agent string, completes bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.team.Agents[agent]
	return completes && m.team.Verifies || a != nil && a.Repository != "" || m.team.Shared // a planner may complete tasks of other agents
}

// Enter makes the workspace of a task that an agent reads or starts, if the agent holds the task.
func (m *Manager) Enter(agent, id string) *wire.Error {
	t, _ := m.options.Tasks.Held(agent, id)
	a := m.configured().of(agent, &t)
	if a == nil || a.Repository == "" || t.ID == "" || len(t.WaitsFor) > 0 {
		return nil
	}
	if entered(&t) {
		m.unlock(&t)
		return nil
	}
	ctx, end := m.begin(context.Background(), agent)
	defer end()
	w, err := m.enterSomewhere(ctx, a, &t)
	if err != nil {
		if errors.Is(err, errUnmergeable) && t.State != wire.TaskNeedsHuman {
			_ = m.options.Tasks.Ask(agent, t.ID, fmt.Sprintf("The task %q cannot start: %v.\nFix this, then answer anything, and its agent tries again. To end the task instead: orchestrator task fail %s", t.Name, err, wire.ShortID(t.ID)))
		}
		return refusal("no_workspace", "the workspace of the task cannot be created: "+err.Error(), "try again, or report it with fail-task")
	}
	if t.Details == nil || t.Workspace == nil || *t.Workspace != w {
		m.options.Tasks.Note(&wire.TaskChecked{Kind: events.TaskWorkspace, Agent: agent, Task: t.ID, Text: "has a workspace: " + w.Path, Workspace: &w})
	}
	return nil
}

// unlock removes the locks of git in a workspace that are older than the run that has the task: a git of an earlier run was
// killed. They would keep git from working there.
func (m *Manager) unlock(t *wire.Task) {
	since, ok := object.ParseTime(t.AssignedAt)
	if !ok {
		return
	}
	path := t.Workspace.Path
	entry, err := os.ReadFile(filepath.Join(path, ".git"))
	if err != nil {
		return
	}
	_, name, ok := strings.Cut(strings.TrimSpace(string(entry)), "/.git/worktrees/") // an agent can write the file
	if !ok || strings.Contains(name, "/") {
		return
	}
	root, err := os.OpenRoot(filepath.Join(filepath.Dir(filepath.Dir(path)), ".git", "worktrees", name))
	if err != nil {
		return
	}
	defer root.Close()
	for _, lock := range []string{"index.lock", "HEAD.lock"} {
		if at, err := root.Lstat(lock); err == nil && at.ModTime().Before(since) && root.Remove(lock) == nil {
			m.options.Log.Info("a lock of git was left by an earlier run, and is removed", "task", wire.ShortID(t.ID), "lock", lock)
		}
	}
}

// entered reports whether a task has a workspace, which has its files.
func entered(t *wire.Task) bool {
	if t.Details == nil || t.Workspace == nil {
		return false
	}
	if t.Workspace.Host != "" {
		return false // its host knows
	}
	_, err := os.Lstat(filepath.Join(t.Workspace.Path, ".git"))
	return err == nil
}

// enter returns the workspace of a task, and makes it if it is not there. Then it is fresh.
func (m *Manager) enter(ctx context.Context, a *Agent, t *wire.Task) (w wire.Workspace, fresh bool, err error) {
	r, err := m.repository(ctx, a)
	if err == nil {
		err = m.adopt(ctx, r, t)
	}
	if err != nil {
		return w, fresh, err
	}
	at, fresh, err := m.make(ctx, r, t)
	if err != nil {
		return w, fresh, err
	}
	w = wire.Workspace{Path: at.path, Branch: at.branch, Base: at.Base, Began: at.Began}
	if at.Ready && !fresh || len(a.Setup) == 0 {
		return w, fresh, nil
	}
	if _, err = m.each(ctx, a, a.Setup, at.path); err == nil {
		err = r.mark(at.branch, func(m *mark) { m.Ready = true })
	}
	return w, fresh, err
}

// make makes the worktree of a task unless it exists, for one caller at a time.
func (m *Manager) make(ctx context.Context, r *repository, t *wire.Task) (w worktree, made bool, err error) {
	make := func(base, commit string) error {
		return m.writing(ctx, r, func() error {
			if err := r.setAside(ctx, t); err != nil {
				return err
			}
			w, made, err = r.make(ctx, t, base, commit)
			return err
		})
	}
	if err = make("", ""); !errors.Is(err, errUnborn) {
		return w, made, err
	}
	base, commit, err := m.beginning(ctx, r, t)
	if err == nil {
		err = make(base, commit)
	}
	return w, made, err
}

// errUnborn reports that a task has no branch yet.
var errUnborn = errors.New("the task has no branch yet")

func refusal(reason, text, hint string) *wire.Error {
	return &wire.Error{Code: wire.CodeConflict, Message: text, Hint: hint, Details: map[string]any{"reason": reason}}
}

// each runs commands, one after another, until one fails. It returns all their output. The other agents also have work
// in the folder.
func (m *Manager) each(ctx context.Context, a *Agent, commands [][]string, dir string, others ...*Agent) (all []byte, err error) {
	var at *cage
	if a.Repository != "" && dir != a.Dir {
		at = &cage{dir: dir, repository: a.Repository, others: others}
	}
	for _, argv := range commands {
		all = fmt.Appendf(all, "$ %s\n", words(argv))
		out, err := m.run(ctx, a, command{argv: argv, dir: dir, both: true, at: at})
		if all = append(all, out...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// A command is a process to run for an agent.
type command struct {
	argv []string
	dir  string
	both bool    // stderr belongs to the output
	most int     // bytes that are kept; 0: maxOutput
	git  *gitRun // of git, and of a script that runs git
	at   *cage   // of a command of setup or verify in a worktree
}

// A runner runs a command as an agent would. The error of one that ends with another code than 0 is a *failed.
type runner func(context.Context, *Agent, command) (output []byte, err error)

// run is the runner.
func (m *Manager) run(ctx context.Context, a *Agent, c command) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRun, fmt.Errorf("%s %w within %s", words(c.argv), errSlow, maxRun))
	defer cancel()
	if _, err := os.Stat(c.dir); err != nil {
		return nil, err
	}
	h := &heard{both: c.both, out: tail{most: cmp.Or(c.most, maxOutput)}, errs: tail{most: maxOutput}, ended: make(chan struct{})}
	var spec child.Spec
	if err := a.Fill(ctx, &spec); err != nil {
		return nil, err
	}
	spec.Command, spec.Dir, spec.Run, spec.NoStdin, spec.Pty = c.argv, c.dir, uuid.NewString(), true, false
	if c.git != nil {
		c.git.prepare(&spec)
	} else {
		spec.Env = append(spec.Env, honest...)
	}
	if c.at != nil {
		if err := c.at.confine(ctx, &spec); err != nil {
			return nil, err
		}
	}
	spec.Listener = h
	p, err := m.options.Start(spec)
	if err != nil {
		return nil, err
	}
	select {
	case <-h.ended:
	case <-ctx.Done():
		c.cancel(p, h.ended)
		return h.out.end(), context.Cause(ctx)
	}
	if exit := h.exit; exit.Code != 0 || exit.Signal != 0 {
		said := h.out.end()
		if !c.both {
			said = append(said, h.errs.end()...)
		}
		return h.out.end(), &failed{argv: c.argv, code: exit.Code, how: exit.String(), output: said}
	}
	if h.out.cut && !c.both {
		return nil, fmt.Errorf("%s %w of %d bytes", words(c.argv), errLong, h.out.most)
	}
	return h.out.end(), nil
}

// heard is what a command has printed, and its exit.
type heard struct {
	child.Nobody
	both  bool       // out also has stderr
	mu    sync.Mutex // the streams come on a goroutine each
	out   tail
	errs  tail
	exit  child.Exit
	ended chan struct{} // closed when the rest no longer changes
}

func (h *heard) Output(stream child.Stream, chunk []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stream == child.Stdout || h.both {
		h.out.add(chunk)
	}
	if stream != child.Stdout {
		h.errs.add(chunk)
	}
}

func (h *heard) Exited(exit child.Exit) { h.exit = exit }
func (h *heard) Ended(child.Ending)     { close(h.ended) }

// cancel ends the command. A killed git leaves its locks, which block the repository, so git gets time to remove them.
func (c command) cancel(p Process, ended <-chan struct{}) {
	if c.git != nil {
		p.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(lull):
		}
	}
	p.Kill()
	<-ended
}

// A tail keeps the end of a text.
type tail struct {
	text []byte
	most int
	cut  bool
}

func (t *tail) add(chunk []byte) {
	t.text = append(t.text, chunk...)
	t.cut = t.cut || len(t.text) > t.most
	if len(t.text) > 2*t.most {
		t.text = append(t.text[:0], t.end()...)
	}
}

func (t *tail) end() []byte { return t.text[max(0, len(t.text)-t.most):] }

// lastLines returns the last lines of an output, as text.
func lastLines(output []byte, most int) string {
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(output), "\uFFFD"), "\n"), "\n")
	text := strings.Join(lines[max(0, len(lines)-most):], "\n")
	const maxText = 4000
	if over := len(text) - maxText; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
	}
	return text
}

// words returns a command for people.
func words(argv []string) string { return strings.Join(argv, " ") }

func allWords(commands [][]string) string {
	var all []string
	for _, argv := range commands {
		all = append(all, words(argv))
	}
	return strings.Join(all, "; ")
}

// asWire returns an error for the caller of an operation.
func asWire(err error) error {
	if _, ok := errors.AsType[*wire.Error](err); ok || err == nil {
		return err
	}
	return &wire.Error{Code: wire.CodeConflict, Message: err.Error()}
}
