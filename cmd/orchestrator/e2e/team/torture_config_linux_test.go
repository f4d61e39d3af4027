package team

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
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Row 18: three mistakes are all reported with line and column, and no agent is started.
func TestTorture18EveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `orchestrator {
  shutdown = "soon"
}

agent "first" {
  comand = ["touch", "first-ran"]
}

agent "second" {
  command    = ["touch", "second-ran"]
  depends_on = ["thrid"]
}
`).Up()
	require.Equal(t, cli.ExitNo, s.Await())
	for _, place := range []string{"orchestrator.hcl:2:14", "orchestrator.hcl:6:3", "orchestrator.hcl:11:17"} {
		require.Contains(t, s.Stderr.All(), place)
	}
	require.Contains(t, s.Stderr.All(), "Nothing was started.")
	requireNothingStarted(s)
}

// requireNothingStarted requires that a running orchestrator has left no trace.
func requireNothingStarted(s *stage.Orchestrator) {
	s.T.Helper()
	require.Empty(s.T, s.Processes())
	require.Empty(s.T, s.Stdout.All())
	require.NoDirExists(s.T, s.State())
	entries, err := os.ReadDir(s.Dir)
	require.NoError(s.T, err)
	for _, entry := range entries {
		require.NotContains(s.T, entry.Name(), "-ran")
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
			s := stage.New(t, test.hcl).Up(test.args...)
			require.Equal(t, test.exit, s.Await())
			require.Contains(t, s.Stderr.All(), test.says)
			requireNothingStarted(s)
		})
	}
}

// twenty returns a configuration of twenty agents. One of them has a different command.
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

func pids(s *stage.Orchestrator) map[string]int {
	s.T.Helper()
	pids := make(map[string]int)
	for _, view := range s.Status().Agents {
		require.Equal(s.T, control.StateRunning, view.State, view.Name)
		require.True(s.T, stage.Alive(view.PID))
		pids[view.Name] = view.PID
	}
	return pids
}

// Row 19: one of twenty agents is changed. After the reload the other nineteen are the same
// processes.
func TestTorture19ReloadTouchesOneOfTwenty(t *testing.T) {
	t.Parallel()
	s := stage.New(t, twenty(`["cat"]`)).Up("--json")
	s.WaitForEvents(20, events.AgentStarted, "")
	before := pids(s)
	s.Write("orchestrator.hcl", twenty(`["cat", "-"]`))
	var reply control.ReloadReply
	require.NoError(t, json.Unmarshal([]byte(s.Ask("reload", "--json")), &reply))
	require.Len(t, reply.Changes, 1)
	require.Equal(t, "a07", reply.Changes[0].Agent)
	after := pids(s)
	require.Len(t, after, 20)
	for name, pid := range after {
		require.Equal(t, name != "a07", pid == before[name], name)
	}
	stage.RequireGone(t, before["a07"])
	s.Stop()
}

// A reload with a mistake changes nothing, not even the valid parts.
func TestTortureReloadWithMistakeChangesNothing(t *testing.T) {
	t.Parallel()
	s := stage.New(t, twenty(`["cat"]`)).Up("--json")
	s.WaitForEvents(20, events.AgentStarted, "")
	before := pids(s)
	s.Write("orchestrator.hcl", twenty(`["cat", "-"]`)+"agent \"new\" {\n  command = [\"touch\", \"new-ran\"]\n  pyt     = true\n}\n")
	_, stderr, code := s.Call("reload")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "orchestrator.hcl:63:3")
	require.Contains(t, stderr, "Nothing was changed.")
	require.Equal(t, before, pids(s))
	require.NoFileExists(t, s.Path("new-ran"))
	s.Stop()
}

// A file without any block changes nothing, because an editor may have truncated it before it writes.
func TestTortureReloadOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	const hcl = stage.QuickStop + "agent \"a\" {\n  command = [\"cat\"]\n}\n"
	s := stage.New(t, hcl).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	before := pids(s)
	for i, text := range []string{"", " \n\t\n", "# agents follow\n"} {
		s.Write("orchestrator.hcl", text)
		for _, dry := range []string{"--dry-run", "--yes"} {
			_, stderr, code := s.Call("reload", dry)
			require.Equal(t, cli.ExitNo, code, stderr)
			require.Contains(t, stderr, "file is empty")
			require.Contains(t, stderr, "To stop the agents: orchestrator down")
			require.Contains(t, stderr, "Nothing was changed.")
		}
		s.Signal(syscall.SIGHUP)
		stage.WaitFor(t, "refusal of the signal", func() bool {
			return strings.Count(s.Stderr.All(), `"the file is empty: nothing was changed; to stop the agents: orchestrator down"`) == 3*(i+1)
		})
		require.Equal(t, before, pids(s))
	}
	s.Write("orchestrator.hcl", hcl)
	require.Contains(t, s.Ask("reload"), "No changes.")
	require.Equal(t, before, pids(s))
	s.Stop()
}

// TestReloadLogsRights checks that the log tells a command with other rights from another command.
func TestReloadLogsRights(t *testing.T) {
	t.Parallel()
	const hcl = stage.QuickStop + "agent \"a\" {\n  command = [\"cat\"]\n"
	s := stage.New(t, hcl+"}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	s.Write("orchestrator.hcl", hcl+"  manage = true\n}\n")
	s.Ask("reload", "--yes")
	s.Stop()
	require.Contains(t, s.Stderr.All(), "the rights, folder or environment of a command have changed")
	require.NotContains(t, s.Stderr.All(), "a command has changed")
}

// A reload applies only to the agents named at the start.
func TestTortureReloadKeepsTheChosen(t *testing.T) {
	t.Parallel()
	const hcl = stage.QuickStop + `
agent "db" {
  command = ["sh", "-c", ">db-ran; exec cat"]
}

agent "web" {
  command    = ["cat"]
  depends_on = ["db"]
}
`
	s := stage.New(t, hcl).Up("--json", "web", "--no-deps")
	s.WaitForEvents(1, events.AgentStarted, "web")
	s.Write("orchestrator.hcl", strings.ReplaceAll(hcl, `["cat"]`, `["cat", "-"]`)+`
agent "more" {
  command = ["cat"]
}
`)
	require.Contains(t, s.Ask("reload"), "1 restarted")
	s.WaitForEvents(2, events.AgentStarted, "web")
	for _, name := range []string{"db", "more"} {
		require.Equal(t, control.StateStopped, s.Agent(name).State, name)
	}
	require.NoFileExists(t, s.Path("db-ran"))
	s.Stop()
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
	s := stage.New(t, fmt.Sprintf(hcl, 1)).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "stubborn")
	s.Write("orchestrator.hcl", fmt.Sprintf(hcl, 2)+`
agent "extra" {
  command = ["cat"]
}
`)
	_, _, code := s.Call("reload", "--timeout", "1s")
	require.Equal(t, cli.ExitTimeout, code)
	s.WaitForEvents(1, events.AgentStarted, "extra")
	require.Equal(t, "No changes.\n", s.Ask("reload"))
	s.Write("go", "")
	s.WaitForEvents(2, events.AgentStarted, "stubborn")
	require.Len(t, s.Events(events.AgentStarted, "extra"), 1)
	s.Stop()
}

// A second orchestrator on the same state directory is refused with the process id of the first,
// which is not affected.
func TestTortureSecondOrchestrator(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "only" {
  command = ["cat"]
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	before := pids(s)
	for _, args := range [][]string{{"up"}, {"up", "-d"}} {
		_, stderr, code := s.Call(args...)
		require.Equal(t, cli.ExitConflict, code, args)
		require.Contains(t, stderr, fmt.Sprintf("(pid %d, ", s.Process.Process.Pid))
	}
	stdout, stderr, code := s.Call("up", "--json")
	require.Equal(t, cli.ExitConflict, code)
	require.Empty(t, stderr)
	require.Contains(t, stdout, fmt.Sprintf(`"pid":%d`, s.Process.Process.Pid))
	require.Equal(t, before, pids(s))
	s.Stop()
}

// If a file or another program occupies the path of the socket, the user gets one clear error. The
// file is not changed, and no agent is started.
func TestTortureTakenSocket(t *testing.T) {
	t.Parallel()
	const hcl = `
agent "only" {
  command = ["touch", "only-ran"]
}
`
	refused := func(t *testing.T, s *stage.Orchestrator, why string) {
		s.Up()
		require.Equal(t, cli.ExitNo, s.Await())
		require.Equal(t, 1, strings.Count(s.Stderr.All(), "Error: "))
		require.Contains(t, s.Stderr.All(), s.Path("state/api.sock")+why)
		require.Contains(t, s.Stderr.All(), "Nothing was started.")
		require.NoFileExists(t, s.Path("only-ran"))
		require.Empty(t, s.Stdout.All())
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		s := stage.New(t, hcl)
		require.NoError(t, os.Mkdir(s.State(), 0o700))
		s.Write("state/api.sock", "precious")
		refused(t, s, " exists, and is not a socket")
		text, err := os.ReadFile(s.Path("state/api.sock"))
		require.NoError(t, err)
		require.Equal(t, "precious", string(text))
	})
	t.Run("program", func(t *testing.T) {
		t.Parallel()
		s := stage.New(t, hcl)
		require.NoError(t, os.Mkdir(s.State(), 0o700))
		foreign, err := net.Listen("unix", s.Path("state/api.sock"))
		require.NoError(t, err)
		defer foreign.Close()
		refused(t, s, " is in use")
		conn, err := net.Dial("unix", s.Path("state/api.sock"))
		require.NoError(t, err, "the other program's socket was taken away")
		require.NoError(t, conn.Close())
	})
	t.Run("nothing listens", func(t *testing.T) { // the socket of a killed orchestrator is replaced
		t.Parallel()
		s := stage.New(t, hcl)
		require.NoError(t, os.Mkdir(s.State(), 0o700))
		dead, err := net.Listen("unix", s.Path("state/api.sock"))
		require.NoError(t, err)
		dead.(*net.UnixListener).SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())
		s.Up("--json", "--exit-when-idle")
		require.Equal(t, cli.ExitOK, s.Await())
		require.FileExists(t, s.Path("only-ran"))
	})
}

// An agent that cannot start causes one clear error, and the other agents run.
func TestTortureAgentThatCannotStart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
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
	require.NoError(t, os.Mkdir(s.Path("folder"), 0o700))
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "fine")
	require.NoError(t, os.Remove(s.Path("folder")))
	require.NoError(t, os.Remove(s.Path("variables")))
	for agent, says := range map[string]string{
		"program":     "program not found: .*no-such-program",
		"folder":      "its folder .*/folder. does not exist",
		"environment": "variables.*(no such file|does not exist|not found)",
	} {
		if agent != "program" {
			stdout, _, code := s.Call("agent", "start", agent)
			require.Equal(t, cli.ExitNo, code)
			require.Regexp(t, regexp.MustCompile(says), stdout)
		}
		gaveUp := s.WaitForEvents(1, events.AgentGaveUp, agent)
		require.Len(t, gaveUp, 1)
		require.Regexp(t, regexp.MustCompile(says), gaveUp[0].Text)
		require.Empty(t, s.Events(events.AgentRestarting, agent), "it is tried again, which mends nothing")
		view := s.Agent(agent)
		require.Equal(t, control.StateFailed, view.State)
		require.Regexp(t, regexp.MustCompile(says), view.Reason)
	}
	require.Equal(t, control.StateRunning, s.Agent("fine").State)
	s.Stop()
}
