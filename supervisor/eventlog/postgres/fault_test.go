package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/pgserver"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
)

// An outcome is a result of Put.
type outcome struct {
	n   int64
	err error
}

// putting adds an entry in the background.
func putting(e *Engine, at int64, body string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		n, err := e.Put(at, entry(at+1, body))
		done <- outcome{n, err}
	}()
	return done
}

// The answer to an INSERT is lost after the row was stored. The hub finds that the row is its own, and
// another hub in the same situation that the row is not.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := newRelay(t, s.Address())
	e, admin := s.joinAt(r.url(), "team"), s.administer()
	r.mu.Lock()
	r.miss = []byte("the answer is lost")
	r.mu.Unlock()
	done := putting(e, 0, "the answer is lost")
	<-r.missed
	eventually(t, func(t *assert.CollectT) {
		require.EqualValues(t, 1, value[int](t, admin, "SELECT count(*) FROM orchestrator_entries"))
	})
	r.cut()
	require.Equal(t, outcome{n: 1}, <-done)
	require.EqualValues(t, 1, value[int](t, admin, "SELECT count(*) FROM orchestrator_entries"))

	r.mu.Lock()
	r.miss, r.missed = []byte("never stored"), make(chan struct{})
	r.mu.Unlock()
	_, err := s.join("team").Put(1, entry(2, "another hub"))
	require.NoError(t, err)
	done = putting(e, 1, "never stored")
	<-r.missed
	r.cut()
	require.ErrorIs(t, (<-done).err, eventlog.ErrBehind)
}

// The server is killed repeatedly while a hub appends. No confirmed entry is lost, and none exists twice.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.open(s.join("team"))
	told, stop, ended := make(chan int, 1<<20), make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := l.Append(context.Background(), l.Last(), series.Keyed("a", n, 1)); err != nil {
				ended <- err
				return
			}
			told <- n
		}
	}()
	for range 4 {
		for range 30 {
			select {
			case <-told:
			case err := <-ended:
				require.NoError(t, err)
			}
		}
		s.Kill()
		s.Start()
	}
	close(stop)
	require.NoError(t, <-ended)
	other := s.open(s.join("team"))
	require.NoError(t, other.Follow(t.Context(), nil))
	all := series.All(t, other, 0)
	require.Equal(t, series.All(t, l, 0), all)
	for i, r := range all {
		require.Equal(t, fmt.Sprintf("%d-0", i), r.Key)
	}
}

// While the server is away, questions are not answered, and an append waits. Close ends it.
func TestServerAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e, closing := s.join("team"), s.join("team")
	s.Stop()
	_, err := e.End(t.Context())
	require.ErrorIs(t, err, eventlog.ErrUnanswered)
	_, err = e.First(t.Context(), 1)
	require.ErrorIs(t, err, eventlog.ErrUnanswered)
	_, err = e.Ask(t.Context())
	require.ErrorIs(t, err, eventlog.ErrUnanswered)
	require.ErrorIs(t, e.Get(t.Context(), 0, nil), eventlog.ErrUnanswered)
	require.Equal(t, []string{s.Address()}, e.Missing())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.End(over)
	require.ErrorIs(t, err, context.Canceled)

	waiting, ended := putting(e, 0, "waits"), putting(closing, 0, "ended")
	eventually(t, func(t *assert.CollectT) { require.NotEmpty(t, closing.Missing()) })
	require.NoError(t, closing.Close())
	require.ErrorIs(t, (<-ended).err, fs.ErrClosed)
	s.Start()
	require.Equal(t, outcome{n: 1}, <-waiting)
	require.Empty(t, e.Missing())
}

// Close ends all calls, and those after it fail.
func TestClose(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := newRelay(t, s.Address())
	e := s.joinAt(r.url(), "team")
	_, err := e.Put(0, entry(1, "body"))
	require.NoError(t, err)
	_, err = e.Serve([]byte("h1"))
	require.NoError(t, err)
	r.requests.Lock() // the server hears no more
	defer r.requests.Unlock()
	done := putting(e, 1, "body")
	require.NoError(t, e.Close())
	require.ErrorIs(t, (<-done).err, fs.ErrClosed)
	require.NoError(t, e.Close())
	_, err = e.Put(1, entry(2, "body"))
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = e.End(t.Context())
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = e.First(t.Context(), 1)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = e.Ask(t.Context())
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = e.Serve(nil)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, e.Get(t.Context(), 0, nil), fs.ErrClosed)
}

// set changes a setting of the server, and waits until sessions have it.
func (s site) set(setting, to string) {
	admin := s.administer()
	change := "RESET " + setting
	if to != "" {
		change = fmt.Sprintf("SET %s = '%s'", setting, to)
	}
	for _, statement := range []string{"ALTER SYSTEM " + change, "SELECT pg_reload_conf()"} {
		_, err := admin.Exec(s.t.Context(), statement)
		require.NoError(s.t, err)
	}
	eventually(s.t, func(t *assert.CollectT) {
		is := value[string](t, admin, "SELECT current_setting($1)", setting)
		require.Equal(t, to == "", is == "" || is == "off", "%s = %s", setting, is)
	})
}

// An append waits while the server only reads, as a replica does.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.join("team")
	s.set("default_transaction_read_only", "on")
	done := putting(e, 0, "body")
	eventually(t, func(t *assert.CollectT) { require.NotEmpty(t, e.Missing()) })
	require.Empty(t, done)
	s.set("default_transaction_read_only", "")
	require.Equal(t, outcome{n: 1}, <-done)
}

// waits is the part of a query that finds the sessions that wait for a replica.
const waits = " FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%' || $1 || '%'"

// waitForReplica makes the server wait for a replica, and returns when it does. A session has the setting earlier:
// commits wait only from the moment when the server's checkpointer has read it too.
func (s site) waitForReplica(name string) {
	s.set("synchronous_standby_names", name)
	admin, prober := s.administer(), s.administer()
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, _ = prober.Exec(ctx, "SELECT pg_logical_emit_message(true, 'probe', '')")
		}
	}()
	eventually(s.t, func(t *assert.CollectT) { value[int](t, admin, "SELECT pid"+waits, "'probe'") })
	cancel()
	<-ended
	eventually(s.t, func(t *assert.CollectT) {
		require.Zero(t, value[int](t, admin, "SELECT count(*)"+waits, "'probe'"))
	})
}

// A server with a synchronous replica that is missing does not confirm an entry. If it is ordered to stop waiting, it
// claims to have added the entry. The engine does not believe that before the replica is back.
func TestReplicaMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e, other, admin := s.join("team"), s.join("team"), s.administer()
	s.waitForReplica("replica")
	done := putting(e, 0, "body")
	eventually(t, func(t *assert.CollectT) {
		_, err := admin.Exec(context.Background(), "SELECT pg_cancel_backend(pid)"+waits, "INSERT INTO orchestrator_entries")
		require.NoError(t, err)
		value[int](t, admin, "SELECT pid"+waits, "pg_logical_emit_message")
	})
	require.Empty(t, done, "the entry is there, and not on the replica")
	behind := putting(other, 0, "other")
	eventually(t, func(t *assert.CollectT) { require.NotEmpty(t, other.Missing()) })
	require.Empty(t, done)
	require.Empty(t, behind)
	s.set("synchronous_standby_names", "")
	require.Equal(t, outcome{n: 1}, <-done)
	require.ErrorIs(t, (<-behind).err, eventlog.ErrBehind)
}

// A session confirms no earlier than the disk has an entry, also if the server would. Stronger settings of the server
// stay.
func TestSynchronousCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for server, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		e := s.joinAt(s.URL()+"?statement_timeout=5000&synchronous_commit="+server, "team")
		var is, limit, keepalive string
		require.NoError(t, e.pool.QueryRow(t.Context(), `SELECT current_setting('synchronous_commit'), current_setting('statement_timeout'),
			current_setting('tcp_keepalives_idle')`).Scan(&is, &limit, &keepalive))
		require.Equal(t, []string{want, "0", "1"}, []string{is, limit, keepalive})
	}
}

// A server that could lose entries is refused, and so is one that refuses this hub.
func TestRefused(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"fsync": "its setting fsync is off", "full_page_writes": "its setting full_page_writes is off"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, setting+"=off")
			_, err := Open(t.Context(), Options{URL: s.URL(), Credentials: pgserver.Password, Log: "team"})
			require.ErrorIs(t, err, errUnsafe)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, s.Address())
		})
	}
	s := newSite(t)
	admin := s.administer()
	for text, want := range map[string]Options{
		"password authentication failed":    {URL: s.URL(), Credentials: "guessed"},
		`database "missing" does not exist`: {URL: strings.Replace(s.URL(), "/postgres", "/missing", 1), Credentials: pgserver.Password},
		"cannot parse":                      {URL: "postgres://127.0.0.1:port/x"},
	} {
		want.Log = "team"
		_, err := Open(t.Context(), want)
		require.ErrorContains(t, err, text)
	}
	for want, table := range map[string]string{
		"unlogged":    "CREATE UNLOGGED TABLE orchestrator_entries (log text, n bigint, PRIMARY KEY (log, n))",
		"primary key": "CREATE TABLE orchestrator_entries (log text, n bigint)",
		"trigger":     "CREATE TABLE orchestrator_entries (log text, n bigint, PRIMARY KEY (log, n))",
	} {
		_, err := admin.Exec(t.Context(), "DROP TABLE IF EXISTS orchestrator_entries, orchestrator_logs, orchestrator_objects; "+table+"; CREATE TABLE orchestrator_logs()")
		require.NoError(t, err)
		_, err = Open(t.Context(), Options{URL: s.URL(), Credentials: pgserver.Password, Log: "team"})
		require.ErrorIs(t, err, errUnsafe)
		require.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Stop()
	cancel()
	_, err := Open(ctx, Options{URL: s.URL(), Credentials: pgserver.Password, Log: "team"})
	require.ErrorIs(t, err, context.Canceled)
}

// A hub may have no right to make tables if they exist.
func TestLesserRole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join("team")
	admin := s.administer()
	_, err := admin.Exec(t.Context(), `CREATE ROLE lesser LOGIN PASSWORD '`+pgserver.Password+`';
		GRANT SELECT, INSERT ON orchestrator_entries, orchestrator_objects TO lesser; GRANT SELECT, INSERT ON orchestrator_logs TO lesser`)
	require.NoError(t, err)
	url := strings.Replace(s.URL(), "hub@", "lesser@", 1)
	_, err = Open(t.Context(), Options{URL: url, Credentials: pgserver.Password, Log: "team"})
	require.ErrorIs(t, err, errRole, "it could not say that it is at work")
	_, err = admin.Exec(t.Context(), "GRANT UPDATE ON orchestrator_logs TO lesser")
	require.NoError(t, err)
	e := s.joinAt(url, "team")
	n, err := e.Put(0, entry(1, "body"))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = e.Put(0, entry(1, "again"))
	require.ErrorIs(t, err, eventlog.ErrBehind)
	end, err := e.Serve([]byte("h1"))
	require.NoError(t, err)
	who, err := e.Ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, "h1", string(who))
	end()
}
