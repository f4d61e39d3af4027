package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/pgserver"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// makesLong has an agent that completes each task with an artifact that is not in the record.
const makesLong = `
agent "only" {
  command = ["sh", "-c", <<-EOT
    while read -r line; do
      case "$line" in *notify:task-assigned*)
        task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        echo '{"type":"request:complete-task","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"long","content":"'"$(head -c 70000 /dev/zero | tr '\0' x)"'"}]}}'
      esac
    done
    EOT
  ]
}
`

// long returns the artifact of the first task.
func long(s *stage.Orchestrator) string {
	s.T.Helper()
	id, _, _ := strings.Cut(s.Ask("task", "ls", "-q"), "\n")
	return s.Ask("task", "response", id, "--artifact", "long")
}

// An artifact that one hub took is read at another one after the first is killed.
func TestArtifactOfLostHub(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.hubs[i].Write("orchestrator.hcl", strings.Replace(h.hubs[i].Read("orchestrator.hcl"), stage.OneCat[1:], makesLong[1:], 1))
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	h.hubs[at].Ask("task", "add", "long-one", "--wait")
	want := strings.Repeat("x", 70000)
	require.Equal(t, want, long(h.hubs[at]))
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	require.NoError(t, os.RemoveAll(filepath.Join(h.hubs[at].State(), "artifacts")))
	next := h.atWork(at, others(at)...)
	require.NoDirExists(t, filepath.Join(h.hubs[next].State(), "artifacts"))
	for range 2 {
		require.Equal(t, want, long(h.hubs[next]))
	}
	kept, err := filepath.Glob(filepath.Join(h.hubs[next].State(), "artifacts", "*", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

// filled makes a team on one machine that records a task, adds n facts to the record, and returns all facts.
func filled(s *stage.Orchestrator, n int) []wire.Record {
	s.T.Helper()
	shared := s.Read("orchestrator.hcl")
	s.Write("orchestrator.hcl", makesLong)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	s.Ask("task", "add", "from-before", "--wait")
	s.Stop()
	s.Write("orchestrator.hcl", shared)
	path := filepath.Join(s.State(), "events.db")
	log, err := eventlog.Open(s.T.Context(), eventlog.Options{Path: path, Durable: true})
	require.NoError(s.T, err)
	for n > 0 {
		batch := make([]wire.Record, min(n, 5000))
		for i := range batch {
			batch[i] = wire.Record{At: time.Now(), From: "GO", Kind: events.HubEpoch, Payload: []byte(`{"hub":"h","version":"v","epoch":1}`)}
		}
		require.NoError(s.T, log.Append(s.T.Context(), log.Last(), batch))
		n -= len(batch)
	}
	require.NoError(s.T, log.Close())
	return facts(s, "events.db")
}

// facts returns the facts in a file of the state directory.
func facts(s *stage.Orchestrator, name string) (all []wire.Record) {
	s.T.Helper()
	log, err := eventlog.Open(s.T.Context(), eventlog.Options{Path: filepath.Join(s.State(), name), ReadOnly: true})
	require.NoError(s.T, err)
	defer log.Close()
	for r, err := range log.Records(s.T.Context(), 0) {
		require.NoError(s.T, err)
		all = append(all, r)
	}
	return all
}

// requireBegins requires that a record in the state directory begins with facts.
func requireBegins(s *stage.Orchestrator, name string, want []wire.Record) {
	s.T.Helper()
	have := facts(s, name)
	require.GreaterOrEqual(s.T, len(have), len(want))
	for i := range want {
		if want[i].Seq != have[i].Seq || !want[i].At.Equal(have[i].At) || want[i].Kind != have[i].Kind || string(want[i].Payload) != string(have[i].Payload) {
			require.Equal(s.T, want[i], have[i])
		}
	}
}

// move moves the record and returns the answer.
func move(s *stage.Orchestrator, to, node string) (answer struct {
	Facts int64
	Chain string
	Kept  string
}) {
	s.T.Helper()
	require.NoError(s.T, json.Unmarshal([]byte(s.Ask("store", "move", "--to", to, "--node", node, "--json")), &answer))
	return answer
}

// sizeOf returns the size of the files in a folder.
func sizeOf(s *stage.Orchestrator, folder string) (size int64) {
	_ = filepath.WalkDir(s.Path(folder), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // files come and go
	})
	return size
}

// moving starts a move in the background.
func moving(s *stage.Orchestrator, to, node string) {
	s.Start(exec.Command(s.Program, "store", "move", "--to", to, "--node", node, "--state-dir", s.State()))
}

// The record of one machine is moved to three hubs. The move is killed in the middle: no hub uses a part of the record,
// and the next move continues. Then the record is moved back, and in again with the facts added since.
func TestMoveToHubs(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	one, name := h.hubs[0], h.peers[0]
	before := filled(one, 100_000)
	_, stderr, code := one.Call("up", "--node", name)
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to jetstream")
	moving(one, "jetstream", name)
	stage.WaitFor(t, "a kept record", func() bool {
		kept, _ := filepath.Glob(filepath.Join(one.State(), fmt.Sprintf("events.db.before-move-%d", len(before))))
		return len(kept) == 1
	})
	stage.WaitFor(t, "the move to answer", func() bool {
		_, stderr, _ := one.Call("status")
		return strings.Contains(stderr, "no hub is at work yet")
	})
	one.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitInterrupted, one.Await(), one.Stderr.All())
	require.Contains(t, one.Stderr.All(), "Continue: orchestrator store move --to jetstream")

	h.up(1)
	h.up(2)
	moving(one, "jetstream", name)
	stage.WaitFor(t, "a part of the record", func() bool { return sizeOf(h.hubs[1], "state/stream") > 1<<20 })
	for _, i := range []int{1, 2} {
		h.hubs[i].Signal(syscall.SIGSTOP) // no append without them
	}
	one.Signal(syscall.SIGKILL)
	<-one.Ended
	require.Equal(t, -1, one.Process.ProcessState.ExitCode(), "the move was not interrupted")
	for _, i := range []int{1, 2} {
		h.hubs[i].Signal(syscall.SIGCONT)
	}
	stage.WaitFor(t, "the hubs to see the part", func() bool {
		return strings.Contains(h.hubs[1].Stderr.All()+h.hubs[2].Stderr.All(), "is being moved into the shared log by "+name)
	})
	_, stderr, code = one.Call("up", "--node", name)
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "Finish the move on "+name)
	for _, i := range []int{1, 2} {
		require.NotContains(t, h.hubs[i].Stdout.All(), events.AgentStarted)
	}

	began := time.Now()
	moved := move(one, "jetstream", name)
	t.Logf("the second move took %v for %d facts", time.Since(began), moved.Facts)
	require.Equal(t, int64(len(before)), moved.Facts)
	at := h.atWork(0, 1, 2)
	require.Len(t, long(h.hubs[at]), 70000)
	h.hubs[at].Ask("task", "add", "shared")
	require.Equal(t, moved, move(one, "jetstream", name), "it is moved already")
	requireBegins(one, filepath.Base(moved.Kept), before)
	h.up(0)
	stage.WaitFor(t, "standing by", func() bool {
		_, stderr, _ := one.Call("status")
		return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
	})
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	next := h.atWork(at, others(at)...)
	require.Contains(t, h.hubs[next].Ask("task", "ls", "--json"), "shared")
	for i := range h.hubs {
		requireBegins(h.hubs[i], "events.db", before)
	}
	h.up(at)
	h.movesBack(next)
}

// movesBack moves the record of a team to a hub that stands by, adds facts there, and moves it in again.
func (h *threeHubs) movesBack(at int) {
	t := h.t
	i := others(at)[0]
	own, name := h.hubs[i], h.peers[i]
	stage.WaitFor(t, "standing by", func() bool {
		_, stderr, _ := own.Call("status")
		return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
	})
	own.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, own.Await(), own.Stderr.All())
	moved := move(own, "sqlite", name)
	stage.WaitFor(t, "the hub to stop its agents", func() bool {
		return strings.Contains(h.hubs[at].Stdout.All(), events.AgentStopped) && len(h.hubs[at].Processes()) == 0
	})
	stage.WaitFor(t, "the hub to wait", func() bool {
		return strings.Contains(h.hubs[at].Stderr.All(), "waiting until the record is here")
	})
	require.Contains(t, h.hubs[at].Stderr.All(), "was moved out of the shared log, to "+name)
	require.Equal(t, moved, move(own, "sqlite", name), "it is moved already")
	_, stderr, code := own.Call("up", "--node", name)
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, `Use the record here: store { kind = "sqlite" }`)
	shared := own.Read("orchestrator.hcl")
	own.Write("orchestrator.hcl", stage.OneCat)
	own.Up("--json")
	own.WaitForEvents(1, events.AgentStarted, "only")
	require.Contains(t, own.Ask("task", "ls", "--json"), "shared")
	require.Len(t, long(own), 70000)
	own.Ask("task", "add", "alone-again")
	own.Stop()
	own.Write("orchestrator.hcl", shared)
	again := move(own, "jetstream", name)
	require.Greater(t, again.Facts, moved.Facts)
	h.up(i)
	h.hubs[at].Stdout = &stage.Output{} // only new lines
	stage.WaitFor(t, "a hub at work", func() bool {
		for j := range h.hubs {
			if stdout, _, code := h.hubs[j].Call("task", "ls", "--json"); code == cli.ExitOK {
				require.Contains(t, stdout, "alone-again")
				return true
			}
		}
		return false
	})
}

// The record of one machine is moved to a server of PostgreSQL, but not into the log of another team. Then it is moved
// to another machine.
func TestMoveToPostgres(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t)
	file := func(log string) string {
		return fmt.Sprintf("secret \"database\" {\n  file = \"database.key\"\n}\nstore {\n  kind        = \"postgres\"\n  url         = %q\n  credentials = secret.database\n  log         = %q\n}\n%s",
			server.URL(), log, stage.OneCat)
	}
	one, two := stage.New(t, file("taken"), "database.key", pgserver.Password), stage.New(t, file("taken"), "database.key", pgserver.Password)
	before := filled(one, 100)
	two.Up("--json", "--node", "h2")
	two.WaitForEvents(1, events.AgentStarted, "only")
	_, stderr, code := one.Call("store", "move", "--to", "postgres", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "the shared log is not empty")
	require.Contains(t, stderr, `set another log in the files of all hubs: store { log = "NAME" … }`)
	_, stderr, code = one.Call("up", "--node", "h1")
	require.Equal(t, cli.ExitNo, code, stderr)
	two.Stop()
	for _, s := range []*stage.Orchestrator{one, two} {
		s.Write("orchestrator.hcl", file("ours"))
	}
	_, stderr, code = one.Call("up", "--node", "h1")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to postgres")
	moved := move(one, "postgres", "h1")
	require.Equal(t, int64(len(before)), moved.Facts)
	one.Up("--json", "--node", "h1")
	one.WaitForEvents(1, events.AgentStarted, "only")
	require.Contains(t, one.Ask("task", "ls", "--json"), "from-before")
	requireBegins(one, "events.db", before)
	_, stderr, code = one.Call("store", "move", "--to", "sqlite", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "an orchestrator already runs here")

	three := stage.New(t, file("ours"), "database.key", pgserver.Password)
	three.Ask("store", "move", "--to", "sqlite", "--node", "h3")
	stage.WaitFor(t, "the hub to stop its agents", func() bool {
		return strings.Contains(one.Stdout.All(), events.AgentStopped) && len(one.Processes()) == 0
	})
	stage.WaitFor(t, "the hub to wait", func() bool { return strings.Contains(one.Stderr.All(), "waiting until the record is here") })
	require.Contains(t, one.Stderr.All(), "was moved out of the shared log, to h3")
	one.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, one.Await(), one.Stderr.All())
	_, stderr, code = one.Call("store", "move", "--to", "postgres", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "Run it on h3")
	three.Write("orchestrator.hcl", stage.OneCat)
	three.Up("--json")
	three.WaitForEvents(1, events.AgentStarted, "only")
	require.Len(t, long(three), 70000)
}

// Records that cannot be moved are refused, and remain unchanged.
func TestMoveRefused(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat)
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--to", "jetstream"}, "has the kind sqlite", cli.ExitUsage},
		{[]string{"--to", "sqlite"}, "has the kind sqlite", cli.ExitUsage},
		{[]string{"--to", "etcd"}, "--to must be jetstream, postgres or sqlite", cli.ExitUsage},
		{nil, "--to must be jetstream, postgres or sqlite", cli.ExitUsage},
		{[]string{"--to", "sqlite", "--host", "https://h1:1"}, "can only be moved on its machine", cli.ExitUsage},
	} {
		_, stderr, code := s.Call(append([]string{"store", "move"}, c.args...)...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.says)
	}
	h := newThreeHubs(t)
	_, stderr, code := h.hubs[0].Call("store", "move", "--to", "jetstream", "--node", h.peers[0])
	require.Equal(t, cli.ExitNotFound, code, stderr)
	_, stderr, code = h.hubs[0].Call("store", "move", "--to", "jetstream")
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to jetstream --node "+h.peers[0])

	before := filled(h.hubs[0], 20_000)
	cmd := exec.Command("sh", "-c", `ulimit -f 1000; exec "$0" store move --to jetstream --node "$1" --state-dir "$2"`, h.hubs[0].Program, h.peers[0], h.hubs[0].State())
	cmd.Dir, cmd.Env = h.hubs[0].Dir, h.hubs[0].Environ()
	said, err := cmd.CombinedOutput()
	_, ended := errors.AsType[*exec.ExitError](err)
	require.True(t, ended, "%v", err)
	require.Contains(t, string(said), "the record was not moved")
	require.NoDirExists(t, filepath.Join(h.hubs[0].State(), "stream"))
	requireBegins(h.hubs[0], "events.db", before)
}
