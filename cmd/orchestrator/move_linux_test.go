package main

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
func (s *stage) long() string {
	s.t.Helper()
	id, _, _ := strings.Cut(s.ask("task", "ls", "-q"), "\n")
	return s.ask("task", "response", id, "--artifact", "long")
}

// An artifact that one hub took is read at another one after the first is killed.
func TestArtifactOfLostHub(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.hubs[i].write("orchestrator.hcl", strings.Replace(h.hubs[i].read("orchestrator.hcl"), onlyCat[1:], makesLong[1:], 1))
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	h.hubs[at].ask("task", "add", "long-one", "--wait")
	want := strings.Repeat("x", 70000)
	require.Equal(t, want, h.hubs[at].long())
	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	require.NoError(t, os.RemoveAll(filepath.Join(h.hubs[at].state(), "artifacts")))
	next := h.atWork(at, others(at)...)
	require.NoDirExists(t, filepath.Join(h.hubs[next].state(), "artifacts"))
	for range 2 {
		require.Equal(t, want, h.hubs[next].long())
	}
	kept, err := filepath.Glob(filepath.Join(h.hubs[next].state(), "artifacts", "*", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

// filled has a machine of its own make a record with a task, and adds n facts to it. It returns all of them.
func (s *stage) filled(n int) []wire.Record {
	s.t.Helper()
	shared := s.read("orchestrator.hcl")
	s.write("orchestrator.hcl", makesLong)
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "only")
	s.ask("task", "add", "from-before", "--wait")
	s.stop()
	s.write("orchestrator.hcl", shared)
	path := filepath.Join(s.state(), "events.db")
	log, err := eventlog.Open(s.t.Context(), eventlog.Options{Path: path, Durable: true})
	require.NoError(s.t, err)
	for n > 0 {
		batch := make([]wire.Record, min(n, 5000))
		for i := range batch {
			batch[i] = wire.Record{At: time.Now(), From: "GO", Kind: events.HubEpoch, Payload: []byte(`{"hub":"h","version":"v","epoch":1}`)}
		}
		require.NoError(s.t, log.Append(s.t.Context(), log.Last(), batch))
		n -= len(batch)
	}
	require.NoError(s.t, log.Close())
	return s.facts("events.db")
}

// facts returns the facts in a file of the state directory.
func (s *stage) facts(name string) (all []wire.Record) {
	s.t.Helper()
	log, err := eventlog.Open(s.t.Context(), eventlog.Options{Path: filepath.Join(s.state(), name), ReadOnly: true})
	require.NoError(s.t, err)
	defer log.Close()
	for r, err := range log.Records(s.t.Context(), 0) {
		require.NoError(s.t, err)
		all = append(all, r)
	}
	return all
}

// requireBegins requires that a record in the state directory begins with facts.
func (s *stage) requireBegins(name string, want []wire.Record) {
	s.t.Helper()
	have := s.facts(name)
	require.GreaterOrEqual(s.t, len(have), len(want))
	for i := range want {
		if want[i].Seq != have[i].Seq || !want[i].At.Equal(have[i].At) || want[i].Kind != have[i].Kind || string(want[i].Payload) != string(have[i].Payload) {
			require.Equal(s.t, want[i], have[i])
		}
	}
}

// move moves the record and returns the answer.
func (s *stage) move(to, node string) (answer struct {
	Facts int64
	Chain string
	Kept  string
}) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.ask("store", "move", "--to", to, "--node", node, "--json")), &answer))
	return answer
}

// sizeOf returns the size of the files in a folder.
func (s *stage) sizeOf(folder string) (size int64) {
	_ = filepath.WalkDir(s.path(folder), func(_ string, entry fs.DirEntry, err error) error {
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
func (s *stage) moving(to, node string) {
	s.start(exec.Command(s.program, "store", "move", "--to", to, "--node", node, "--state-dir", s.state()))
}

// The record of one machine is moved to three hubs. The move is killed in the middle: no hub uses a part of the
// record, and the next move goes on. Then it is moved back, and in again with what was added.
func TestMoveToHubs(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	one, name := h.hubs[0], h.peers[0]
	before := one.filled(100_000)
	_, stderr, code := one.call("up", "--node", name)
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to jetstream")
	one.moving("jetstream", name)
	waitForThat(t, "a kept record", func() bool {
		kept, _ := filepath.Glob(filepath.Join(one.state(), fmt.Sprintf("events.db.before-move-%d", len(before))))
		return len(kept) == 1
	})
	waitForThat(t, "the move to answer", func() bool {
		_, stderr, _ := one.call("status")
		return strings.Contains(stderr, "no hub is at work yet")
	})
	one.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitInterrupted, one.await(), one.cried.all())
	require.Contains(t, one.cried.all(), "Go on: orchestrator store move --to jetstream")

	h.up(1)
	h.up(2)
	one.moving("jetstream", name)
	waitForThat(t, "a part of the record", func() bool { return h.hubs[1].sizeOf("state/stream") > 1<<20 })
	for _, i := range []int{1, 2} {
		h.hubs[i].signal(syscall.SIGSTOP) // nothing is appended without them
	}
	one.signal(syscall.SIGKILL)
	<-one.ended
	require.Equal(t, -1, one.process.ProcessState.ExitCode(), "the move was not interrupted")
	for _, i := range []int{1, 2} {
		h.hubs[i].signal(syscall.SIGCONT)
	}
	waitForThat(t, "the hubs to see the part", func() bool {
		return strings.Contains(h.hubs[1].cried.all()+h.hubs[2].cried.all(), "is being moved into the shared log by "+name)
	})
	_, stderr, code = one.call("up", "--node", name)
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "Finish the move on "+name)
	for _, i := range []int{1, 2} {
		require.NotContains(t, h.hubs[i].said.all(), events.AgentStarted)
	}

	began := time.Now()
	moved := one.move("jetstream", name)
	t.Logf("the second move took %v for %d facts", time.Since(began), moved.Facts)
	require.Equal(t, int64(len(before)), moved.Facts)
	at := h.atWork(0, 1, 2)
	require.Len(t, h.hubs[at].long(), 70000)
	h.hubs[at].ask("task", "add", "shared")
	require.Equal(t, moved, one.move("jetstream", name), "it is moved already")
	one.requireBegins(filepath.Base(moved.Kept), before)
	h.up(0)
	waitForThat(t, "standing by", func() bool {
		_, stderr, _ := one.call("status")
		return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
	})
	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	next := h.atWork(at, others(at)...)
	require.Contains(t, h.hubs[next].ask("task", "ls", "--json"), "shared")
	for i := range h.hubs {
		h.hubs[i].requireBegins("events.db", before)
	}
	h.up(at)
	h.movesBack(next)
}

// movesBack moves the record of a team to a hub that stands by, adds something there, and moves it in again.
func (h *threeHubs) movesBack(at int) {
	t := h.t
	i := others(at)[0]
	own, name := h.hubs[i], h.peers[i]
	waitForThat(t, "standing by", func() bool {
		_, stderr, _ := own.call("status")
		return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
	})
	own.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, own.await(), own.cried.all())
	moved := own.move("sqlite", name)
	waitForThat(t, "the hub to stop its agents", func() bool {
		return strings.Contains(h.hubs[at].said.all(), events.AgentStopped) && len(h.hubs[at].processes()) == 0
	})
	waitForThat(t, "the hub to wait", func() bool {
		return strings.Contains(h.hubs[at].cried.all(), "waiting until the record is here")
	})
	require.Contains(t, h.hubs[at].cried.all(), "was moved out of the shared log, to "+name)
	require.Equal(t, moved, own.move("sqlite", name), "it is moved already")
	_, stderr, code := own.call("up", "--node", name)
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, `Use the record here: store { kind = "sqlite" }`)
	shared := own.read("orchestrator.hcl")
	own.write("orchestrator.hcl", onlyCat)
	own.up("--json")
	own.waitForEvents(1, events.AgentStarted, "only")
	require.Contains(t, own.ask("task", "ls", "--json"), "shared")
	require.Len(t, own.long(), 70000)
	own.ask("task", "add", "alone-again")
	own.stop()
	own.write("orchestrator.hcl", shared)
	again := own.move("jetstream", name)
	require.Greater(t, again.Facts, moved.Facts)
	h.up(i)
	h.hubs[at].said = &transcript{} // only what comes now
	waitForThat(t, "a hub at work", func() bool {
		for j := range h.hubs {
			if stdout, _, code := h.hubs[j].call("task", "ls", "--json"); code == cli.ExitOK {
				require.Contains(t, stdout, "alone-again")
				return true
			}
		}
		return false
	})
}

// The record of one machine is moved to a server of PostgreSQL, but not into the log of others. Then it is moved
// to another machine.
func TestMoveToPostgres(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t)
	file := func(log string) string {
		return fmt.Sprintf("secret \"database\" {\n  file = \"database.key\"\n}\nstore {\n  kind        = \"postgres\"\n  url         = %q\n  credentials = secret.database\n  log         = %q\n}\n%s",
			server.URL(), log, onlyCat)
	}
	one, two := newStage(t, file("taken"), "database.key", pgserver.Password), newStage(t, file("taken"), "database.key", pgserver.Password)
	before := one.filled(100)
	two.up("--json", "--node", "h2")
	two.waitForEvents(1, events.AgentStarted, "only")
	_, stderr, code := one.call("store", "move", "--to", "postgres", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "the shared log is not empty")
	require.Contains(t, stderr, `name another log in the file of all: store { log = "NAME" … }`)
	_, stderr, code = one.call("up", "--node", "h1")
	require.Equal(t, cli.ExitNo, code, stderr)
	two.stop()
	for _, s := range []*stage{one, two} {
		s.write("orchestrator.hcl", file("ours"))
	}
	_, stderr, code = one.call("up", "--node", "h1")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to postgres")
	moved := one.move("postgres", "h1")
	require.Equal(t, int64(len(before)), moved.Facts)
	one.up("--json", "--node", "h1")
	one.waitForEvents(1, events.AgentStarted, "only")
	require.Contains(t, one.ask("task", "ls", "--json"), "from-before")
	one.requireBegins("events.db", before)
	_, stderr, code = one.call("store", "move", "--to", "sqlite", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "an orchestrator already runs here")

	three := newStage(t, file("ours"), "database.key", pgserver.Password)
	three.ask("store", "move", "--to", "sqlite", "--node", "h3")
	waitForThat(t, "the hub to stop its agents", func() bool {
		return strings.Contains(one.said.all(), events.AgentStopped) && len(one.processes()) == 0
	})
	waitForThat(t, "the hub to wait", func() bool { return strings.Contains(one.cried.all(), "waiting until the record is here") })
	require.Contains(t, one.cried.all(), "was moved out of the shared log, to h3")
	one.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, one.await(), one.cried.all())
	_, stderr, code = one.call("store", "move", "--to", "postgres", "--node", "h1")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "Run it on h3")
	three.write("orchestrator.hcl", onlyCat)
	three.up("--json")
	three.waitForEvents(1, events.AgentStarted, "only")
	require.Len(t, three.long(), 70000)
}

// What cannot be moved is refused, and nothing is changed.
func TestMoveRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, onlyCat)
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--to", "jetstream"}, "is of the kind sqlite", cli.ExitUsage},
		{[]string{"--to", "sqlite"}, "is of the kind sqlite", cli.ExitUsage},
		{[]string{"--to", "etcd"}, "--to is jetstream, postgres or sqlite", cli.ExitUsage},
		{nil, "--to is jetstream, postgres or sqlite", cli.ExitUsage},
		{[]string{"--to", "sqlite", "--host", "https://h1:1"}, "moved on the machine that it is on", cli.ExitUsage},
	} {
		_, stderr, code := s.call(append([]string{"store", "move"}, c.args...)...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.says)
	}
	h := newThreeHubs(t)
	_, stderr, code := h.hubs[0].call("store", "move", "--to", "jetstream", "--node", h.peers[0])
	require.Equal(t, cli.ExitNotFound, code, stderr)
	_, stderr, code = h.hubs[0].call("store", "move", "--to", "jetstream")
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Contains(t, stderr, "orchestrator store move --to jetstream --node "+h.peers[0])

	before := h.hubs[0].filled(20_000)
	cmd := exec.Command("sh", "-c", `ulimit -f 1000; exec "$0" store move --to jetstream --node "$1" --state-dir "$2"`, h.hubs[0].program, h.peers[0], h.hubs[0].state())
	cmd.Dir, cmd.Env = h.hubs[0].dir, h.hubs[0].environ()
	said, err := cmd.CombinedOutput()
	_, ended := errors.AsType[*exec.ExitError](err)
	require.True(t, ended, "%v", err)
	require.Contains(t, string(said), "the record was not moved")
	require.NoDirExists(t, filepath.Join(h.hubs[0].state(), "stream"))
	h.hubs[0].requireBegins("events.db", before)
}

func (s *stage) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s.t, err)
	return string(text)
}
