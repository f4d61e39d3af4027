package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Row 18: three mistakes are all reported with line and column, and nothing is started.
func TestTorture18EveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, `orchestrator {
  shutdown = "soon"
}

agent "first" {
  comand = ["touch", "first-ran"]
}

agent "second" {
  command    = ["touch", "second-ran"]
  depends_on = ["thrid"]
}
`).up()
	require.Equal(t, cli.ExitNo, s.await())
	for _, place := range []string{"orchestrator.hcl:2:14", "orchestrator.hcl:6:3", "orchestrator.hcl:11:17"} {
		require.Contains(t, s.cried.all(), place)
	}
	require.Contains(t, s.cried.all(), "Nothing was started.")
	s.requireNothingStarted()
}

// requireNothingStarted requires that there is no trace of a running orchestrator.
func (s *stage) requireNothingStarted() {
	s.t.Helper()
	require.Empty(s.t, s.processes())
	require.Empty(s.t, s.said.all())
	require.NoDirExists(s.t, s.state())
	entries, err := os.ReadDir(s.dir)
	require.NoError(s.t, err)
	for _, entry := range entries {
		require.NotContains(s.t, entry.Name(), "-ran")
	}
}

// An invalid configuration never starts anything, however small the mistake is.
func TestTortureWrongConfigStartsNothing(t *testing.T) {
	t.Parallel()
	const good = `
agent "good" {
  command = ["touch", "good-ran"]
}
`
	for name, test := range map[string]struct {
		hcl, says string
		args      []string
		exit      int
	}{
		"no HCL":               {hcl: good + "agent {", says: "orchestrator.hcl:5", exit: cli.ExitNo},
		"unknown block":        {hcl: good + `agnet "x" {}`, says: `Did you mean "agent"`, exit: cli.ExitNo},
		"no command":           {hcl: good + `agent "x" {}`, says: "has no command", exit: cli.ExitNo},
		"twice the same":       {hcl: good + good, says: "orchestrator.hcl:6", exit: cli.ExitNo},
		"depends on itself":    {hcl: good + "agent \"x\" {\n  command    = [\"cat\"]\n  depends_on = [\"x\"]\n}\n", says: "orchestrator.hcl:7", exit: cli.ExitNo},
		"no such folder":       {hcl: good + "agent \"x\" {\n  command = [\"cat\"]\n  dir     = \"gone\"\n}\n", says: "orchestrator.hcl:7:13", exit: cli.ExitNo},
		"no environment file":  {hcl: good + "agent \"x\" {\n  command  = [\"cat\"]\n  env_file = [\"gone\"]\n}\n", says: "orchestrator.hcl:7:15", exit: cli.ExitNo},
		"open to the world":    {hcl: good + "http {\n  listen = [\"0.0.0.0:0\"]\n}\n", says: "orchestrator.hcl:6:13", exit: cli.ExitNo},
		"an agent that is not": {hcl: good, args: []string{"god"}, says: `"god"`, exit: cli.ExitNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.hcl).up(test.args...)
			require.Equal(t, test.exit, s.await())
			require.Contains(t, s.cried.all(), test.says)
			s.requireNothingStarted()
		})
	}
}

// twenty returns a configuration of twenty agents, one of which has a different command.
func twenty(different string) string {
	hcl := ""
	for i := range 20 {
		command := `["cat"]`
		if i == 7 {
			command = different
		}
		hcl += fmt.Sprintf("agent \"a%02d\" {\n  command = %s\n}\n", i, command)
	}
	return hcl
}

func (s *stage) pids() map[string]int {
	s.t.Helper()
	pids := make(map[string]int)
	for _, view := range s.status().Agents {
		require.Equal(s.t, control.StateRunning, view.State, view.Name)
		require.True(s.t, alive(view.PID))
		pids[view.Name] = view.PID
	}
	return pids
}

// Row 19: one of twenty agents is changed. After the reload the other nineteen are the same
// processes.
func TestTorture19ReloadTouchesOneOfTwenty(t *testing.T) {
	t.Parallel()
	s := newStage(t, twenty(`["cat"]`)).up("--json")
	s.waitForEvents(20, events.AgentStarted, "")
	before := s.pids()
	s.write("orchestrator.hcl", twenty(`["cat", "-"]`))
	var reply control.ReloadReply
	require.NoError(t, json.Unmarshal([]byte(s.ask("reload", "--json")), &reply))
	require.Len(t, reply.Changes, 1)
	require.Equal(t, "a07", reply.Changes[0].Agent)
	after := s.pids()
	require.Len(t, after, 20)
	for name, pid := range after {
		require.Equal(t, name != "a07", pid == before[name], name)
	}
	requireGone(t, before["a07"])
	s.stop()
}

// A reload with a mistake changes nothing, not even the valid parts.
func TestTortureReloadWithMistakeChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, twenty(`["cat"]`)).up("--json")
	s.waitForEvents(20, events.AgentStarted, "")
	before := s.pids()
	s.write("orchestrator.hcl", twenty(`["cat", "-"]`)+"agent \"new\" {\n  command = [\"touch\", \"new-ran\"]\n  pyt     = true\n}\n")
	_, stderr, code := s.call("reload")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "orchestrator.hcl:63:3")
	require.Contains(t, stderr, "Nothing was changed.")
	require.Equal(t, before, s.pids())
	require.NoFileExists(t, s.path("new-ran"))
	s.stop()
}

// A file without any block changes nothing, because an editor may have truncated it before it writes.
func TestTortureReloadOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	const hcl = quick + "agent \"a\" {\n  command = [\"cat\"]\n}\n"
	s := newStage(t, hcl).up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	before := s.pids()
	for i, text := range []string{"", " \n\t\n", "# agents follow\n"} {
		s.write("orchestrator.hcl", text)
		for _, dry := range []string{"--dry-run", "--yes"} {
			_, stderr, code := s.call("reload", dry)
			require.Equal(t, cli.ExitNo, code, stderr)
			require.Contains(t, stderr, "file is empty")
			require.Contains(t, stderr, "To stop the agents: orchestrator down")
			require.Contains(t, stderr, "Nothing was changed.")
		}
		s.signal(syscall.SIGHUP)
		waitForThat(t, "refusal of the signal", func() bool {
			return strings.Count(s.cried.all(), `"the file is empty: nothing was changed; to stop the agents: orchestrator down"`) == 3*(i+1)
		})
		require.Equal(t, before, s.pids())
	}
	s.write("orchestrator.hcl", hcl)
	require.Contains(t, s.ask("reload"), "Nothing has changed.")
	require.Equal(t, before, s.pids())
	s.stop()
}

// TestReloadLogsRights checks that the log tells a command with other rights from another command.
func TestReloadLogsRights(t *testing.T) {
	t.Parallel()
	const hcl = quick + "agent \"a\" {\n  command = [\"cat\"]\n"
	s := newStage(t, hcl+"}\n").up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	s.write("orchestrator.hcl", hcl+"  manage = true\n}\n")
	s.ask("reload", "--yes")
	s.stop()
	require.Contains(t, s.cried.all(), "the rights, folder or environment of a command have changed")
	require.NotContains(t, s.cried.all(), "a command has changed")
}

// A reload applies only to the agents named at the start.
func TestTortureReloadKeepsTheChosen(t *testing.T) {
	t.Parallel()
	const hcl = quick + `
agent "db" {
  command = ["sh", "-c", ">db-ran; exec cat"]
}

agent "web" {
  command    = ["cat"]
  depends_on = ["db"]
}
`
	s := newStage(t, hcl).up("--json", "web", "--no-deps")
	s.waitForEvents(1, events.AgentStarted, "web")
	s.write("orchestrator.hcl", strings.ReplaceAll(hcl, `["cat"]`, `["cat", "-"]`)+`
agent "more" {
  command = ["cat"]
}
`)
	require.Contains(t, s.ask("reload"), "1 restarted")
	s.waitForEvents(2, events.AgentStarted, "web")
	for _, name := range []string{"db", "more"} {
		require.Equal(t, control.StateStopped, s.agent(name).State, name)
	}
	require.NoFileExists(t, s.path("db-ran"))
	s.stop()
}

// A client that stops waiting for a reload neither reverts nor breaks it.
func TestTortureReloadIsLeft(t *testing.T) {
	t.Parallel()
	const hcl = `
agent "stubborn" {
  command = ["sh", "-c", "trap '' TERM; while [ ! -e go ]; do sleep 0.02; done; # %d"]

  stop {
    close_stdin = "100ms"
    grace       = "1m"
  }
}
`
	s := newStage(t, fmt.Sprintf(hcl, 1)).up("--json")
	s.waitForEvents(1, events.AgentStarted, "stubborn")
	s.write("orchestrator.hcl", fmt.Sprintf(hcl, 2)+`
agent "extra" {
  command = ["cat"]
}
`)
	_, _, code := s.call("reload", "--timeout", "1s")
	require.Equal(t, cli.ExitTimeout, code)
	s.waitForEvents(1, events.AgentStarted, "extra")
	require.Equal(t, "Nothing has changed.\n", s.ask("reload"))
	s.write("go", "")
	s.waitForEvents(2, events.AgentStarted, "stubborn")
	require.Len(t, s.events(events.AgentStarted, "extra"), 1)
	s.stop()
}

// A second orchestrator on the same state directory is refused with the process id of the first,
// which is not affected.
func TestTortureSecondOrchestrator(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "only" {
  command = ["cat"]
}
`).up("--json")
	s.waitForEvents(1, events.AgentStarted, "only")
	before := s.pids()
	for _, args := range [][]string{{"up"}, {"up", "-d"}} {
		_, stderr, code := s.call(args...)
		require.Equal(t, cli.ExitConflict, code, args)
		require.Contains(t, stderr, fmt.Sprintf("(pid %d, ", s.process.Process.Pid))
	}
	stdout, stderr, code := s.call("up", "--json")
	require.Equal(t, cli.ExitConflict, code)
	require.Empty(t, stderr)
	require.Contains(t, stdout, fmt.Sprintf(`"pid":%d`, s.process.Process.Pid))
	require.Equal(t, before, s.pids())
	s.stop()
}

// If a file or another program occupies the path of the socket, there is one clear error. The
// file is not changed, and nothing is started.
func TestTortureTakenSocket(t *testing.T) {
	t.Parallel()
	const hcl = `
agent "only" {
  command = ["touch", "only-ran"]
}
`
	refused := func(t *testing.T, s *stage, why string) {
		s.up()
		require.Equal(t, cli.ExitNo, s.await())
		require.Equal(t, 1, strings.Count(s.cried.all(), "Error: "))
		require.Contains(t, s.cried.all(), s.path("state/api.sock")+" is "+why)
		require.Contains(t, s.cried.all(), "Nothing was started.")
		require.NoFileExists(t, s.path("only-ran"))
		require.Empty(t, s.said.all())
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, hcl)
		require.NoError(t, os.Mkdir(s.state(), 0o700))
		s.write("state/api.sock", "precious")
		refused(t, s, "in the way")
		text, err := os.ReadFile(s.path("state/api.sock"))
		require.NoError(t, err)
		require.Equal(t, "precious", string(text))
	})
	t.Run("program", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, hcl)
		require.NoError(t, os.Mkdir(s.state(), 0o700))
		foreign, err := net.Listen("unix", s.path("state/api.sock"))
		require.NoError(t, err)
		defer foreign.Close()
		refused(t, s, "taken")
		conn, err := net.Dial("unix", s.path("state/api.sock"))
		require.NoError(t, err, "the other program's socket was taken away")
		require.NoError(t, conn.Close())
	})
	t.Run("nothing listens", func(t *testing.T) { // the socket of a killed orchestrator is replaced
		t.Parallel()
		s := newStage(t, hcl)
		require.NoError(t, os.Mkdir(s.state(), 0o700))
		dead, err := net.Listen("unix", s.path("state/api.sock"))
		require.NoError(t, err)
		dead.(*net.UnixListener).SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())
		s.up("--json", "--exit-when-idle")
		require.Equal(t, cli.ExitOK, s.await())
		require.FileExists(t, s.path("only-ran"))
	})
}

// An agent that cannot start causes one clear error, and the other agents run.
func TestTortureAgentThatCannotStart(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "fine" {
  command = ["cat"]
}

agent "program" {
  command = ["./no-such-program"]
}

agent "folder" {
  command   = ["cat"]
  dir       = "folder"
  autostart = false
}

agent "environment" {
  command   = ["cat"]
  env_file  = ["variables"]
  autostart = false
}
`, "variables", "A=b\n")
	require.NoError(t, os.Mkdir(s.path("folder"), 0o700))
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "fine")
	require.NoError(t, os.Remove(s.path("folder")))
	require.NoError(t, os.Remove(s.path("variables")))
	for agent, says := range map[string]string{
		"program":     "program not found: .*no-such-program",
		"folder":      "its folder .*/folder. does not exist",
		"environment": "variables.*(no such file|does not exist|not found)",
	} {
		if agent != "program" {
			stdout, _, code := s.call("agent", "start", agent)
			require.Equal(t, cli.ExitNo, code)
			require.Regexp(t, regexp.MustCompile(says), stdout)
		}
		gaveUp := s.waitForEvents(1, events.AgentGaveUp, agent)
		require.Len(t, gaveUp, 1)
		require.Regexp(t, regexp.MustCompile(says), gaveUp[0].Text)
		require.Empty(t, s.events(events.AgentRestarting, agent), "it is tried again, which mends nothing")
		view := s.agent(agent)
		require.Equal(t, control.StateFailed, view.State)
		require.Regexp(t, regexp.MustCompile(says), view.Reason)
	}
	require.Equal(t, control.StateRunning, s.agent("fine").State)
	s.stop()
}
