package hosts

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
)

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

// shut cuts all connections and refuses new ones, or accepts them again.
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

// settle waits until all messages from and to the agents on a host are settled. Hubs look at that between two beats.
func (f *farm) settle(host string) {
	for range 2 {
		before := f.hosts()[host].HeardAt
		stage.WaitFor(f.T, "a beat", func() bool { return f.hosts()[host].HeardAt != before })
	}
}

// Agents on hosts outlive the hub, if it returns soon. One that waits for an answer gets it from the next.
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

// A host joins the hub that comes after the first, and its agents continue.
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

// An agent on a host that sends requests when the hub is killed continues: with the same run and attempt, each request
// is recorded once and answered once.
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
