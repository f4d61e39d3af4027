package eventlog

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestSchema checks that the file has the documented schema. Programs may rely on the names in
// it.
func TestSchema(t *testing.T) {
	path := closedLog(t, 1)
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid`)
	require.NoError(t, err)
	var found []string
	for rows.Next() {
		var sql string
		require.NoError(t, rows.Scan(&sql))
		found = append(found, sql)
	}
	require.NoError(t, rows.Close())
	require.Equal(t, schema, strings.Join(found, ";\n")+";")

	var names string
	require.NoError(t, db.QueryRow(`SELECT group_concat(name, ', ') FROM pragma_table_info('events')`).Scan(&names))
	require.Equal(t, "seq, at, actor_from, actor_to, topic, kind, payload, reply_to, idempotency_key, correlation, crc", names)
	require.Equal(t, names, columns)
	var text string
	require.NoError(t, db.QueryRow(`SELECT seq || at || actor_from || kind || payload FROM events WHERE actor_to IS NULL AND topic IS NULL AND reply_to IS NULL AND idempotency_key IS NULL`).Scan(&text))
	require.Equal(t, `12026-11-02T12:00:00.251Zagent-1task.created{"task":1}`, text)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "nobody else reads what agents say")
	require.FileExists(t, path+"-wal", "it stays")
}

// TestVersion checks the version of SQLite: older ones can damage a file when two connections
// checkpoint.
func TestVersion(t *testing.T) {
	for name, library := range map[string]library{"ncruces": ncruces, "modernc": modernc} {
		c, err := library(closedLog(t, 0), true)
		require.NoError(t, err)
		version, err := askText(c, "SELECT sqlite_version()")
		require.NoError(t, err)
		require.NoError(t, c.close())
		var major, minor, patch int
		_, err = fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
		require.NoError(t, err)
		require.GreaterOrEqual(t, major*1_000_000+minor*1000+patch, 3_051_003, "%s: %s", name, version)
	}
}

// TestDurableSettings checks that SQLite uses the settings that it was given.
func TestDurableSettings(t *testing.T) {
	for _, library := range []library{ncruces, modernc} {
		l := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "events.db"), Durable: true, library: library})
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1",
			"wal_autocheckpoint": "4000", "locking_mode": "normal",
		} {
			got, err := askText(l.writer, "PRAGMA "+pragma)
			require.NoError(t, err)
			require.Equal(t, want, got, pragma)
		}
	}
}

// TestStranger checks that another process with another SQLite can read the table during
// appends, and delays none of them for long.
func TestStranger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 10)))
	c := start(t, "read", path)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for c.out.Scan() {
			lines <- c.out.Text()
		}
	}()
	seen, slowest := 0, time.Duration(0)
	for seen < 30 {
		select {
		case line, more := <-lines:
			require.True(t, more, c.err)
			require.Equal(t, "whole", line)
			seen++
		default:
			last, began := l.Last(), time.Now()
			require.NoError(t, l.Append(t.Context(), last, facts(last, 10)))
			slowest = max(slowest, time.Since(began))
		}
	}
	require.NoError(t, c.in.Close())
	for range lines {
	}
	require.NoError(t, c.cmd.Wait(), c.err)
	require.Less(t, slowest, 5*time.Second)
	require.Len(t, all(t, l, 0), int(l.Last()))
}

// readAsStranger counts rows with plain SQL until its stdin ends.
func readAsStranger(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(1000)")
	if err != nil {
		return err
	}
	defer db.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		bufio.NewReader(os.Stdin).ReadByte()
	}()
	for {
		select {
		case <-over:
			return nil
		default:
		}
		var count, last int
		if err := db.QueryRow(`SELECT count(*), max(seq) FROM events`).Scan(&count, &last); err != nil {
			return err
		}
		if count != last || count%10 != 0 {
			return fmt.Errorf("%d rows, the last is %d", count, last)
		}
		fmt.Println("whole")
	}
}

// TestStrangerWrites checks that a write with plain SQL is noticed, and that a timeout on its lock
// has no effect.
func TestStrangerWrites(t *testing.T) {
	t.Parallel()
	path := closedLog(t, 3)
	l := mustOpen(t, Options{Path: path})
	stranger, err := ncruces(path, false)
	require.NoError(t, err)
	defer stranger.close()
	require.NoError(t, stranger.exec("BEGIN IMMEDIATE"))
	err = l.Append(t.Context(), 3, facts(3, 1))
	require.ErrorContains(t, err, "another process holds the log")
	require.False(t, errors.Is(err, ErrBroken))
	require.NoError(t, stranger.exec("ROLLBACK"))
	require.NoError(t, l.Append(t.Context(), 3, facts(3, 1)))

	require.NoError(t, stranger.exec("INSERT INTO events (seq, at, actor_from, kind, crc) VALUES (5, '2026-11-02T12:00:00.000Z', 'x', 'y', 0)"))
	err = l.Append(t.Context(), 4, facts(4, 1))
	require.ErrorIs(t, err, ErrBroken)
	requireBreak(t, 5, err)
}

// endingLog is the common interface of Memory and SQLite.
type endingLog interface {
	Log
	Last() int64
	Close() error
}

// FuzzRoundTrip checks that an accepted fact is returned unchanged.
func FuzzRoundTrip(f *testing.F) {
	f.Add(int64(0), "agent", "", "", "kind", []byte(`{"a":1}`), int64(0), "", "")
	f.Add(noon.UnixMilli(), "a", "b", "topic", "mail", []byte{}, int64(12), "key", "c")
	f.Add(int64(-1), "\xff", "\x00", "é", "", []byte("\xff"), int64(-1), "k", "\u2028")
	logs := []endingLog{NewMemory()}
	for _, library := range []library{ncruces, modernc} {
		l, err := Open(context.Background(), Options{Path: filepath.Join(f.TempDir(), "events.db"), library: library})
		require.NoError(f, err)
		logs = append(logs, l)
	}
	f.Cleanup(func() {
		for _, l := range logs {
			require.NoError(f, l.Close())
		}
	})
	f.Fuzz(func(t *testing.T, ms int64, from, to, topic, kind string, payload []byte, replyTo int64, key, correlation string) {
		r := wire.Record{At: time.UnixMilli(ms), From: from, To: to, Topic: topic, Kind: kind, Payload: payload, ReplyTo: replyTo, Key: key, Correlation: correlation}
		for _, l := range logs {
			last := l.Last()
			err := l.Append(t.Context(), last, []wire.Record{r})
			if flaw(&r) != "" {
				require.ErrorIs(t, err, ErrInvalid)
				continue
			}
			if errors.Is(err, ErrTaken) {
				require.NotEmpty(t, key)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []wire.Record{asKept(r, last+1)}, all(t, l, last))
		}
	})
}

// TestRoomOf checks that the connections leave most of a limited address space to the rest.
func TestRoomOf(t *testing.T) {
	require.EqualValues(t, memory, roomOf(math.MaxUint64))
	require.EqualValues(t, 256<<20, roomOf(4<<30))
	require.EqualValues(t, leastMemory, roomOf(1<<20), "then opening may fail, and says so")
}
