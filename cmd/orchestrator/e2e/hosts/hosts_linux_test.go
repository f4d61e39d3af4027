package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A farm is a hub and the hosts that have joined it, on this machine.
type farm struct {
	*stage.Orchestrator
	file string
	url  string
}

// newFarm starts a hub with a file. $ADDRESS in it is where the hub listens.
func newFarm(t *testing.T, file string) *farm {
	return farmOf(stage.New(t, ""), file)
}

// farmOf starts a hub with a file in the folder of a stage.
func farmOf(s *stage.Orchestrator, file string) *farm {
	address := stage.FreeAddresses(s.T, 1)[0]
	file = fmt.Sprintf("http {\n  listen = [%q]\n}\n", address) + file
	s.Write("orchestrator.hcl", file)
	f := &farm{Orchestrator: s, file: file, url: "http://" + address}
	f.begin()
	return f
}

// begin starts the hub.
func (f *farm) begin() {
	f.Up("--json")
	stage.WaitFor(f.T, "hub", func() bool {
		_, _, code := f.Call("status")
		return code == cli.ExitOK
	})
}

// host lets a new host join, and waits until it has.
func (f *farm) host(name string, flags ...string) *stage.Orchestrator {
	s := stage.New(f.T, f.file, "token", f.Ask("token", "issue", "--actor", "HO:"+name))
	join(s, f.url, flags...)
	f.waitForHost(name, "joined")
	return s
}

func join(s *stage.Orchestrator, url string, flags ...string) {
	s.Start(exec.Command(s.Program, append([]string{"join", url, "--token", "token", "--state-dir", s.State()}, flags...)...))
}

// hosts returns the hosts by name.
func (f *farm) hosts() map[string]control.HostView {
	var reply control.HostsReply
	require.NoError(f.T, json.Unmarshal([]byte(f.Ask("hosts", "--json")), &reply))
	hosts := make(map[string]control.HostView)
	for _, h := range reply.Hosts {
		hosts[h.Name] = h
	}
	return hosts
}

func (f *farm) waitForHost(name, state string) {
	stage.WaitFor(f.T, name+" "+state, func() bool { return f.hosts()[name].State == state })
}

// waitForAgent waits until an agent runs on a host.
func (f *farm) waitForAgent(agent, host string) {
	stage.WaitFor(f.T, agent+" on "+host, func() bool {
		return strings.Contains(strings.Join(f.hosts()[host].Agents, " "), agent) && f.Agent(agent).State == control.StateRunning
	})
}

// An agent with a placement waits for a host, works there, and is stopped from the hub. Its
// environment comes from the host, and it reaches the hub at its own socket.
func TestHost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
agent "far" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {
    hosts = "attic"
  }
}
agent "teller" {
  command   = ["sh", "-c", "orchestrator bus send --help >/dev/null; orchestrator task ls --json >tasks; echo $ORC_AGENT_ID >name; echo said; echo cried >&2; exec cat"]
  protocol  = "raw"
  placement {
    labels = { floor = "top" }
  }
}
`)
	stage.WaitFor(t, "waiting", func() bool { return f.Agent("far").State == control.StateWaiting })
	require.Contains(t, f.Agent("far").Reason, "for a host called attic")
	id := strings.Fields(f.Ask("task", "add", "do it far away", "-q"))[0]
	attic := f.host("attic", "--label", "floor=top")
	f.waitForAgent("far", "attic")
	f.waitForAgent("teller", "attic")
	stage.WaitFor(t, "done", func() bool { return strings.Contains(f.Ask("task", "show", id), "done") })
	stage.WaitFor(t, "output", func() bool {
		return strings.Join(f.Lines("teller", control.StreamOut), " ") == "said" && strings.Join(f.Lines("teller", control.StreamErr), " ") == "cried"
	})
	require.NotEmpty(t, attic.Processes(), "they are processes of the host")
	require.Contains(t, f.Ask("hosts"), "floor=top")
	require.Regexp(t, `HOST +PID`, f.Ask("ps"))
	require.Regexp(t, `far .* attic +[0-9]+`, f.Ask("status"))
	require.Regexp(t, `pid [0-9]+ on attic`, f.Ask("agent", "show", "far"))
	require.Regexp(t, `kept in .* on the hub`, f.Ask("agent", "show", "far"))
	require.Regexp(t, `host +attic`, f.Ask("why", "far"))
	require.NotEmpty(t, f.Events(events.HostJoined, ""))
	_, refused, conflict := f.Call("upgrade")
	require.Equal(t, cli.ExitConflict, conflict, refused)
	require.Contains(t, refused, "runs on attic")
	require.Contains(t, refused, "Stop it first")
	f.Ask("agent", "stop", "far")
	require.Equal(t, control.StateStopped, f.Agent("far").State)
	f.Ask("agent", "start", "far")
	f.waitForAgent("far", "attic")

	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await(), attic.Stderr.All())
	require.Empty(t, attic.Processes())
	f.waitForHost("attic", "gone")
	stage.WaitFor(t, "waiting again", func() bool { return f.Agent("far").State == control.StateWaiting })
	stdout, stderr, code := f.Call("agent", "restart", "far")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stdout+stderr, "waits for a host called attic: attic is not connected")
	f.Stop()
}

// Agents move when their host is drained. A host that is killed takes its agents with it, and they start
// elsewhere when they have ended for certain.
func TestHostsMove(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "6s"
}
agent "mover" {
  command  = ["`+stage.Fixture(t, "worker")+`"]
  replicas = 2
  placement {
    hosts        = "h?"
    spread       = true
    on_host_lost = "move"
  }
}
`)
	one, two := f.host("h1", "--capacity", "1"), f.host("h2")
	stage.WaitFor(t, "one on each", func() bool { return len(f.hosts()["h1"].Agents) == 1 && len(f.hosts()["h2"].Agents) == 1 })
	require.Contains(t, f.Ask("drain", "h1", "--wait"), "h1 gets no more agents")
	require.Empty(t, f.hosts()["h1"].Agents)
	stage.WaitFor(t, "both on h2", func() bool { return len(f.hosts()["h2"].Agents) == 2 })
	f.Ask("drain", "h1", "--undo")
	two.Signal(syscall.SIGKILL)
	<-two.Ended
	stage.WaitFor(t, "one on h1, for there is no room for two", func() bool { return len(f.hosts()["h1"].Agents) == 1 })
	require.NotEmpty(t, f.Events(events.HostLost, ""))
	_, stderr, code := f.Call("drain", "h9")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	f.Stop()
	one.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, one.Await())
	require.Empty(t, one.Processes())
}

// A file that an agent on a host names as an artifact is read there, within the folder of the agent.
func TestHostArtifacts(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
agent "maker" {
  command = ["sh", "-c", <<-EOT
    yes 0123456789abcde | head -c 200000 >large
    ln -s /etc/passwd stolen
    while read -r line; do
      case "$line" in
      *notify:task-assigned*) task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        for path in ../token stolen missing large; do
          echo '{"type":"request:complete-task","id":"'$path'","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"large","path":"'$path'"}]}}'
        done ;;
      *response*) echo "$line" >&2 ;;
      esac
    done
    EOT
  ]
  dir = "work"
  placement {}
}
`)
	attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"))
	require.NoError(t, os.Mkdir(attic.Path("work"), 0o700))
	join(attic, f.url)
	f.waitForAgent("maker", "attic")
	id := strings.Fields(f.Ask("task", "add", "make", "-q"))[0]
	stage.WaitFor(t, "done", func() bool { return strings.Contains(f.Ask("task", "show", id), "done") })
	said := f.Lines("maker", control.StreamErr)
	require.Len(t, said, 4)
	require.Contains(t, said[0], "path escapes from parent")
	require.Contains(t, said[1], "path escapes from parent")
	require.Contains(t, said[2], "no such file")
	require.NotContains(t, said[3], "error")
	kept, err := filepath.Glob(filepath.Join(f.State(), "artifacts", "*", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	text, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("0123456789abcde\n", 12500), string(text))
	f.Stop()
	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await())
}

// An agent that the file of a host does not have waits, until the host has joined with a new file.
func TestHostWithOldFile(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
agent "fresh" {
  command = ["cat"]
  placement {}
}
`)
	attic := stage.New(t, "", "token", f.Ask("token", "issue", "--actor", "HO:attic"))
	join(attic, f.url)
	stage.WaitFor(t, "waiting", func() bool {
		v := f.Agent("fresh")
		return v.State == control.StateWaiting && strings.Contains(v.Reason, "attic does not have it in its configuration")
	})
	require.Contains(t, f.Ask("why", "fresh"), "It starts when such a host joins. List the hosts: orchestrator hosts")
	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await())
	attic.Write("orchestrator.hcl", f.file)
	join(attic, f.url)
	f.waitForAgent("fresh", "attic")
}

// A host joins with its token only, and as the host blocks allow.
func TestHostRefused(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "attic" {
  agents = ["other"]
}
agent "far" {
  command = ["true"]
  placement {}
}
`)
	refused := func(token, name string) string {
		s := stage.New(t, f.file, "token", token)
		join(s, f.url)
		require.Equal(t, cli.ExitDenied, s.Await())
		return s.Stderr.All()
	}
	require.Contains(t, refused("orc_guessed", "attic"), "token")
	require.Contains(t, refused(f.Ask("token", "issue", "--sub", "ann"), "attic"), "this is for hosts")
	cellar := refused(f.Ask("token", "issue", "--actor", "HO:cellar"), "cellar")
	require.Contains(t, cellar, `no host block allows "cellar" to join`)
	require.Contains(t, cellar, `Add it to the file of the hub: host "cellar" {}`)
	late := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"))
	join(late, "http://"+stage.FreeAddresses(t, 1)[0], "--timeout", "1s")
	require.Equal(t, cli.ExitTimeout, late.Await(), late.Stderr.All())
	attic := f.host("attic")
	require.Contains(t, f.Agent("far").Reason, "attic may not run it")
	f.Ask("token", "revoke", "--all", "--yes")
	require.Equal(t, cli.ExitDenied, attic.Await(), attic.Stderr.All())
	f.Stop()
}

// A coding agent works on a host, where a person's answer reaches it, and a confined agent is confined there.
func TestHostClient(t *testing.T) {
	path, err := exec.Command("go", "tool", "-n", "agent").Output() // builds it
	require.NoError(t, err)
	f := newFarm(t, `
agent "coder" {
  protocol    = "acp"
  command     = [`+strconv.Quote(strings.TrimSpace(string(path)))+`]
  on_turn_end = "complete"
  placement {}
}
agent "shut" {
  command  = ["sh", "-c", "cat orchestrator.hcl >/dev/null && echo open; cat token >/dev/null 2>&1 || echo shut; orchestrator task ls -q >/dev/null && echo asked; exec cat"]
  protocol = "raw"
  confine {
    hide = ["token"]
  }
  placement {}
}
`)
	attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"))
	join(attic, f.url)
	f.waitForAgent("coder", "attic")
	id := strings.TrimSpace(f.Ask("task", "add", "Improve the settings", "-q"))
	q := f.WaitForQuestions(1)[0]
	require.Equal(t, id, q.Task)
	f.AnswerQuestion(q.ID, "allow")
	f.WaitForState(id, wire.TaskDone)
	stage.WaitFor(t, "what the confined agent has tried", func() bool { return len(f.Lines("shut", control.StreamOut)) == 3 })
	require.Equal(t, []string{"open", "shut", "asked"}, f.Lines("shut", control.StreamOut))
	f.Stop()
	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await())
}
