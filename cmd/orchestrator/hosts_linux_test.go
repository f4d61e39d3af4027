package main

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
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A farm is a hub and the hosts that have joined it, on this machine.
type farm struct {
	*stage
	file string
	url  string
}

// newFarm starts a hub with a file. $ADDRESS in it is where the hub listens.
func newFarm(t *testing.T, file string) *farm {
	return farmOf(newStage(t, ""), file)
}

// farmOf starts a hub with a file in the folder of a stage.
func farmOf(s *stage, file string) *farm {
	address := freeAddresses(s.t, 1)[0]
	file = fmt.Sprintf("http {\n  listen = [%q]\n}\n", address) + file
	s.write("orchestrator.hcl", file)
	f := &farm{stage: s, file: file, url: "http://" + address}
	f.begin()
	return f
}

// begin starts the hub.
func (f *farm) begin() {
	f.up("--json")
	waitForThat(f.t, "hub", func() bool {
		_, _, code := f.call("status")
		return code == cli.ExitOK
	})
}

// host lets a new host join, and waits until it has.
func (f *farm) host(name string, flags ...string) *stage {
	s := newStage(f.t, f.file, "token", f.ask("token", "issue", "--actor", "HO:"+name))
	s.join(f.url, flags...)
	f.waitForHost(name, "joined")
	return s
}

func (s *stage) join(url string, flags ...string) {
	s.start(exec.Command(s.program, append([]string{"join", url, "--token", "token", "--state-dir", s.state()}, flags...)...))
}

// hosts returns the hosts by name.
func (f *farm) hosts() map[string]control.HostView {
	var reply control.HostsReply
	require.NoError(f.t, json.Unmarshal([]byte(f.ask("hosts", "--json")), &reply))
	hosts := make(map[string]control.HostView)
	for _, h := range reply.Hosts {
		hosts[h.Name] = h
	}
	return hosts
}

func (f *farm) waitForHost(name, state string) {
	waitForThat(f.t, name+" "+state, func() bool { return f.hosts()[name].State == state })
}

// waitForAgent waits until an agent runs on a host.
func (f *farm) waitForAgent(agent, host string) {
	waitForThat(f.t, agent+" on "+host, func() bool {
		return strings.Contains(strings.Join(f.hosts()[host].Agents, " "), agent) && f.agent(agent).State == control.StateRunning
	})
}

// An agent with a placement waits for a host, works there, and is stopped from the hub. Its environment
// is that of the host, and it reaches the hub at its own socket.
func TestHost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
agent "far" {
  command = ["`+fixture(t, "worker")+`"]
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
	waitForThat(t, "waiting", func() bool { return f.agent("far").State == control.StateWaiting })
	require.Contains(t, f.agent("far").Reason, "for a host called attic")
	id := strings.Fields(f.ask("task", "add", "do it far away", "-q"))[0]
	attic := f.host("attic", "--label", "floor=top")
	f.waitForAgent("far", "attic")
	f.waitForAgent("teller", "attic")
	waitForThat(t, "done", func() bool { return strings.Contains(f.ask("task", "show", id), "done") })
	waitForThat(t, "output", func() bool {
		return strings.Join(f.lines("teller", control.StreamOut), " ") == "said" && strings.Join(f.lines("teller", control.StreamErr), " ") == "cried"
	})
	require.NotEmpty(t, attic.processes(), "they are processes of the host")
	require.Contains(t, f.ask("hosts"), "floor=top")
	require.Regexp(t, `HOST +PID`, f.ask("ps"))
	require.Regexp(t, `far .* attic +[0-9]+`, f.ask("status"))
	require.Regexp(t, `pid [0-9]+ on attic`, f.ask("agent", "show", "far"))
	require.Regexp(t, `kept in .* on the hub`, f.ask("agent", "show", "far"))
	require.Regexp(t, `host +attic`, f.ask("why", "far"))
	require.NotEmpty(t, f.events(events.HostJoined, ""))
	_, refused, conflict := f.call("upgrade")
	require.Equal(t, cli.ExitConflict, conflict, refused)
	require.Contains(t, refused, "runs on attic")
	require.Contains(t, refused, "Stop it first")
	f.ask("agent", "stop", "far")
	require.Equal(t, control.StateStopped, f.agent("far").State)
	f.ask("agent", "start", "far")
	f.waitForAgent("far", "attic")

	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await(), attic.cried.all())
	require.Empty(t, attic.processes())
	f.waitForHost("attic", "gone")
	waitForThat(t, "waiting again", func() bool { return f.agent("far").State == control.StateWaiting })
	stdout, stderr, code := f.call("agent", "restart", "far")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stdout+stderr, "waits for a host called attic: attic is not connected")
	f.stop()
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
  command  = ["`+fixture(t, "worker")+`"]
  replicas = 2
  placement {
    hosts        = "h?"
    spread       = true
    on_host_lost = "move"
  }
}
`)
	one, two := f.host("h1", "--capacity", "1"), f.host("h2")
	waitForThat(t, "one on each", func() bool { return len(f.hosts()["h1"].Agents) == 1 && len(f.hosts()["h2"].Agents) == 1 })
	require.Contains(t, f.ask("drain", "h1", "--wait"), "h1 gets no more agents")
	require.Empty(t, f.hosts()["h1"].Agents)
	waitForThat(t, "both on h2", func() bool { return len(f.hosts()["h2"].Agents) == 2 })
	f.ask("drain", "h1", "--undo")
	two.signal(syscall.SIGKILL)
	<-two.ended
	waitForThat(t, "one on h1, for there is no room for two", func() bool { return len(f.hosts()["h1"].Agents) == 1 })
	require.NotEmpty(t, f.events(events.HostLost, ""))
	_, stderr, code := f.call("drain", "h9")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	f.stop()
	one.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, one.await())
	require.Empty(t, one.processes())
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

// An agent outlives the link of its host. What it says and is told meanwhile arrives once.
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
	attic := newStage(t, f.file, "token", f.ask("token", "issue", "--actor", "HO:attic"))
	attic.join("http://" + g.listener.Addr().String())
	waitForThat(t, "ticks", func() bool { return len(f.lines("clock", control.StreamOut)) > 3 })
	run := f.agent("clock").Run
	g.shut(true)
	waitForThat(t, "unreachable", func() bool { return f.agent("clock").State == control.StateStalled })
	require.Contains(t, f.agent("clock").Reason, "attic, which cannot be reached since")
	f.waitForHost("attic", "gone")
	g.shut(false)
	waitForThat(t, "reachable", func() bool { return f.agent("clock").State == control.StateRunning })
	waitForThat(t, "all ticks", func() bool { return len(f.lines("clock", control.StreamOut)) >= 60 })
	for i, line := range f.lines("clock", control.StreamOut) {
		require.Equal(t, fmt.Sprintf("tick %d", i+1), line)
	}
	require.Equal(t, run, f.agent("clock").Run)
	require.NotEmpty(t, attic.processes())
	f.stop()
	require.Empty(t, attic.processes())
	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await(), attic.cried.all())
}

// settle waits until all that was said to the agents on a host, and by them, is settled: that is looked at between
// two beats.
func (f *farm) settle(host string) {
	for range 2 {
		before := f.hosts()[host].HeardAt
		waitForThat(f.t, "a beat", func() bool { return f.hosts()[host].HeardAt != before })
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
  command = ["`+fixture(t, "asker")+`", "Which one?"]
  restart {
    policy = "never"
  }
  placement {}
}
agent "far" {
  command = ["`+fixture(t, "worker")+`"]
  placement {}
}
`)
	attic := f.host("attic")
	f.waitForAgent("far", "attic")
	var question string
	waitForThat(t, "a question", func() bool {
		question = strings.TrimSpace(f.ask("inbox", "-q"))
		return question != ""
	})
	spare := f.host("spare", "--label", "spare=yes")
	f.ask("drain", "spare")
	f.settle("attic")
	far, asker, pids := f.agent("far").Run, f.agent("asker").Run, attic.processes()
	f.signal(syscall.SIGKILL)
	<-f.ended
	f.begin()
	f.waitForAgent("far", "attic")
	f.waitForAgent("asker", "attic")
	require.Equal(t, far, f.agent("far").Run)
	require.Equal(t, asker, f.agent("asker").Run)
	require.Equal(t, pids, attic.processes())
	waitForThat(t, "the drained host", func() bool { return f.hosts()["spare"].State == "draining" })
	f.ask("drain", "spare", "--undo")
	require.Equal(t, "joined", f.hosts()["spare"].State)
	spare.signal(syscall.SIGHUP)
	require.Equal(t, cli.ExitOK, spare.await(), spare.cried.all())
	f.ask("inbox", "answer", question, "this one")
	waitForThat(t, "the answer", func() bool { return strings.Join(f.lines("asker", control.StreamOut), " ") == "the answer is this one" })
	waitForThat(t, "its end", func() bool { return f.agent("asker").State == control.StateExited })
	require.Equal(t, asker, f.agent("asker").Run)
	id := strings.Fields(f.ask("task", "add", "do it", "-q"))[0]
	waitForThat(t, "done", func() bool { return strings.Contains(f.ask("task", "show", id), "done") })
	f.stop()
	require.Empty(t, attic.processes())
	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await(), attic.cried.all())
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
	attic := newStage(t, f.file, "token", f.ask("token", "issue", "--actor", "HO:attic"))
	require.NoError(t, os.Mkdir(attic.path("work"), 0o700))
	attic.join(f.url)
	f.waitForAgent("maker", "attic")
	id := strings.Fields(f.ask("task", "add", "make", "-q"))[0]
	waitForThat(t, "done", func() bool { return strings.Contains(f.ask("task", "show", id), "done") })
	said := f.lines("maker", control.StreamErr)
	require.Len(t, said, 4)
	require.Contains(t, said[0], "path escapes from parent")
	require.Contains(t, said[1], "path escapes from parent")
	require.Contains(t, said[2], "no such file")
	require.NotContains(t, said[3], "error")
	kept, err := filepath.Glob(filepath.Join(f.state(), "artifacts", "*", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	text, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("0123456789abcde\n", 12500), string(text))
	f.stop()
	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await())
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
  command = ["`+fixture(t, "worker")+`"]
  placement {
    on_host_lost = "move"
  }
}
`)
	one := f.host("h1")
	f.waitForAgent("mover", "h1")
	first := f.agent("mover").PID
	two := f.host("h2")
	one.signal(syscall.SIGSTOP)
	waitForThat(t, "its end", func() bool { return !alive(first) })
	require.Empty(t, f.hosts()["h2"].Agents, "it has not started elsewhere before")
	f.waitForAgent("mover", "h2")
	one.signal(syscall.SIGCONT)
	waitForThat(t, "both hosts", func() bool { return f.hosts()["h1"].State == "joined" })
	f.waitForAgent("mover", "h2")
	f.stop()
	for _, host := range []*stage{one, two} {
		host.signal(syscall.SIGINT)
		require.Equal(t, cli.ExitOK, host.await())
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
	attic := newStage(t, "", "token", f.ask("token", "issue", "--actor", "HO:attic"))
	attic.join(f.url)
	waitForThat(t, "waiting", func() bool {
		v := f.agent("fresh")
		return v.State == control.StateWaiting && strings.Contains(v.Reason, "attic does not have it in its file")
	})
	require.Contains(t, f.ask("why", "fresh"), "It starts when such a host has joined. The hosts: orchestrator hosts")
	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await())
	attic.write("orchestrator.hcl", f.file)
	attic.join(f.url)
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
		s := newStage(t, f.file, "token", token)
		s.join(f.url)
		require.Equal(t, cli.ExitDenied, s.await())
		return s.cried.all()
	}
	require.Contains(t, refused("orc_guessed", "attic"), "token")
	require.Contains(t, refused(f.ask("token", "issue", "--sub", "ann"), "attic"), "this is for hosts")
	cellar := refused(f.ask("token", "issue", "--actor", "HO:cellar"), "cellar")
	require.Contains(t, cellar, `no host block allows "cellar" to join`)
	require.Contains(t, cellar, `Add it to the file of the hub: host "cellar" {}`)
	late := newStage(t, f.file, "token", f.ask("token", "issue", "--actor", "HO:attic"))
	late.join("http://"+freeAddresses(t, 1)[0], "--timeout", "1s")
	require.Equal(t, cli.ExitTimeout, late.await(), late.cried.all())
	attic := f.host("attic")
	require.Contains(t, f.agent("far").Reason, "attic may not run it")
	f.ask("token", "revoke", "--all", "--yes")
	require.Equal(t, cli.ExitDenied, attic.await(), attic.cried.all())
	f.stop()
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
  command = ["`+fixture(t, "worker")+`"]
  placement {}
}
`)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	file, err := os.ReadFile(h.hubs[at].path("orchestrator.hcl"))
	require.NoError(t, err)
	host := newStage(t, string(file), "token", h.hubs[at].ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret")
	host.join(strings.Join(h.urls, ","))
	runs := func(hub int) bool {
		stdout, _, _ := h.hubs[hub].call("hosts", "--json")
		return strings.Contains(stdout, `"far"`)
	}
	waitForThat(t, "agent on the host", func() bool { return runs(at) })
	run := h.hubs[at].agent("far").Run
	id := strings.Fields(h.hubs[at].ask("task", "add", "done before", "-q"))[0]
	waitForThat(t, "done", func() bool { return strings.Contains(h.hubs[at].ask("task", "show", id), "done") })
	(&farm{stage: h.hubs[at]}).settle("attic")
	pids := host.processes()
	require.Contains(t, h.hubs[at].ask("hosts", "--hubs"), "at work")
	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	next := h.atWork(at, others(at)...)
	waitForThat(t, "agent on the host, for the next hub", func() bool { return runs(next) })
	waitForThat(t, "found", func() bool { return h.hubs[next].agent("far").State == control.StateRunning })
	require.Equal(t, run, h.hubs[next].agent("far").Run)
	require.Equal(t, pids, host.processes())
	id = strings.Fields(h.hubs[next].ask("task", "add", "done afterwards", "-q"))[0]
	waitForThat(t, "done", func() bool { return strings.Contains(h.hubs[next].ask("task", "show", id), "done") })
	require.Contains(t, h.hubs[next].ask("hosts", "--hubs"), "missing")
	host.signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, host.await(), host.cried.all())
	require.Empty(t, host.processes())
	h.hubs[next].stop()
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
	file, err := os.ReadFile(h.hubs[at].path("orchestrator.hcl"))
	require.NoError(t, err)
	host := newStage(t, string(file), "token", h.hubs[at].ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret", "talker", talker)
	host.join(strings.Join(h.urls, ","))
	waitForThat(t, "agent on the host", func() bool { return h.hubs[at].agent("talker").State == control.StateRunning })
	run := h.hubs[at].agent("talker").Run
	id := strings.Fields(h.hubs[at].ask("task", "add", "talk", "--assign", "talker", "-q"))[0]
	replies := func() []string {
		text, _ := os.ReadFile(host.path("replies"))
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	waitForThat(t, "replies", func() bool { return len(replies()) >= 20 })
	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	next := h.atWork(at, others(at)...)
	waitForThat(t, "done", func() bool { return strings.Contains(h.hubs[next].ask("task", "show", id), "done") })
	require.Equal(t, run, h.hubs[next].agent("talker").Run)
	for n, reply := range replies() {
		require.Contains(t, reply, fmt.Sprintf(`"correlationId":"q%d"`, n+1))
		require.Contains(t, reply, `"type":"response:success"`)
	}
	require.Len(t, replies(), 60)
	reports := h.hubs[next].ask("events", "--type", "task.progress", "--json")
	for n := range 60 {
		require.Equal(t, 1, strings.Count(reports, fmt.Sprintf(`"message":"step %d"`, n+1)), reports)
	}
	require.NotContains(t, h.hubs[next].ask("task", "show", id), "attempt 2")
}

// A hub that hung and wakes says nothing more to the agents on hosts, which belong to the next hub.
func TestHostOfHungHub(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, `
agent "far" {
  command = ["`+fixture(t, "worker")+`"]
  placement {}
}
`)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	file, err := os.ReadFile(h.hubs[at].path("orchestrator.hcl"))
	require.NoError(t, err)
	host := newStage(t, string(file), "token", h.hubs[at].ask("token", "issue", "--actor", "HO:attic"), "hubs.key", "s3cret")
	host.join(strings.Join(h.urls, ","))
	waitForThat(t, "far", func() bool { return h.hubs[at].agent("far").State == control.StateRunning })
	(&farm{stage: h.hubs[at]}).settle("attic")
	run, pids := h.hubs[at].agent("far").Run, host.processes()
	h.hubs[at].signal(syscall.SIGSTOP)
	next := h.atWork(at, others(at)...)
	h.hubs[at].signal(syscall.SIGCONT) // the host has not noticed anything yet
	waitForThat(t, "standing by", func() bool {
		stdout, _, _ := h.hubs[at].call("hosts", "--hubs", "--json")
		return strings.Contains(stdout, `"at_work"`) && !strings.Contains(stdout, fmt.Sprintf(`{"name":"%s","state":"at_work"`, h.peers[at]))
	})
	waitForThat(t, "found", func() bool { return h.hubs[next].agent("far").State == control.StateRunning })
	require.Equal(t, run, h.hubs[next].agent("far").Run)
	require.Equal(t, pids, host.processes())
	host.signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, host.await(), host.cried.all())
	h.hubs[next].stop()
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
	attic := newStage(t, f.file, "token", f.ask("token", "issue", "--actor", "HO:attic"))
	attic.join(f.url)
	f.waitForAgent("coder", "attic")
	id := strings.TrimSpace(f.ask("task", "add", "Improve the settings", "-q"))
	q := f.waitForQuestions(1)[0]
	require.Equal(t, id, q.Task)
	f.answerQuestion(q.ID, "allow")
	f.waitForState(id, wire.TaskDone)
	waitForThat(t, "what the confined agent has tried", func() bool { return len(f.lines("shut", control.StreamOut)) == 3 })
	require.Equal(t, []string{"open", "shut", "asked"}, f.lines("shut", control.StreamOut))
	f.stop()
	attic.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, attic.await())
}
