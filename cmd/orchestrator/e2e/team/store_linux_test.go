package team

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/serve/ownlog"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// lastsUntilTold has an agent that keeps an orchestrator from ending until the file "go" exists.
const lastsUntilTold = `
agent "only" {
  command = ["sh", "-c", "trap '' TERM; cat >/dev/null; until [ -e go ]; do sleep 0.05; done"]
  stop {
    grace = "5m"
  }
}
`

// An orchestrator stops in order and reports the reason if its state directory, record or lock is
// deleted. Before that, a second one can neither start nor kill its agents.
func TestStateDirectoryDeleted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "lock", "events.db", "events.db-wal"} {
		t.Run("state/"+name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, lastsUntilTold).Up("--json")
			s.WaitForEvents(1, events.AgentStarted, "only")
			require.NoError(t, os.RemoveAll(filepath.Join(s.State(), name)))
			_, stderr, code := s.Call("up", "-d") // at once
			s.Write("go", "")
			require.Equal(t, cli.ExitConflict, code, stderr)
			require.NotContains(t, stderr, "had left running")
			require.Equal(t, cli.ExitNo, s.Await())
			require.Regexp(t, "was (moved or )?deleted while the orchestrator ran", s.Stdout.All()+s.Stderr.All())
			require.Contains(t, s.Stdout.All(), events.AgentStopped, "its agents were stopped in order")
			require.Empty(t, s.Processes())
		})
	}
}

// A team stops in order when its folder is moved, and the record knows that after a start at the new place. No file
// comes back at the old place, although the agent prints.
func TestStateDirectoryMoved(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "only" {
  command = ["sh", "-c", "while echo line; do sleep 0.01; done"]
  output {
    max_size = "1KiB"
  }
}
`)
	s.Ask("up", "-d")
	id := strings.TrimSpace(s.Ask("task", "add", "one", "--assign", "only", "-q"))
	s.Ask("task", "start", id)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(s.State(), moved))
	stage.WaitFor(t, "end", func() bool {
		require.NoDirExists(t, s.State())
		text, _ := os.ReadFile(filepath.Join(moved, "orchestrator.log"))
		return strings.Contains(string(text), "Error: ")
	})
	require.NoError(t, os.Rename(moved, s.State()))
	_, stderr, code := s.Call("status")
	require.Equal(t, cli.ExitNotRunning, code)
	require.Contains(t, stderr, "the folder "+s.State()+" was moved or deleted while the orchestrator ran")
	s.Ask("up", "-d")
	text := s.Ask("events", "--json")
	require.Contains(t, text, "stopped in order after the record could no longer be written")
	require.NotContains(t, text, "lost when the orchestrator was killed")
	require.NotContains(t, text, "agent.crashed")
	s.Ask("down")
}

// If none runs, status reports when and why the last run in the background ended, until another run has ended.
func TestStatusTellsTheLastEnd(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat)
	s.Ask("up", "-d")
	require.NoError(t, os.Remove(filepath.Join(s.State(), "events.db")))
	var stderr string
	stage.WaitFor(t, "end", func() bool {
		var code int
		_, stderr, code = s.Call("status")
		return code == cli.ExitNotRunning && strings.Contains(stderr, "It stopped at ")
	})
	require.Regexp(t, `It stopped at \d{4}-.*: the record was lost: .*\. See .*orchestrator\.log`, stderr)
	require.NoError(t, os.RemoveAll(filepath.Join(s.State(), "events.db-tip")))
	require.NoError(t, os.RemoveAll(filepath.Join(s.State(), "events.db-wal")))
	s.Ask("up", "-d")
	s.Ask("down")
	_, stderr, code := s.Call("status")
	require.Equal(t, cli.ExitNotRunning, code)
	require.NotContains(t, stderr, "It stopped at ")
}

// The file of a record may be damaged outside of facts. Store check finds that, up names the next step, and a copy of
// the intact facts can be used.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	if !stage.HasRuntime(t, "python3") {
		return
	}
	s := stage.New(t, stage.OneCat)
	s.Ask("up", "-d")
	s.Ask("task", "add", "kept", "--assign", "only")
	s.Ask("down")
	damage := exec.Command("python3", "-c", `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
page = c.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'mail'").fetchone()[0]
size = c.execute("PRAGMA page_size").fetchone()[0]
c.close()
with open(sys.argv[1], "r+b") as f:
    f.seek((page - 1) * size)
    f.write(b"U" * 64)
`, filepath.Join(s.State(), "events.db"))
	out, err := damage.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said, stderr, code := s.Call("store", "check")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Regexp(t, `^\d+ facts in .* are in order\. Then: the file is damaged: `, said)
	_, stderr, code = s.Call("up", "--exit-when-idle")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "orchestrator store salvage NEW.db, orchestrator restore NEW.db")
	s.Ask("store", "salvage", s.Path("new.db"))
	s.Ask("restore", s.Path("new.db"))
	s.Ask("store", "check")
	require.Contains(t, s.Ask("task", "ls"), "kept")
}

// A damaged fact that the kept state includes does not keep the team from starting. Its readers get an error, and it
// can be left out of a copy.
func TestDamagedFactBehindTheState(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	s.Ask("task", "add", "kept")
	s.Ask("agent", "restart", "only")
	s.Stop()
	db, err := sql.Open("sqlite", filepath.Join(s.State(), "events.db"))
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE events SET payload = replace(payload, 'is being', 'as being') WHERE seq = (SELECT min(seq) FROM events WHERE kind = 'agent.starting')`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	checked, _, code := s.Call("store", "check", "--json")
	require.Equal(t, cli.ExitNo, code)
	var check struct{ Damage struct{ Seq int64 } }
	require.NoError(t, json.Unmarshal([]byte(checked), &check))
	seq := check.Damage.Seq
	require.Positive(t, seq)

	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	stage.WaitFor(t, "damage in the status", func() bool { return s.Status().Damage != nil })
	require.Equal(t, seq, s.Status().Damage.Seq)
	require.Contains(t, s.Ask("status"), fmt.Sprintf("Damaged: fact %d of the record cannot be read", seq))
	require.Contains(t, s.Stderr.All(), "the record is damaged")
	said, stderr, code := s.Call("events", "--json")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.NotEmpty(t, said)
	require.Contains(t, said+stderr, fmt.Sprintf("fact %d of the record is damaged", seq))
	require.Contains(t, said+stderr, "orchestrator store check")
	require.Contains(t, s.Ask("why", "only"), "is running since", "the events behind the damage are known")
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Await())

	copied := s.Path("without.db")
	require.Contains(t, s.Ask("store", "salvage", copied, "--without", fmt.Sprint(seq)), " facts copied to ")
	s.Ask("restore", copied)
	s.Ask("store", "check")
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	require.Contains(t, s.Ask("events"), fmt.Sprintf("event %d was damaged; store salvage has left it out", seq))
	require.Contains(t, s.Ask("task", "ls"), "kept")
	require.Nil(t, s.Status().Damage)
	s.Stop()
}

// A backup of a running team is a usable record.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	s.Ask("task", "add", "kept", "--assign", "only")
	copied := s.Path("copy.db")
	require.Regexp(t, `^\d+ facts in .*copy\.db\n$`, s.Ask("backup", copied))
	_, stderr, code := s.Call("backup", copied)
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Regexp(t, `^\d+ facts in .*events\.db, all in order\n$`, s.Ask("store", "check"))
	_, stderr, code = s.Call("restore", copied)
	require.Equal(t, cli.ExitConflict, code, stderr)
	s.Ask("task", "add", "later", "--assign", "only")
	s.Signal(syscall.SIGKILL)
	s.Await()

	said, stderr, code := s.Call("restore", copied)
	require.Zero(t, code, stderr)
	require.Regexp(t, `^\d+ facts in .*events\.db, restored from .*copy\.db\.`, said)
	kept, err := filepath.Glob(filepath.Join(s.State(), "events.db.before-restore-*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Contains(t, stderr, filepath.Base(kept[0]))
	require.Regexp(t, `^\d+ facts in .*, all in order\n$`, s.Ask("store", "check", filepath.Join(kept[0], "events.db")))
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "only")
	list := s.Ask("task", "ls")
	require.Contains(t, list, "kept")
	require.NotContains(t, list, "later")
	s.Stop()
	require.FileExists(t, copied)
}

// The log of a background orchestrator is rotated while it runs, and later lines are in the new
// file.
func TestBackgroundLogIsTurned(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.OneCat)
	s.Ask("up", "-d")
	log := filepath.Join(s.State(), "orchestrator.log")
	require.NoError(t, os.Truncate(log, ownlog.Size+1))
	stage.WaitFor(t, "a new log", func() bool {
		_, err := os.Stat(log + ".1")
		return err == nil
	})
	s.Ask("task", "add", "after the turn", "--assign", "only")
	stage.WaitFor(t, "a line in the new log", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && len(text) > 0 && len(text) < ownlog.Size
	})
	s.Ask("down")
}

// Two signals at the same time count as one: programs such as timeout signal their child and
// then its process group.
func TestTwoSignalsAtOnce(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "tidy" {
  command = ["sh", "-c", "trap 'sleep 0.3; echo yes >tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done"]
}
`).Up()
	stage.WaitFor(t, "the agent", func() bool { return strings.Contains(s.Stdout.All(), "| ready") })
	s.Signal(syscall.SIGTERM)
	s.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitOK, s.Await())
	require.FileExists(t, s.Path("tidied"))
	require.NotContains(t, s.Stderr.All(), "@level")
	require.Regexp(t, `stopped 1 agent in .*nothing left running`, s.Stdout.All())
}

// A later second signal kills the agents. The summary is still printed.
func TestTwoSignalsApart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "deaf" {
  command = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]
}
`).Up()
	stage.WaitFor(t, "the agent", func() bool { return strings.Contains(s.Stdout.All(), "| ready") })
	s.Signal(syscall.SIGTERM)
	first := time.Now()
	stage.WaitFor(t, "the end of the echo", func() bool { return time.Since(first) > cli.SignalEcho+100*time.Millisecond })
	s.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitTerminated, s.Await())
	require.Regexp(t, `stopped 1 agent in .*nothing left running`, s.Stdout.All())
}

// The record of a newer program is refused and not changed.
func TestRecordOfANewerProgram(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write func(t *testing.T, path string)
		says  []string
	}{
		"schema": {
			func(t *testing.T, path string) {
				db, err := sql.Open("sqlite", path)
				require.NoError(t, err)
				_, err = db.Exec("PRAGMA user_version = 9")
				require.NoError(t, err)
				require.NoError(t, db.Close())
			},
			[]string{`written by a newer version: its schema is 9, and this program reads up to \d+\n`},
		},
		"kind": {
			func(t *testing.T, path string) {
				log, err := eventlog.Open(t.Context(), eventlog.Options{Path: path})
				require.NoError(t, err)
				batch := []wire.Record{{At: time.Now(), From: "orchestrator", Kind: "weather.changed"}}
				require.NoError(t, log.Append(t.Context(), log.Last(), batch))
				require.NoError(t, log.Close())
			},
			[]string{`record \d+ is of the kind "weather.changed", which this version does not know\n`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, stage.QuickStop+"agent \"a\" {\n  command = [\"sh\", \"-c\", \"echo $$ >>pids; echo >>a-ran; exec cat\"]\n}\n").Up()
			s.WaitForPIDs(1, "pids")
			s.Stop()
			path := filepath.Join(s.State(), "events.db")
			test.write(t, path)
			before := stage.Checkpoint(t, path)
			ran, err := os.ReadFile(s.Path("a-ran"))
			require.NoError(t, err)
			s.Start(exec.Command(s.Program, "up", "--state-dir", s.State(), "--timeout", "3m"))
			require.Equal(t, cli.ExitNo, s.Await())
			said := s.Stderr.All()
			require.Contains(t, said, "Error: cannot use the record "+path+": ")
			for _, words := range test.says {
				require.Regexp(t, words, said)
			}
			require.Contains(t, said, "This is version "+build.Version+". Nothing was started or changed.")
			require.Contains(t, said, "Use the version that wrote it, or a newer one     Or start a new record: --state-dir DIR")
			require.Equal(t, before, stage.Checkpoint(t, path), "it was changed")
			now, err := os.ReadFile(s.Path("a-ran"))
			require.NoError(t, err)
			require.Equal(t, ran, now, "an agent was started")
		})
	}
}
