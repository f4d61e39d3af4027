package main

import (
	"bytes"
	"context"
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

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// The tortures test the whole program, with real agents, in situations that break process
// supervisors. TestTorture0… are the ten tests that were run with nine well-known supervisors;
// TestTortureN… is row N of the table of acceptance tests.
//
// Some rows cannot be tested here:
//
//   - Row 20, a clock that is set back: a test must not set the clock of its machine.
//     TestClockIsMonotonic of package supervisor checks that all times are monotonic.
//   - Row 8, the part about a thousand messages: see TestDeafAgentIsMarkedAndRecovers of package
//     supervisor. The other parts are tested here.

// quick shortens the ordered stop of agents that ignore it.
const quick = `
defaults {
  stop {
    close_stdin = "100ms"
    grace       = "300ms"
  }
}
`

// unhurried is for tests that look at the last messages of agents. The agents end with their
// stdin, however long they take to read it.
const unhurried = `
defaults {
  stop {
    close_stdin = "1m"
  }
}
`

// unkept keeps the record in memory, for tests that fill the disk. Other tests fill the disk of
// the record.
const unkept = `
store {
  kind = "memory"
}
`

// markEnv marks all processes of a stage.
const markEnv = "TORTURE_STAGE"

// A stage is one orchestrator in its own folder, with all its output.
type stage struct {
	t       *testing.T
	dir     string
	program string
	process *exec.Cmd // the last one started
	ended   chan struct{}
	said    *transcript // on stdout
	cried   *transcript // on stderr
}

// newStage makes a folder with a configuration and files, given as names and texts in turn.
// After the test, all processes of the stage are ended.
func newStage(t *testing.T, hcl string, files ...string) *stage {
	t.Helper()
	program, err := exec.LookPath("orchestrator") // this binary, see TestMain
	require.NoError(t, err)
	// t.TempDir is too long for sockets in folders below it.
	dir, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	// The watchdog of a killed orchestrator may still be writing to the folder.
	t.Cleanup(func() { waitForThat(t, "the folder removed", func() bool { return os.RemoveAll(dir) == nil }) })
	s := &stage{t: t, dir: dir, program: program}
	s.write("orchestrator.hcl", hcl)
	for i := 0; i < len(files); i += 2 {
		s.write(files[i], files[i+1])
	}
	t.Cleanup(s.clear)
	return s
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }
func (s *stage) state() string           { return s.path("state") }

func (s *stage) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// environ returns the environment of the tests without variables that refer to another
// orchestrator.
func (s *stage) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "ORC_") || name == "NOTIFY_SOCKET" || name == racedEnv && !isRaced(s.t)
	})
	return append(env, "HOME="+s.dir, "TMPDIR="+s.dir, "XDG_RUNTIME_DIR="+s.dir, "XDG_STATE_HOME=",
		"GORACE="+raceOptions())
}

// ship makes the stage use the program as released. In the test binary, the race detector may
// take several times as much memory and time.
func (s *stage) ship() *stage {
	s.t.Helper()
	program, err := shipped()
	require.NoError(s.t, err)
	s.program = program
	return s
}

// up starts the orchestrator. A timeout ends it if the tests are killed.
func (s *stage) up(flags ...string) *stage {
	s.t.Helper()
	s.start(exec.Command(s.program, append([]string{"up", "--state-dir", s.state(), "--timeout", "6m"}, flags...)...))
	return s
}

// start starts a command as the program of the stage.
func (s *stage) start(cmd *exec.Cmd) {
	s.t.Helper()
	s.said, s.cried, s.ended = &transcript{}, &transcript{}, make(chan struct{})
	s.launch(cmd)
}

func (s *stage) launch(cmd *exec.Cmd) {
	s.t.Helper()
	cmd.Dir, cmd.Env = s.dir, append(s.environ(), markEnv+"="+s.dir)
	cmd.Stdout, cmd.Stderr = s.said, s.cried
	cmd.WaitDelay = 5 * time.Second
	require.NoError(s.t, cmd.Start())
	s.process = cmd
	go func() { // ends with the program, which clear ends
		defer close(s.ended)
		_ = cmd.Wait()
	}()
}

// clear ends all remaining processes, also after a failure.
func (s *stage) clear() {
	if s.process == nil {
		return
	}
	left := s.processes()
	_ = s.process.Process.Kill()
	waitForThat(s.t, "an empty stage", func() bool {
		pids := s.processes()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
	<-s.ended
	if strings.Contains(s.cried.all(), "DATA RACE") {
		s.t.Error("the race detector has found something")
	}
	if s.t.Failed() {
		s.t.Logf("left running: %v\nend of stdout:\n%s\nend of stderr:\n%s", left, lastOf(s.said.all()), lastOf(s.cried.all()))
	}
}

// signal signals the orchestrator.
func (s *stage) signal(sig syscall.Signal) { require.NoError(s.t, s.process.Process.Signal(sig)) }

// await waits for the orchestrator to exit and returns its exit code.
func (s *stage) await() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		require.Fail(s.t, "the orchestrator does not end")
	}
	return s.process.ProcessState.ExitCode()
}

// stop stops the orchestrator in order and requires that no process is left.
func (s *stage) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	require.Equal(s.t, cli.ExitOK, s.await())
	require.Empty(s.t, s.processes(), "left running")
	s.replays()
}

// replays checks that all facts lead to the state to which the snapshot and the facts after it lead.
func (s *stage) replays() {
	s.t.Helper()
	if _, err := os.Stat(filepath.Join(s.state(), "events.db")); err != nil {
		return
	}
	if stdout, stderr, code := s.call("replay"); code != cli.ExitNotFound { // facts may have been removed
		require.Zero(s.t, code, "%s%s", stdout, stderr)
	}
}

// call runs another command of the program.
func (s *stage) call(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, append(args, "--state-dir", s.state())...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.environ(), &out, &err
	if failed := cmd.Run(); failed != nil {
		_, ended := errors.AsType[*exec.ExitError](failed)
		require.True(s.t, ended, "%v", failed)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// ask runs a command that must succeed and returns its output.
func (s *stage) ask(args ...string) string {
	s.t.Helper()
	stdout, stderr, code := s.call(args...)
	require.Equal(s.t, cli.ExitOK, code, "%v: %s%s", args, stdout, stderr)
	return stdout
}

func (s *stage) status() control.Status {
	s.t.Helper()
	var status control.Status
	require.NoError(s.t, json.Unmarshal([]byte(s.ask("status", "--json")), &status))
	return status
}

func (s *stage) agent(name string) control.AgentView {
	s.t.Helper()
	for _, view := range s.status().Agents {
		if view.Name == name {
			return view
		}
	}
	require.Fail(s.t, "no agent "+name)
	return control.AgentView{}
}

// events returns the events of a kind, of one agent or of all, from up --json.
func (s *stage) events(kind, agent string) []wire.Event {
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	var found []wire.Event
	for _, e := range s.said.events {
		if e.Kind == kind && (agent == "" || e.Agent == agent) {
			found = append(found, e)
		}
	}
	return found
}

// waitForEvents waits until there are n of these events.
func (s *stage) waitForEvents(n int, kind, agent string) []wire.Event {
	s.t.Helper()
	waitForThat(s.t, fmt.Sprintf("%d times %s of %q", n, kind, agent), func() bool { return len(s.events(kind, agent)) >= n })
	return s.events(kind, agent)
}

// lines returns the lines that an agent printed, from up --json.
func (s *stage) lines(agent, stream string) []string {
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	var found []string
	for _, l := range s.said.lines {
		if l.Agent == agent && l.Stream == stream {
			found = append(found, l.Text)
		}
	}
	return found
}

func (s *stage) waitForLines(n int, agent string) []string {
	s.t.Helper()
	waitForThat(s.t, fmt.Sprintf("%d lines of %s", n, agent), func() bool { return len(s.lines(agent, control.StreamOut)) >= n })
	return s.lines(agent, control.StreamOut)
}

// waitForPIDs waits for n lines that agents have written to a file, each a process id.
func (s *stage) waitForPIDs(n int, file string) []int {
	s.t.Helper()
	var pids []int
	waitForThat(s.t, fmt.Sprintf("%d lines in %s", n, file), func() bool {
		text, _ := os.ReadFile(s.path(file))
		pids = numbers(s.t, strings.Fields(string(text)))
		return len(pids) >= n && bytes.HasSuffix(text, []byte("\n"))
	})
	return pids
}

func numbers(t *testing.T, texts []string) []int {
	t.Helper()
	var found []int
	for _, text := range texts {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		found = append(found, n)
	}
	return found
}

// logged returns the lines in the log files of an agent without their times. All lines must be
// complete.
func (s *stage) logged(agent, suffix string) []string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.state(), "logs", agent, "*"+suffix))
	require.NoError(s.t, err)
	slices.Sort(names)
	const stamp = len("2006-01-02T15:04:05.000Z ")
	var found []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.t, err)
		require.True(s.t, len(text) == 0 || bytes.HasSuffix(text, []byte("\n")), "half a line in %s", name)
		for line := range strings.Lines(string(text)) {
			require.Greater(s.t, len(line), stamp)
			_, err := time.Parse(time.RFC3339, line[:stamp-1])
			require.NoError(s.t, err, "a line without its time in %s", name)
			found = append(found, line[stamp:len(line)-1])
		}
	}
	return found
}

// processes returns the live processes of the stage, except the orchestrator.
func (s *stage) processes() []int {
	entries, err := os.ReadDir("/proc")
	require.NoError(s.t, err)
	var found []int
	mark := []byte("\x00" + markEnv + "=" + s.dir + "\x00")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == s.process.Process.Pid {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && bytes.Contains(append([]byte{0}, text...), mark) && alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, fields, found := strings.Cut(string(text[bytes.LastIndexByte(text, ')'):]), " ")
	return found && fields[0] != 'Z' && fields[0] != 'X'
}

func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.False(t, alive(pid), "process %d survived", pid)
	}
}

// lastOf returns the last 4,000 bytes of a text.
func lastOf(text string) string { return text[max(0, len(text)-4000):] }

// waitForThat waits until a condition holds.
func waitForThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there was no %s within %s", what, patience)
		}
	}
}
