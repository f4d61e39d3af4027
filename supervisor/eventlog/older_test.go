package eventlog

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// version1 is the schema of version 1, byte for byte.
const version1 = `BEGIN IMMEDIATE; CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  actor_from TEXT NOT NULL,
  actor_to TEXT,
  topic TEXT,
  kind TEXT NOT NULL,
  payload TEXT,
  reply_to INTEGER,
  idempotency_key TEXT,
  correlation TEXT,
  crc INTEGER NOT NULL
) STRICT;
CREATE INDEX mail ON events (actor_to, seq) WHERE topic IS NOT NULL AND actor_to IS NOT NULL;
CREATE UNIQUE INDEX once ON events (actor_from, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE snapshots (
  seq INTEGER NOT NULL,
  part INTEGER NOT NULL,
  state BLOB NOT NULL,
  crc INTEGER NOT NULL,
  PRIMARY KEY (seq, part)
) STRICT; PRAGMA application_id = 1869759820; PRAGMA user_version = 1; COMMIT`

// olderLog makes a log of version 1 and returns its file and its facts. The rows come from a
// newer log, because they have not changed.
func olderLog(t *testing.T, n int) (path string, kept []wire.Record) {
	newer, kept := mailLog(t, n)
	path = filepath.Join(t.TempDir(), "events.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	edit(t, path, "PRAGMA journal_mode = WAL; "+version1)
	edit(t, path, "ATTACH '"+newer+"' AS newer; INSERT INTO events SELECT * FROM newer.events")
	return path, kept
}

// requireVersion requires that a file has exactly the schema of a version.
func requireVersion(t *testing.T, path string, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	var got, indexes int
	require.NoError(t, db.QueryRow("PRAGMA user_version").Scan(&got))
	require.NoError(t, db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name IN ('letters', 'archive', 'archived', 'refs')").Scan(&indexes))
	require.Equal(t, version, got)
	require.Equal(t, []int{0, 1, 3, 4}[version-1], indexes)
	var check string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&check))
	require.Equal(t, "ok", check)
}

// TestOlderReadOnly checks that a file of version 1 can be read unchanged, with every method.
func TestOlderReadOnly(t *testing.T) {
	for _, library := range []library{ncruces, modernc} {
		path, kept := olderLog(t, 1300)
		l := mustOpen(t, Options{Path: path, ReadOnly: true, library: library})
		require.Equal(t, kept, all(t, l, 0))
		for _, s := range searches(kept) {
			require.Equal(t, sift(kept, s), found(t, l, s), "%+v", s)
		}
		seq, _, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Zero(t, seq)
		requireVersion(t, path, 1)
		require.Len(t, found(t, l, wire.Search{}), 433)
		writer := mustOpen(t, Options{Path: path, library: library})
		require.NoError(t, writer.Append(t.Context(), 1300, []wire.Record{letter(1301, "somebody new")}))
		require.Len(t, found(t, l, wire.Search{}), 434, "a reader goes on as it began")
	}
	path, _ := olderLog(t, 2)
	require.Empty(t, found(t, mustOpen(t, Options{Path: path, ReadOnly: true}), wire.Search{}), "without any mail")
}

// TestOlderUpgraded checks that opening for writing upgrades a file once without a loss.
func TestOlderUpgraded(t *testing.T) {
	for n, library := range []library{ncruces, modernc, ncruces} {
		path, kept := olderLog(t, 1300)
		if n == 2 {
			edit(t, path, lettersIndex+"; PRAGMA user_version = 2")
			requireVersion(t, path, 2)
			require.Empty(t, found(t, mustOpen(t, Options{Path: path, ReadOnly: true}), wire.Search{Archived: true}))
		}
		for range 2 {
			l := mustOpen(t, Options{Path: path, Durable: true, library: library})
			requireVersion(t, path, schemaVersion)
			last := l.Last()
			more := []wire.Record{fact(int(last) + 1), letter(int(last)+2, "agent-1")}
			require.NoError(t, l.Append(t.Context(), last, more))
			kept = append(kept, numbered(last, more)...)
			require.Equal(t, kept, all(t, l, 0))
			for _, s := range searches(kept) {
				require.Equal(t, sift(kept, s), found(t, l, s), "%+v", s)
			}
			require.NoError(t, l.Close())
		}
		c, err := library(path, true)
		require.NoError(t, err)
		explain(t, c, "EXPLAIN QUERY PLAN "+selectLetters, func(row statement) {
			require.Contains(t, string(row.text(3)), "USING INDEX letters")
		})
		require.NoError(t, c.close())
		require.ElementsMatch(t, statementsOf(t, closedLog(t, 0)), statementsOf(t, path), "as if it had been made new")
	}
}

// statementsOf returns the statements that a file was made with.
func statementsOf(t *testing.T, path string) (all []string) {
	c, err := ncruces(path, true)
	require.NoError(t, err)
	explain(t, c, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", func(row statement) { all = append(all, string(row.text(0))) })
	require.NoError(t, c.close())
	return all
}

// TestOlderRefused checks that a file that cannot be opened for writing stays unchanged.
func TestOlderRefused(t *testing.T) {
	t.Parallel()
	path, _ := olderLog(t, 30)
	edit(t, path, "UPDATE events SET kind = 'other' WHERE seq = 20")
	_, err := Open(t.Context(), Options{Path: path})
	requireBreak(t, 20, err)
	requireVersion(t, path, 1)

	path, _ = olderLog(t, 30)
	stranger, err := ncruces(path, false)
	require.NoError(t, err)
	require.NoError(t, stranger.exec("BEGIN IMMEDIATE"))
	_, err = Open(t.Context(), Options{Path: path})
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, errors.Join(stranger.exec("ROLLBACK"), stranger.close()))
	requireVersion(t, path, 1)
}

// TestOlderTwice checks that of two concurrent upgrades the second finds the work done.
func TestOlderTwice(t *testing.T) {
	path, kept := olderLog(t, 30)
	l := &SQLite{}
	require.NoError(t, l.connectWriter(Options{Path: path, library: ncruces}))
	defer func() { require.NoError(t, l.release()) }()
	l.begin = hooked{statement: l.begin, before: func() {
		require.Len(t, found(t, mustOpen(t, Options{Path: path}), wire.Search{}), len(kept)/3)
	}}
	require.NoError(t, l.upgrade())
	requireVersion(t, path, schemaVersion)
}

// TestOlderFaults checks that after any fault of an upgrade the file has one version or the
// other, and all its facts.
func TestOlderFaults(t *testing.T) {
	t.Parallel()
	whole, kept := olderLog(t, 300)
	content, err := os.ReadFile(whole)
	require.NoError(t, err)
	versions := map[int64]bool{}
	stride := int64(8 / rounds(8))
	for n := int64(1); ; n += stride {
		path := filepath.Join(t.TempDir(), "events.db")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		f := &faults{VFS: vfs.Find("os"), at: n}
		name := fmt.Sprint("older-", n)
		vfs.Register(name, f)
		if l, err := Open(t.Context(), Options{Path: path, Durable: true, VFS: name}); err == nil {
			l.Close() // may fail, without a loss
		}
		vfs.Unregister(name)
		reader := mustOpen(t, Options{Path: path, ReadOnly: true})
		version, err := ask(reader.reader, selectVersion)
		require.NoError(t, err)
		versions[version] = true
		require.Equal(t, kept, all(t, reader, 0), "operation %d", n)
		require.Equal(t, sift(kept, wire.Search{}), found(t, reader, wire.Search{}))
		require.NoError(t, reader.Close())
		l := mustOpen(t, Options{Path: path, Durable: true})
		requireVersion(t, path, schemaVersion)
		require.Equal(t, sift(kept, wire.Search{}), found(t, l, wire.Search{}))
		require.NoError(t, l.Close())
		if !f.fired() {
			break
		}
	}
	require.Len(t, versions, 2, "some failed before, some behind")
}
