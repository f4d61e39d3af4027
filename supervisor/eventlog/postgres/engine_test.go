package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/pgserver"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// patient is how long a test waits for an event that must happen, and often how often it looks.
const (
	patient = 3 * time.Minute
	often   = 20 * time.Millisecond
)

// A site is a server with hubs.
type site struct {
	*pgserver.Server
	t *testing.T
}

func newSite(t *testing.T, settings ...string) site {
	return site{Server: pgserver.New(t, settings...), t: t}
}

// join returns the engine of one more hub.
func (s site) join(log string) *Engine { return s.joinAt(s.URL(), log) }

func (s site) joinAt(url, log string) *Engine {
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	e, err := Open(ctx, Options{URL: url, Credentials: pgserver.Password, Log: log, Node: "h1"})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, e.Close()) })
	return e
}

// open opens a log with a copy in a new file.
func (s site) open(e *Engine) *eventlog.Shared {
	l, err := eventlog.OpenShared(s.t.Context(), filepath.Join(s.t.TempDir(), "copy.db"), e)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, l.Close()) })
	return l
}

// administer returns a session of the administrator.
func (s site) administer() *pgx.Conn {
	c, err := pgx.Connect(s.t.Context(), strings.Replace(s.URL(), "@", ":"+pgserver.Password+"@", 1))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// value returns the first value of a query's answer.
func value[T any](t require.TestingT, c *pgx.Conn, query string, args ...any) (v T) {
	require.NoError(t, c.QueryRow(context.Background(), query, args...).Scan(&v))
	return v
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition func(t *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, condition, patient, often)
}

// entry returns an entry that begins with a fact.
func entry(first int64, body string) eventlog.Entry {
	return eventlog.Entry{First: first, Count: 1, Part: 1, Of: 1, Body: []byte(body)}
}

// One hub appends, the others follow. A hub that is behind cannot append.
func TestHubs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one := s.join("team")
	a, b := s.open(one), s.open(s.join("team"))
	require.Empty(t, one.Missing())
	for n := range 20 {
		require.NoError(t, a.Append(t.Context(), a.Last(), series.Keyed("a", n, 1+n%3)))
	}
	require.ErrorIs(t, b.Append(t.Context(), b.Last(), series.Keyed("b", 0, 2)), eventlog.ErrMoved)
	require.Equal(t, series.All(t, a, 0), series.All(t, b, 0), "it has followed")
	require.NoError(t, b.Append(t.Context(), b.Last(), series.Keyed("b", 0, 2)))
	require.ErrorIs(t, a.Append(t.Context(), a.Last(), nil), eventlog.ErrMoved)
	require.Equal(t, series.All(t, b, 0), series.All(t, a, 0))

	huge := []wire.Record{{At: time.UnixMilli(0).UTC(), From: "a", Kind: "k", Payload: fmt.Appendf(nil, `"%0*d"`, 5*maxEntry, 0)}}
	require.NoError(t, a.Append(t.Context(), a.Last(), huge), "in parts")
	third := s.join("team")
	late := s.open(third)
	require.NoError(t, late.Follow(t.Context(), nil))
	require.Equal(t, series.All(t, a, 0), series.All(t, late, 0))
	require.Len(t, one.Key(), 32)
	require.Equal(t, one.Key(), third.Key())

	other := s.join("another team")
	require.NotEqual(t, one.Key(), other.Key())
	end, err := other.End(t.Context())
	require.NoError(t, err)
	require.Zero(t, end)
}

// An engine returns the number of each entry, and refuses an entry that does not follow the last
// one.
func TestEntries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.join("team"), s.join("team")
	const n = 2*batchEntries + 7
	for at := range int64(n) {
		found, err := a.Put(at, entry(10*at+1, "body"))
		require.NoError(t, err)
		require.Equal(t, at+1, found)
	}
	_, err := b.Put(5, entry(1, "other"))
	require.ErrorIs(t, err, eventlog.ErrBehind)
	_, err = b.Put(n+1, entry(1, "other"))
	require.ErrorContains(t, err, fmt.Sprintf("ends at entry %d, and entry %d was read", n, n+1))
	seen := int64(3)
	require.NoError(t, b.Get(t.Context(), seen, func(at int64, e eventlog.Entry) error {
		seen++
		require.Equal(t, seen, at)
		require.Equal(t, 10*at-9, e.First)
		return nil
	}))
	require.EqualValues(t, n, seen)
	enough := errors.New("enough")
	require.ErrorIs(t, b.Get(t.Context(), 0, func(int64, eventlog.Entry) error { return enough }), enough)
	first, err := b.First(t.Context(), n)
	require.NoError(t, err)
	require.EqualValues(t, 10*n-9, first)
	_, err = b.First(t.Context(), n+1)
	require.ErrorContains(t, err, "no entry")

	admin := s.administer()
	for _, change := range []string{"UPDATE orchestrator_entries SET n = n + 1", "DELETE FROM orchestrator_entries", "TRUNCATE orchestrator_entries"} {
		_, err := admin.Exec(t.Context(), change)
		require.ErrorContains(t, err, "never changed or deleted")
	}
}

// Of hubs that append at once, one wins each number.
func TestRace(t *testing.T) {
	t.Parallel()
	const each = 20
	s := newSite(t)
	var logs []*eventlog.Shared
	for range 3 {
		logs = append(logs, s.open(s.join("team")))
	}
	var all sync.WaitGroup
	for i, l := range logs {
		all.Go(func() {
			for n := 0; n < each; {
				err := l.Append(t.Context(), l.Last(), series.Keyed(fmt.Sprint("hub", i), n, 2))
				if err == nil {
					n++
				} else if !errors.Is(err, eventlog.ErrMoved) {
					t.Errorf("hub %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, l := range logs {
		require.NoError(t, l.Follow(t.Context(), nil))
		require.Len(t, series.All(t, l, 0), 3*each*2)
		require.Equal(t, series.All(t, logs[0], 0), series.All(t, l, 0))
	}
}

// Hubs that make the tables at once find the same ones.
func TestTablesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	admin := s.administer()
	for round := range 5 {
		_, err := admin.Exec(t.Context(), `DROP TABLE IF EXISTS orchestrator_entries, orchestrator_logs, orchestrator_objects; DROP FUNCTION IF EXISTS orchestrator_keep`)
		require.NoError(t, err)
		keys := make([][]byte, 6)
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				e, err := Open(t.Context(), Options{URL: s.URL(), Credentials: pgserver.Password, Log: "team", Node: fmt.Sprint("h", i)})
				if assert.NoError(t, err, "round %d", round) {
					keys[i] = e.Key()
					assert.NoError(t, e.Close())
				}
			})
		}
		all.Wait()
		for _, key := range keys {
			require.Len(t, key, 32)
			require.Equal(t, keys[0], key)
		}
	}
}

// A shared log in PostgreSQL keeps the rules of all logs.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	logtest.RunShared(t, "postgres", func(log string, _ int) eventlog.Engine { return s.join(log) })
}

// Objects on a server keep the rules. They outlive a restart of the server, nobody can change them, and a database
// of an older version gets the table.
func TestObjects(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one, other := s.join("team"), s.join("team")
	logtest.RunObjects(t, one, other)
	stranger := s.join("others")
	require.NoError(t, one.PutObject(t.Context(), "ab", []byte("kept")))
	_, err := stranger.GetObject(t.Context(), "ab")
	require.ErrorIs(t, err, fs.ErrNotExist)
	s.Kill()
	s.Start()
	content, err := other.GetObject(t.Context(), "ab")
	require.NoError(t, err)
	require.Equal(t, "kept", string(content))
	admin := s.administer()
	_, err = admin.Exec(t.Context(), "UPDATE orchestrator_objects SET content = ''")
	require.ErrorContains(t, err, "never changed or deleted")
	_, err = admin.Exec(t.Context(), "DROP TABLE orchestrator_objects")
	require.NoError(t, err)
	require.NoError(t, s.join("team").PutObject(t.Context(), "ab", []byte("again")))
}
