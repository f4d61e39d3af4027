package hosts

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/natsserver"
	"orchestrator/wire/events"
)

// newNATSPair starts three servers of NATS and two hubs.
func newNATSPair(t *testing.T) (*pair, *natsserver.Servers) {
	servers := natsserver.New(t, 3, nil)
	p := &pair{t: t}
	for i := range 2 {
		p.hubs = append(p.hubs, natsStage(t, servers))
		p.up(i)
	}
	return p, servers
}

// natsStage prepares a hub.
func natsStage(t *testing.T, servers *natsserver.Servers) *stage.Orchestrator {
	return stage.New(t, fmt.Sprintf(`
secret "nats" {
  file = "nats.key"
}
store {
  kind        = "jetstream"
  url         = "nats://%s@%s"
  monitor     = ["%s"]
  credentials = secret.nats
}
agent "only" {
  command = ["cat"]
}
`, natsserver.User, strings.ReplaceAll(strings.Join(servers.URLs(), ","), "nats://", ""), strings.Join(servers.Monitors(), `", "`)),
		"nats.key", natsserver.Password+"\n")
}

// The record is on servers of NATS. The hub at work is killed, and the other one continues the same tasks. A server is
// lost, and the hub continues.
func TestNATSHubKilled(t *testing.T) {
	t.Parallel()
	p, servers := newNATSPair(t)
	at := p.atWork()
	p.hubs[at].Ask("task", "add", "first")
	p.standsBy(1 - at)
	began := time.Now()
	p.hubs[at].Signal(syscall.SIGKILL)
	<-p.hubs[at].Ended
	stage.WaitFor(t, "the other hub at work", func() bool { return p.works(1 - at) })
	t.Logf("the other hub had started its agents after %v", time.Since(began))
	require.Contains(t, p.hubs[1-at].Ask("task", "ls", "--json"), "first")
	p.up(at)
	p.standsBy(at)

	servers.Stop(2)
	p.ask(t, "task", "add", "second")
	require.Contains(t, p.ask(t, "task", "ls", "--json"), "second")
	servers.Start(2)
	spare := p.hubs[at]
	spare.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.Await(), spare.Stderr.All())
}

// ask asks the hub at work, which may change while a server is lost.
func (p *pair) ask(t *testing.T, args ...string) string {
	said := ""
	stage.WaitFor(t, "an answer", func() bool {
		for _, hub := range p.hubs {
			if stdout, _, code := hub.Call(args...); code == cli.ExitOK {
				said = stdout
				return true
			}
		}
		return false
	})
	return said
}

// A server that does not sync is refused. One that has lost its settings stops the record, and the agents continue.
func TestNATSRefused(t *testing.T) {
	t.Parallel()
	servers := natsserver.New(t, 1, nil)
	hub := natsStage(t, servers)
	hub.Up("--json", "--node", "h1")
	stage.WaitFor(t, "the hub at work", func() bool { return strings.Contains(hub.Stdout.All(), `"`+events.AgentStarted+`"`) })
	servers.Stop(0)
	servers.Options[0].SyncAlways = false
	servers.Start(0)
	stage.WaitFor(t, "the refusal", func() bool { return strings.Contains(hub.Stderr.All(), "it confirms messages before they are on disk") })
	guest := natsStage(t, servers)
	_, stderr, code := guest.Call("up", "--node", "h2")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "n1: it confirms messages before they are on disk")
	require.Contains(t, stderr, "sync_interval: always")
	require.NotEmpty(t, hub.Processes())
	hub.Signal(syscall.SIGINT)
	hub.Await()
	require.Contains(t, hub.Stderr.All(), "the server of the record does not answer")
	require.Empty(t, hub.Processes())
}
