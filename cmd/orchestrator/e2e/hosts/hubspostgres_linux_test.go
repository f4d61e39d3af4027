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
	"orchestrator/fixtures/pgserver"
	"orchestrator/wire/events"
)

// A pair is a team with two hubs and a record on one server of PostgreSQL.
type pair struct {
	t      *testing.T
	server *pgserver.Server
	hubs   []*stage.Orchestrator
}

// newPair starts a server and two hubs.
func newPair(t *testing.T) *pair {
	p := &pair{t: t, server: pgserver.New(t)}
	for i := range 2 {
		p.hubs = append(p.hubs, stage.New(t, fmt.Sprintf(`
secret "database" {
  file = "database.key"
}
store {
  kind        = "postgres"
  url         = %q
  credentials = secret.database
}
agent "only" {
  command = ["cat"]
}
`, p.server.URL()), "database.key", pgserver.Password))
		p.up(i)
	}
	return p
}

func (p *pair) name(i int) string { return fmt.Sprintf("h%d", i+1) }

func (p *pair) up(i int) { p.hubs[i].Up("--json", "--node", p.name(i)) }

// works reports whether a hub is at work and has started its agents.
func (p *pair) works(i int) bool {
	return strings.Contains(p.hubs[i].Stdout.All(), `"`+events.AgentStarted+`"`)
}

// atWork waits until one of the hubs is at work, and returns it.
func (p *pair) atWork() int {
	p.t.Helper()
	stage.WaitFor(p.t, "a hub at work", func() bool { return p.works(0) || p.works(1) })
	if p.works(0) {
		return 0
	}
	return 1
}

// standsBy waits until a hub reports that the other one is at work.
func (p *pair) standsBy(i int) {
	p.t.Helper()
	stage.WaitFor(p.t, "standing by", func() bool {
		_, stderr, code := p.hubs[i].Call("task", "ls")
		return code == cli.ExitConflict && strings.Contains(stderr, "stands by: the hub is "+p.name(1-i))
	})
}

// The hub at work is killed, twice. Each time the other one continues the same tasks, and the killed one stands by when
// it comes back.
func TestPostgresHubKilled(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	at, want := p.atWork(), []string{}
	for round := range 2 {
		hub := p.hubs[at]
		for i := range 5 {
			name := fmt.Sprintf("task-%d-%d", round, i)
			hub.Ask("task", "add", name)
			want = append(want, name)
		}
		p.standsBy(1 - at)
		began := time.Now()
		hub.Signal(syscall.SIGKILL)
		<-hub.Ended
		killed := at
		at = 1 - killed
		stage.WaitFor(t, "the other hub at work", func() bool { return p.works(at) })
		t.Logf("the other hub had started its agents after %v", time.Since(began))
		list := p.hubs[at].Ask("task", "ls", "--json")
		for _, name := range want {
			require.Contains(t, list, name)
		}
		p.up(killed)
		p.standsBy(killed)
	}
	spare := p.hubs[1-at]
	spare.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.Await(), spare.Stderr.All())
	p.hubs[at].Stop()
}

// A hub that hung is deposed when it wakes: it stops its agents and stands by.
func TestPostgresHubHangs(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	at := p.atWork()
	p.hubs[at].Ask("task", "add", "kept")
	p.standsBy(1 - at)
	began := time.Now()
	p.hubs[at].Signal(syscall.SIGSTOP)
	stage.WaitFor(t, "the other hub at work", func() bool { return p.works(1 - at) })
	t.Logf("the other hub had started its agents after %v", time.Since(began))
	p.hubs[1-at].Ask("task", "add", "more")
	p.hubs[at].Signal(syscall.SIGCONT)
	p.standsBy(at)
	require.Contains(t, p.hubs[at].Stdout.All(), events.AgentStopped)
	require.Empty(t, p.hubs[at].Processes(), "its agents have ended")
	list := p.hubs[1-at].Ask("task", "ls", "--json")
	require.Contains(t, list, "kept")
	require.Contains(t, list, "more")
}

// A restart of the server changes no hub: requests wait for it, or are refused if it takes longer than tooSilent, and
// the agents continue.
func TestPostgresRestarted(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	at := p.atWork()
	p.hubs[at].Ask("task", "add", "before")
	p.standsBy(1 - at)
	p.server.Kill()
	p.server.Start()
	stage.WaitFor(t, "a task that is recorded", func() bool {
		_, refused, code := p.hubs[at].Call("task", "add", "after")
		require.True(t, code == cli.ExitOK || strings.Contains(refused, "nothing can be recorded"), refused)
		return code == cli.ExitOK
	})
	list := p.hubs[at].Ask("task", "ls", "--json")
	require.Contains(t, list, "before")
	require.Equal(t, 1, strings.Count(list, `"after"`), list)
	require.False(t, p.works(1-at))
	p.standsBy(1 - at)

	p.server.Stop()
	p.hubs[at].Signal(syscall.SIGINT)
	p.hubs[at].Await()
	require.Contains(t, p.hubs[at].Stderr.All(), "the server of the record does not answer")
	require.Empty(t, p.hubs[at].Processes())
}

// A hub that cannot use the server reports the reason.
func TestPostgresRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.atWork()
	guest := stage.New(t, fmt.Sprintf("store {\n  kind = \"postgres\"\n  url  = %q\n}\n", p.server.URL()))
	_, stderr, code := guest.Call("up", "--node", "h3")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "cannot use the shared record: the shared log at "+p.server.Address())
	require.Contains(t, stderr, "password authentication failed")
	unsafe := stage.New(t, fmt.Sprintf("secret \"database\" {\n  file = \"database.key\"\n}\nstore {\n  kind = \"postgres\"\n  url  = %q\n  credentials = secret.database\n}\n",
		pgserver.New(t, "fsync=off").URL()), "database.key", pgserver.Password)
	_, stderr, code = unsafe.Call("up")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "its setting fsync is off")
}
