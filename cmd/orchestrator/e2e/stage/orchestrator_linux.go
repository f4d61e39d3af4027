package stage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// QuickStop shortens the ordered stop of agents that ignore it.
const QuickStop = `
defaults {
  stop {
    close_stdin = "100ms"
    grace       = "300ms"
  }
}
`

// PatientStop is for tests that look at the last messages of agents. The agents end with their
// stdin, however long they take to read it.
const PatientStop = `
defaults {
  stop {
    close_stdin = "1m"
  }
}
`

// InMemory keeps the record in memory, for tests that fill the disk. Other tests fill the disk of
// the record.
const InMemory = `
store {
  kind = "memory"
}
`

// markEnv marks all processes of a stage.
const markEnv = "TORTURE_STAGE"

// An Orchestrator is one orchestrator in its own folder, with all its output.
type Orchestrator struct {
	T       *testing.T
	Dir     string
	Program string
	Process *exec.Cmd // the last one started
	Ended   chan struct{}
	Stdout  *Output // on stdout
	Stderr  *Output // on stderr
}

// New makes a folder with a configuration and files, given as names and texts in turn.
// After the test, all processes of the stage are ended.
func New(t *testing.T, hcl string, files ...string) *Orchestrator {
	t.Helper()
	program, err := exec.LookPath("orchestrator") // this binary, see Main
	require.NoError(t, err)
	// t.TempDir is too long for sockets in folders below it.
	dir, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	// The watchdog of a killed orchestrator may still be writing to the folder.
	t.Cleanup(func() { WaitFor(t, "the folder removed", func() bool { return os.RemoveAll(dir) == nil }) })
	s := &Orchestrator{T: t, Dir: dir, Program: program}
	s.Write("orchestrator.hcl", hcl)
	for i := 0; i < len(files); i += 2 {
		s.Write(files[i], files[i+1])
	}
	t.Cleanup(s.clear)
	return s
}

func (s *Orchestrator) Path(name string) string { return filepath.Join(s.Dir, name) }
func (s *Orchestrator) State() string           { return s.Path("state") }

func (s *Orchestrator) Write(name, text string) {
	s.T.Helper()
	require.NoError(s.T, os.WriteFile(s.Path(name), []byte(text), 0o600))
}

// Environ returns the environment of the tests without variables that refer to another
// orchestrator.
func (s *Orchestrator) Environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "ORC_") || name == "NOTIFY_SOCKET" || name == racedEnv && !isRaced(s.T)
	})
	return append(env, "HOME="+s.Dir, "TMPDIR="+s.Dir, "XDG_RUNTIME_DIR="+s.Dir, "XDG_STATE_HOME=",
		"GORACE="+RaceOptions())
}

// Ship makes the stage use the program as released. In the test binary, the race detector may
// take several times as much memory and time.
func (s *Orchestrator) Ship() *Orchestrator {
	s.T.Helper()
	program, err := Program()
	require.NoError(s.T, err)
	s.Program = program
	return s
}

// Up starts the orchestrator. A timeout ends it if the tests are killed.
func (s *Orchestrator) Up(flags ...string) *Orchestrator {
	s.T.Helper()
	s.Start(exec.Command(s.Program, append([]string{"up", "--state-dir", s.State(), "--timeout", "6m"}, flags...)...))
	return s
}

// Start starts a command as the program of the stage.
func (s *Orchestrator) Start(cmd *exec.Cmd) {
	s.T.Helper()
	s.Stdout, s.Stderr, s.Ended = &Output{}, &Output{}, make(chan struct{})
	s.Launch(cmd)
}

func (s *Orchestrator) Launch(cmd *exec.Cmd) {
	s.T.Helper()
	cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), markEnv+"="+s.Dir)
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	cmd.WaitDelay = 5 * time.Second
	require.NoError(s.T, cmd.Start())
	s.Process = cmd
	go func() { // ends with the program, which clear ends
		defer close(s.Ended)
		_ = cmd.Wait()
	}()
}

// clear ends all remaining processes, also after a failure.
func (s *Orchestrator) clear() {
	if s.Process == nil {
		return
	}
	left := s.Processes()
	_ = s.Process.Process.Kill()
	WaitFor(s.T, "an empty stage", func() bool {
		pids := s.Processes()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
	<-s.Ended
	if strings.Contains(s.Stderr.All(), "DATA RACE") {
		s.T.Error("the race detector has found something")
	}
	if s.T.Failed() {
		s.T.Logf("left running: %v\nend of stdout:\n%s\nend of stderr:\n%s", left, lastOf(s.Stdout.All()), lastOf(s.Stderr.All()))
	}
}

// Signal signals the orchestrator.
func (s *Orchestrator) Signal(sig syscall.Signal) {
	require.NoError(s.T, s.Process.Process.Signal(sig))
}

// Await waits for the orchestrator to exit and returns its exit code.
func (s *Orchestrator) Await() int {
	s.T.Helper()
	select {
	case <-s.Ended:
	case <-time.After(Patience):
		require.Fail(s.T, "the orchestrator does not end")
	}
	return s.Process.ProcessState.ExitCode()
}

// Stop stops the orchestrator in order and requires that no process is left.
func (s *Orchestrator) Stop() {
	s.T.Helper()
	s.Signal(syscall.SIGTERM)
	require.Equal(s.T, cli.ExitOK, s.Await())
	require.Empty(s.T, s.Processes(), "left running")
	s.replays()
}

// replays checks that all facts lead to the state to which the snapshot and the facts after it lead.
func (s *Orchestrator) replays() {
	s.T.Helper()
	if _, err := os.Stat(filepath.Join(s.State(), "events.db")); err != nil {
		return
	}
	if stdout, stderr, code := s.Call("replay"); code != cli.ExitNotFound { // facts may have been removed
		require.Zero(s.T, code, "%s%s", stdout, stderr)
	}
}

// Call runs another command of the program.
func (s *Orchestrator) Call(args ...string) (stdout, stderr string, code int) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Program, append(args, "--state-dir", s.State())...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Environ(), &out, &err
	if failed := cmd.Run(); failed != nil {
		_, ended := errors.AsType[*exec.ExitError](failed)
		require.True(s.T, ended, "%v", failed)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// Ask runs a command that must succeed and returns its output.
func (s *Orchestrator) Ask(args ...string) string {
	s.T.Helper()
	stdout, stderr, code := s.Call(args...)
	require.Equal(s.T, cli.ExitOK, code, "%v: %s%s", args, stdout, stderr)
	return stdout
}

func (s *Orchestrator) Status() control.Status {
	s.T.Helper()
	var status control.Status
	require.NoError(s.T, json.Unmarshal([]byte(s.Ask("status", "--json")), &status))
	return status
}

func (s *Orchestrator) Agent(name string) control.AgentView {
	s.T.Helper()
	for _, view := range s.Status().Agents {
		if view.Name == name {
			return view
		}
	}
	require.Fail(s.T, "no agent "+name)
	return control.AgentView{}
}

// Events returns the events of a kind, of one agent or of all, from up --json.
func (s *Orchestrator) Events(kind, agent string) []wire.Event {
	s.Stdout.Mu.Lock()
	defer s.Stdout.Mu.Unlock()
	var found []wire.Event
	for _, e := range s.Stdout.events {
		if e.Kind == kind && (agent == "" || e.Agent == agent) {
			found = append(found, e)
		}
	}
	return found
}

// WaitForEvents waits until there are n of these events.
func (s *Orchestrator) WaitForEvents(n int, kind, agent string) []wire.Event {
	s.T.Helper()
	WaitFor(s.T, fmt.Sprintf("%d times %s of %q", n, kind, agent), func() bool { return len(s.Events(kind, agent)) >= n })
	return s.Events(kind, agent)
}

// Lines returns the lines that an agent printed, from up --json.
func (s *Orchestrator) Lines(agent, stream string) []string {
	s.Stdout.Mu.Lock()
	defer s.Stdout.Mu.Unlock()
	var found []string
	for _, l := range s.Stdout.lines {
		if l.Agent == agent && l.Stream == stream {
			found = append(found, l.Text)
		}
	}
	return found
}

func (s *Orchestrator) WaitForLines(n int, agent string) []string {
	s.T.Helper()
	WaitFor(s.T, fmt.Sprintf("%d lines of %s", n, agent), func() bool { return len(s.Lines(agent, control.StreamOut)) >= n })
	return s.Lines(agent, control.StreamOut)
}

// WaitForPIDs waits for n lines that agents have written to a file, each a process id.
func (s *Orchestrator) WaitForPIDs(n int, file string) []int {
	s.T.Helper()
	var pids []int
	WaitFor(s.T, fmt.Sprintf("%d lines in %s", n, file), func() bool {
		text, _ := os.ReadFile(s.Path(file))
		pids = Numbers(s.T, strings.Fields(string(text)))
		return len(pids) >= n && bytes.HasSuffix(text, []byte("\n"))
	})
	return pids
}

func Numbers(t *testing.T, texts []string) []int {
	t.Helper()
	var found []int
	for _, text := range texts {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		found = append(found, n)
	}
	return found
}

// Logged returns the lines in the log files of an agent without their times. All lines must be
// complete.
func (s *Orchestrator) Logged(agent, suffix string) []string {
	s.T.Helper()
	names, err := filepath.Glob(filepath.Join(s.State(), "logs", agent, "*"+suffix))
	require.NoError(s.T, err)
	slices.Sort(names)
	const stamp = len("2006-01-02T15:04:05.000Z ")
	var found []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.T, err)
		require.True(s.T, len(text) == 0 || bytes.HasSuffix(text, []byte("\n")), "half a line in %s", name)
		for line := range strings.Lines(string(text)) {
			require.Greater(s.T, len(line), stamp)
			_, err := time.Parse(time.RFC3339, line[:stamp-1])
			require.NoError(s.T, err, "a line without its time in %s", name)
			found = append(found, line[stamp:len(line)-1])
		}
	}
	return found
}

// Processes returns the live processes of the stage, except the orchestrator.
func (s *Orchestrator) Processes() []int {
	entries, err := os.ReadDir("/proc")
	require.NoError(s.T, err)
	var found []int
	mark := []byte("\x00" + markEnv + "=" + s.Dir + "\x00")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == s.Process.Process.Pid {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && bytes.Contains(append([]byte{0}, text...), mark) && Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// Alive reports whether a process exists and is not a zombie.
func Alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, fields, found := strings.Cut(string(text[bytes.LastIndexByte(text, ')'):]), " ")
	return found && fields[0] != 'Z' && fields[0] != 'X'
}

func RequireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.False(t, Alive(pid), "process %d survived", pid)
	}
}

// lastOf returns the last 4,000 bytes of a text.
func lastOf(text string) string { return text[max(0, len(text)-4000):] }

// WaitFor waits until a condition holds.
func WaitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there was no %s within %s", what, Patience)
		}
	}
}

// TasksNow returns all tasks.
func (s *Orchestrator) TasksNow() []wire.Task {
	s.T.Helper()
	var all wire.TaskList
	s.Operated(&all, "query-tasks", `{"limit":100000}`)
	return all.Tasks
}

// ShownTask returns a task as JSON output shows it.
func (s *Orchestrator) ShownTask(id string) (task wire.Task) {
	s.T.Helper()
	var reply wire.TaskReply
	s.Operated(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// WaitForState waits until a task is in a state.
func (s *Orchestrator) WaitForState(id string, state wire.TaskState) {
	s.T.Helper()
	WaitFor(s.T, fmt.Sprintf("task %s that is %s", id, state), func() bool { return s.TaskState(id) == state })
}

func (s *Orchestrator) Read(name string) string {
	s.T.Helper()
	text, err := os.ReadFile(s.Path(name))
	require.NoError(s.T, err)
	return string(text)
}

// UpWith starts the orchestrator with additional environment variables.
func (s *Orchestrator) UpWith(env ...string) *Orchestrator {
	s.T.Helper()
	s.Start(exec.Command("env", append(env, s.Program, "up", "--state-dir", s.State(), "--timeout", "3m", "--json")...))
	return s
}

func (s *Orchestrator) TaskState(id string) wire.TaskState {
	s.T.Helper()
	var reply wire.TaskReply
	s.Operated(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task.State
}

const OneCat = `
agent "only" {
  command = ["cat"]
}
`

// Serving waits until the orchestrator answers.
func (s *Orchestrator) Serving() {
	s.T.Helper()
	WaitFor(s.T, "an orchestrator", func() bool { _, _, code := s.Call("status"); return code == cli.ExitOK })
}

// TextLines returns the complete lines of a file.
func (s *Orchestrator) TextLines(name string) (lines []string) {
	text, _ := os.ReadFile(s.Path(name))
	for line := range strings.Lines(string(text)) {
		if whole, ended := strings.CutSuffix(line, "\n"); ended {
			lines = append(lines, whole)
		}
	}
	return lines
}

// RoomFor limits the size of the files of the orchestrator, in bytes.
func (s *Orchestrator) RoomFor(size uint64) {
	s.T.Helper()
	var room unix.Rlimit
	require.NoError(s.T, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = min(size, room.Max)
	require.NoError(s.T, unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
}

// Checkpoint moves all data into the database file and returns its bytes.
func Checkpoint(t *testing.T, path string) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, _ = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // fails if the file is not a database
	require.NoError(t, db.Close())
	for _, beside := range []string{"-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(path+beside))
	}
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	return whole
}

// Audited returns the lines of the audit of requests.
func (s *Orchestrator) Audited() (lines []map[string]any) {
	s.T.Helper()
	names, err := filepath.Glob(filepath.Join(s.State(), "audit", "*.jsonl"))
	require.NoError(s.T, err)
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.T, err)
		for line := range strings.Lines(string(text)) {
			var entry map[string]any
			require.NoError(s.T, json.Unmarshal([]byte(line), &entry), "%q", line)
			lines = append(lines, entry)
		}
	}
	return lines
}
