package hosts

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

// A gate is between a host and its hub. It can be shut.
type gate struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	isShut bool
	conns  []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{listener: l, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.shut(true)
		all.Wait()
	})
	return g
}

// pass connects a host with the hub, unless the gate is shut.
func (g *gate) pass(c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	if g.isShut {
		g.mu.Unlock()
		return
	}
	hub, err := net.Dial("tcp", g.to)
	if err != nil {
		g.mu.Unlock()
		return
	}
	g.conns = append(g.conns, c, hub)
	g.mu.Unlock()
	defer hub.Close()
	go func() {
		_, _ = io.Copy(hub, c)
		_ = hub.Close()
	}()
	_, _ = io.Copy(c, hub)
}

// shut cuts all connections and lets no more through, or lets them through again.
func (g *gate) shut(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = yes
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

// An agent outlives the link of its host. Messages in both directions arrive once, also if they are
// sent without the link.
func TestHostCutOff(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "5m"
}
agent "clock" {
  command  = ["sh", "-c", "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo tick $i; sleep 0.2; done; while read line; do echo told $line; done"]
  protocol = "raw"
  placement {}
}
`)
	g := newGate(t, strings.TrimPrefix(f.url, "http://"))
	attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"))
	join(attic, "http://"+g.listener.Addr().String())
	stage.WaitFor(t, "ticks", func() bool { return len(f.Lines("clock", control.StreamOut)) > 3 })
	run := f.Agent("clock").Run
	g.shut(true)
	stage.WaitFor(t, "unreachable", func() bool { return f.Agent("clock").State == control.StateStalled })
	require.Contains(t, f.Agent("clock").Reason, "attic, which has been unreachable since")
	f.waitForHost("attic", "gone")
	g.shut(false)
	stage.WaitFor(t, "reachable", func() bool { return f.Agent("clock").State == control.StateRunning })
	stage.WaitFor(t, "all ticks", func() bool { return len(f.Lines("clock", control.StreamOut)) >= 60 })
	for i, line := range f.Lines("clock", control.StreamOut) {
		require.Equal(t, fmt.Sprintf("tick %d", i+1), line)
	}
	require.Equal(t, run, f.Agent("clock").Run)
	require.NotEmpty(t, attic.Processes())
	f.Stop()
	require.Empty(t, attic.Processes())
	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await(), attic.Stderr.All())
}

// settle waits until all that was said to the agents on a host, and by them, is settled: that is looked at between
// two beats.
func (f *farm) settle(host string) {
	for range 2 {
		before := f.hosts()[host].HeardAt
		stage.WaitFor(f.T, "a beat", func() bool { return f.hosts()[host].HeardAt != before })
	}
}

// Agents on hosts outlive the hub, if it is there again soon. One that waits for an answer gets it from the next.
func TestHubStartedAnew(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "5m"
}
agent "asker" {
  command = ["`+stage.Fixture(t, "asker")+`", "Which one?"]
  restart {
    policy = "never"
  }
  placement {}
}
agent "far" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {}
}
`)
	attic := f.host("attic")
	f.waitForAgent("far", "attic")
	var question string
	stage.WaitFor(t, "a question", func() bool {
		question = strings.TrimSpace(f.Ask("inbox", "-q"))
		return question != ""
	})
	spare := f.host("spare", "--label", "spare=yes")
	f.Ask("drain", "spare")
	f.settle("attic")
	far, asker, pids := f.Agent("far").Run, f.Agent("asker").Run, attic.Processes()
	f.Signal(syscall.SIGKILL)
	<-f.Ended
	f.begin()
	f.waitForAgent("far", "attic")
	f.waitForAgent("asker", "attic")
	require.Equal(t, far, f.Agent("far").Run)
	require.Equal(t, asker, f.Agent("asker").Run)
	require.Equal(t, pids, attic.Processes())
	stage.WaitFor(t, "the drained host", func() bool { return f.hosts()["spare"].State == "draining" })
	f.Ask("drain", "spare", "--undo")
	require.Equal(t, "joined", f.hosts()["spare"].State)
	spare.Signal(syscall.SIGHUP)
	require.Equal(t, cli.ExitOK, spare.Await(), spare.Stderr.All())
	f.Ask("inbox", "answer", question, "this one")
	stage.WaitFor(t, "the answer", func() bool { return strings.Join(f.Lines("asker", control.StreamOut), " ") == "the answer is this one" })
	stage.WaitFor(t, "its end", func() bool { return f.Agent("asker").State == control.StateExited })
	require.Equal(t, asker, f.Agent("asker").Run)
	id := strings.Fields(f.Ask("task", "add", "do it", "-q"))[0]
	stage.WaitFor(t, "done", func() bool { return strings.Contains(f.Ask("task", "show", id), "done") })
	f.Stop()
	require.Empty(t, attic.Processes())
	attic.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.Await(), attic.Stderr.All())
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

// The agents of a host that hangs are killed when its grace is over, and start elsewhere only then.
func TestHostHangs(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "6s"
}
agent "mover" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {
    on_host_lost = "move"
  }
}
`)
	one := f.host("h1")
	f.waitForAgent("mover", "h1")
	first := f.Agent("mover").PID
	two := f.host("h2")
	one.Signal(syscall.SIGSTOP)
	stage.WaitFor(t, "its end", func() bool { return !stage.Alive(first) })
	require.Empty(t, f.hosts()["h2"].Agents, "it has not started elsewhere before")
	f.waitForAgent("mover", "h2")
	one.Signal(syscall.SIGCONT)
	stage.WaitFor(t, "both hosts", func() bool { return f.hosts()["h1"].State == "joined" })
	f.waitForAgent("mover", "h2")
	f.Stop()
	for _, host := range []*stage.Orchestrator{one, two} {
		host.Signal(syscall.SIGINT)
		require.Equal(t, cli.ExitOK, host.Await())
	}
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

// A host joins the hub that comes after the first, and its agents go on.
func TestHostOfHubs(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, `
host "any" {
  names = ["*"]
  grace = "5m"
}
agent "far" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {}
}
`)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	file, err := os.ReadFile(h.hubs[at].Path("orchestrator.hcl"))
	require.NoError(t, err)
	host := stage.New(t, string(file), "token", h.hubs[at].Ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret")
	join(host, strings.Join(h.urls, ","))
	runs := func(hub int) bool {
		stdout, _, _ := h.hubs[hub].Call("hosts", "--json")
		return strings.Contains(stdout, `"far"`)
	}
	stage.WaitFor(t, "agent on the host", func() bool { return runs(at) })
	run := h.hubs[at].Agent("far").Run
	id := strings.Fields(h.hubs[at].Ask("task", "add", "done before", "-q"))[0]
	stage.WaitFor(t, "done", func() bool { return strings.Contains(h.hubs[at].Ask("task", "show", id), "done") })
	(&farm{Orchestrator: h.hubs[at]}).settle("attic")
	pids := host.Processes()
	require.Contains(t, h.hubs[at].Ask("hosts", "--hubs"), "at work")
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	next := h.atWork(at, others(at)...)
	stage.WaitFor(t, "agent on the host, for the next hub", func() bool { return runs(next) })
	stage.WaitFor(t, "found", func() bool { return h.hubs[next].Agent("far").State == control.StateRunning })
	require.Equal(t, run, h.hubs[next].Agent("far").Run)
	require.Equal(t, pids, host.Processes())
	id = strings.Fields(h.hubs[next].Ask("task", "add", "done afterwards", "-q"))[0]
	stage.WaitFor(t, "done", func() bool { return strings.Contains(h.hubs[next].Ask("task", "show", id), "done") })
	require.Contains(t, h.hubs[next].Ask("hosts", "--hubs"), "missing")
	host.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, host.Await(), host.Stderr.All())
	require.Empty(t, host.Processes())
	h.hubs[next].Stop()
}

// An agent on a host that talks when the hub is killed goes on: with the same run and attempt, each of its requests is
// recorded once and answered once.
func TestTalkingAgentOutlivesItsHub(t *testing.T) {
	t.Parallel()
	const talker = `#!/bin/sh
read -r notice
task=$(printf %s "$notice" | sed 's/.*"taskId":"\([^"]*\)".*/\1/')
say() { printf '{"type":"request:%s","id":"%s","timestamp":"2026-01-01T00:00:00.000Z","payload":%s}\n' "$1" "$2" "$3"; }
for n in $(seq 1 60); do
  say report-progress q$n '{"taskId":"'"$task"'","progress":0.5,"message":"'"step $n"'"}'
  read -r reply
  printf '%s\n' "$reply" >>replies
  sleep 0.05
done
say complete-task end '{"taskId":"'"$task"'"}'
exec cat >/dev/null
`
	h := newOpenThreeHubs(t, `
agent "talker" {
  command = ["sh", "talker"]
  placement {}
}
`)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	file, err := os.ReadFile(h.hubs[at].Path("orchestrator.hcl"))
	require.NoError(t, err)
	host := stage.New(t, string(file), "token", h.hubs[at].Ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret", "talker", talker)
	join(host, strings.Join(h.urls, ","))
	stage.WaitFor(t, "agent on the host", func() bool { return h.hubs[at].Agent("talker").State == control.StateRunning })
	run := h.hubs[at].Agent("talker").Run
	id := strings.Fields(h.hubs[at].Ask("task", "add", "talk", "--assign", "talker", "-q"))[0]
	replies := func() []string {
		text, _ := os.ReadFile(host.Path("replies"))
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	stage.WaitFor(t, "replies", func() bool { return len(replies()) >= 20 })
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	next := h.atWork(at, others(at)...)
	stage.WaitFor(t, "done", func() bool { return strings.Contains(h.hubs[next].Ask("task", "show", id), "done") })
	require.Equal(t, run, h.hubs[next].Agent("talker").Run)
	for n, reply := range replies() {
		require.Contains(t, reply, fmt.Sprintf(`"correlationId":"q%d"`, n+1))
		require.Contains(t, reply, `"type":"response:success"`)
	}
	require.Len(t, replies(), 60)
	reports := h.hubs[next].Ask("events", "--type", "task.progress", "--json")
	for n := range 60 {
		require.Equal(t, 1, strings.Count(reports, fmt.Sprintf(`"message":"step %d"`, n+1)), reports)
	}
	require.NotContains(t, h.hubs[next].Ask("task", "show", id), "attempt 2")
}

// A hub that hung and wakes sends no more to the agents on hosts, since they belong to the next
// hub.
func TestHostOfHungHub(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, `
agent "far" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {}
}
`)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	file, err := os.ReadFile(h.hubs[at].Path("orchestrator.hcl"))
	require.NoError(t, err)
	host := stage.New(t, string(file), "token", h.hubs[at].Ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret")
	join(host, strings.Join(h.urls, ","))
	stage.WaitFor(t, "far", func() bool { return h.hubs[at].Agent("far").State == control.StateRunning })
	(&farm{Orchestrator: h.hubs[at]}).settle("attic")
	run, pids := h.hubs[at].Agent("far").Run, host.Processes()
	h.hubs[at].Signal(syscall.SIGSTOP)
	next := h.atWork(at, others(at)...)
	h.hubs[at].Signal(syscall.SIGCONT) // the host has not noticed anything yet
	stage.WaitFor(t, "standing by", func() bool {
		stdout, _, _ := h.hubs[at].Call("hosts", "--hubs", "--json")
		return strings.Contains(stdout, `"at_work"`) && !strings.Contains(stdout, fmt.Sprintf(`{"name":"%s","state":"at_work"`, h.peers[at]))
	})
	stage.WaitFor(t, "found", func() bool { return h.hubs[next].Agent("far").State == control.StateRunning })
	require.Equal(t, run, h.hubs[next].Agent("far").Run)
	require.Equal(t, pids, host.Processes())
	host.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, host.Await(), host.Stderr.All())
	h.hubs[next].Stop()
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
