package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// A bench is a Manager with a repository and the agent ann. Her commands run without a host of children. It has the
// Tasks of the Manager.
type bench struct {
	t    *testing.T
	m    *Manager
	top  string
	ann  *Agent
	team Team

	mu    sync.Mutex
	tasks map[string]*wire.Task
	notes []wire.TaskChecked
	asked string // the last question to a person

	unmerged func() []wire.Task // nil: none
	merged   func()             // nil: not called
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := &bench{t: t, top: filepath.Join(dir, "repo"), tasks: make(map[string]*wire.Task)}
	require.NoError(t, os.Mkdir(b.top, 0o700))
	b.git(b.top, "init", "--quiet", "--initial-branch=main")
	b.git(b.top, "config", "user.email", "a@example.org")
	b.git(b.top, "config", "user.name", "A")
	b.change(b.top, "file", "one\n")
	b.m = New(Options{Start: start, Tasks: b, Log: hclog.NewNullLogger()})
	b.ann = &Agent{
		Name: "ann", Attempts: 9, Dir: dir, Trees: Trees{Repository: b.top, Branch: func(task string) string { return "task/" + Name(task) }},
		Fill: func(_ context.Context, s *child.Spec) error {
			s.Env = os.Environ()
			return nil
		},
	}
	b.set()
	return b
}

// set makes changes of the agent known.
func (b *bench) set() {
	b.team = Team{Agents: map[string]*Agent{"ann": b.ann}, Verifies: true}
	b.m.Set(b.team)
}

// A started is a command of the bench.
type started struct{ *exec.Cmd }

func (s started) Signal(sig syscall.Signal) { _ = syscall.Kill(-s.Process.Pid, sig) }
func (s started) Kill()                     { s.Signal(syscall.SIGKILL) }

// output is one stream of a command.
type output struct {
	to     child.Listener
	stream child.Stream
}

func (o output) Write(p []byte) (int, error) {
	o.to.Output(o.stream, p)
	return len(p), nil
}

func start(s child.Spec) (Process, error) {
	c := exec.Command(s.Command[0], s.Command[1:]...)
	c.Dir, c.Env, c.SysProcAttr = s.Dir, s.Env, &syscall.SysProcAttr{Setpgid: true}
	c.Stdout, c.Stderr = output{to: s.Listener, stream: child.Stdout}, output{to: s.Listener, stream: child.Stderr}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.Wait()
		s.Listener.Exited(child.Exit{Code: c.ProcessState.ExitCode()})
		s.Listener.Ended(child.Ending{})
	}()
	return started{c}, nil
}

func (b *bench) Held(_, id string) (wire.Task, bool)    { return b.Task(id) }
func (b *bench) OpenTask(string) (wire.Task, bool)      { return wire.Task{}, false }
func (b *bench) Submit(wire.SubmitTask) (string, error) { return "", errors.New("no tasks") }
func (b *bench) Cancel(string, string)                  {}
func (b *bench) Settle()                                {}
func (b *bench) Hold(string, string, string, string)    {}
func (b *bench) Refused(string, string)                 {}

func (b *bench) Elsewhere(string) (string, func(context.Context, []byte) ([]byte, error)) {
	return "", nil
}

func (b *bench) Follow(ctx context.Context, _ int64, _ func(wire.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func (b *bench) Unmerged() []wire.Task {
	if b.unmerged == nil {
		return nil
	}
	return b.unmerged()
}

func (b *bench) Merged() {
	if b.merged != nil {
		b.merged()
	}
}

func (b *bench) Ask(_, _, question string) error {
	b.asked = question
	return nil
}

func (b *bench) Task(id string) (wire.Task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tasks[id]
	if t == nil {
		return wire.Task{}, false
	}
	return *t, true
}

func (b *bench) Note(m wire.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := m.(*wire.TaskChecked)
	b.notes = append(b.notes, *n)
	if n.Workspace != nil {
		b.tasks[n.Task].Details = &wire.Details{Workspace: n.Workspace}
	}
}

// noted returns the texts of the notes of a kind.
func (b *bench) noted(kind string) (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notes {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// LastMerge returns the last note about a merge of a task.
func (b *bench) LastMerge(task string) (text string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notes {
		if n.Task == task && n.Kind == events.TaskMerged {
			text, ok = n.Text, true
		}
	}
	return text, ok
}

// begin gives ann a task, and returns the folder of its workspace.
func (b *bench) begin(id string) (dir string) {
	b.t.Helper()
	b.mu.Lock()
	b.tasks[id] = &wire.Task{ID: id, Name: id, State: wire.TaskRunning, AssignedTo: "ann"}
	b.mu.Unlock()
	if refused := b.m.Enter("ann", id); refused != nil {
		b.t.Fatal(refused)
	}
	t, _ := b.Task(id)
	return t.Workspace.Path
}

// complete completes a task as ann.
func (b *bench) complete(id string) *wire.Error {
	_, _, refused := b.m.Verify("ann", id, nil, false)
	if refused == nil {
		b.end(id)
	}
	return refused
}

// end makes a task done.
func (b *bench) end(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks[id].State = wire.TaskDone
}

// waits makes the branch of a task wait for the queue.
func (b *bench) waits(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := *b.tasks[id].Workspace
	w.Merge = hub.MergeWaiting
	b.tasks[id].Details = &wire.Details{Workspace: &w}
}

// git runs git as a person does, and returns its output.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	c := exec.Command("git", append([]string{"-C", dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := c.CombinedOutput()
	require.NoError(b.t, err, "git %v: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

// mark changes the notes about a branch.
func (b *bench) mark(branch string, do func(*mark)) {
	b.t.Helper()
	require.NoError(b.t, b.repository().mark(branch, do))
}

// repository returns the repository of ann.
func (b *bench) repository() *repository {
	b.t.Helper()
	r, err := b.m.repository(b.t.Context(), b.ann)
	require.NoError(b.t, err)
	return r
}

// change writes a file and commits it.
func (b *bench) change(dir, name, text string) {
	b.t.Helper()
	b.write(dir, name, text)
	b.git(dir, "add", "--all")
	b.git(dir, "commit", "--quiet", "-m", name)
}

func (b *bench) write(dir, name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}
