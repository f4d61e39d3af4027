package eventlog_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
)

// requireBroken requires that a log was broken by an error and accepts no more, and that its facts
// can still be read.
func requireBroken(t *testing.T, h *hub, last int64, err error) {
	t.Helper()
	require.ErrorIs(t, err, eventlog.ErrBroken)
	for _, promise := range []error{eventlog.ErrBusy, eventlog.ErrMoved, fs.ErrClosed, context.Canceled} {
		require.NotErrorIs(t, err, promise, "it promises that the batch is not in the log")
	}
	require.Equal(t, err, h.Append(t.Context(), last, h.batch(1)))
	require.Equal(t, err, h.Append(t.Context(), last, nil))
	require.Equal(t, err, h.Follow(t.Context(), nil))
	require.Equal(t, last, h.Last())
	require.Len(t, series.All(t, h, 0), int(last))
}

// TestSharedPutFails checks that a log is broken when a Put fails, before or after the entry was
// stored. When it is opened again, it has the batch once or not at all.
func TestSharedPutFails(t *testing.T) {
	t.Parallel()
	causes := []error{io.ErrUnexpectedEOF, fs.ErrClosed, context.Canceled, eventlog.ErrBusy}
	for part := 1; part <= parts; part++ {
		for _, stored := range []bool{false, true} {
			m, cause := newTeam(t, 200), causes[part%len(causes)]
			a := m.hub(t, "a")
			want := a.append(t, 3)
			fail := func(_ int64, e eventlog.Entry) error {
				if e.Part == part {
					return cause
				}
				return nil
			}
			if a.engine.Putting = fail; stored {
				a.engine.Putting, a.engine.Stored = nil, fail
			}
			batch := a.batch(dozen)
			err := a.Append(t.Context(), 3, batch)
			require.ErrorContains(t, err, cause.Error())
			requireBroken(t, a, 3, err)
			require.NoError(t, a.Close())
			a = m.hub(t, "a")
			if stored && part == parts {
				want = append(want, series.Numbered(3, batch)...)
			}
			requireCopies(t, want, a, m.hub(t, "b"))
			requireCopies(t, append(want, a.append(t, dozen)...), a, m.hub(t, "c"))
		}
	}
}

// TestSharedClosesWhileItWaits checks that Close ends an append that waits for the engine. Whether
// its batch is in the log is not known then.
func TestSharedClosesWhileItWaits(t *testing.T) {
	m := newTeam(t, 200)
	a := m.hub(t, "a")
	waiting, done := make(chan struct{}), make(chan error)
	a.engine.Putting = func(int64, eventlog.Entry) error {
		close(waiting)
		<-a.engine.Closed()
		return nil
	}
	go func() { done <- a.Append(t.Context(), 0, series.Facts(0, 1)) }()
	<-waiting
	closed := make(chan error)
	go func() { closed <- a.Close() }()
	err := <-done
	require.ErrorIs(t, err, eventlog.ErrBroken)
	require.NotErrorIs(t, err, fs.ErrClosed)
	require.NoError(t, <-closed)
	require.ErrorIs(t, a.Append(t.Context(), 0, nil), fs.ErrClosed)
	require.ErrorIs(t, a.Follow(t.Context(), nil), fs.ErrClosed)
}

// TestSharedClosesAfterTheStore checks that an append succeeds, and is in the copy, if its batch
// was stored when Close began.
func TestSharedClosesAfterTheStore(t *testing.T) {
	m := newTeam(t, 1<<20)
	a := m.hub(t, "a")
	stored, done := make(chan struct{}), make(chan error)
	a.engine.Stored = func(int64, eventlog.Entry) error {
		close(stored)
		<-a.engine.Closed()
		return nil
	}
	batch := a.batch(dozen)
	go func() { done <- a.Append(t.Context(), 0, batch) }()
	<-stored
	closed := make(chan error)
	go func() { closed <- a.Close() }()
	require.NoError(t, <-done)
	require.NoError(t, <-closed)
	requireCopies(t, series.Numbered(0, batch), m.start(t, "a"), m.hub(t, "b"))
}

// TestSharedContext checks that a context that ends while an append runs does not end it, and that
// one that ends when another hub was first breaks no log.
func TestSharedContext(t *testing.T) {
	m := newTeam(t, 200)
	a, b := m.hub(t, "a"), m.hub(t, "b")
	over, cancel := context.WithCancel(t.Context())
	a.before(2, cancel)
	batch := a.batch(dozen)
	require.NoError(t, a.Append(over, 0, batch))
	want := series.Numbered(0, batch)

	over, cancel = context.WithCancel(t.Context())
	b.before(1, cancel)
	err := b.Append(over, 0, b.batch(1))
	require.ErrorIs(t, err, eventlog.ErrMoved)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eventlog.ErrBroken)
	require.Zero(t, b.Last())
	b.follow(t)
	requireCopies(t, append(want, b.append(t, 1)...), b, m.hub(t, "c"))
}

// held returns a function that ends the write lock of another process on the copy of a hub.
func held(t *testing.T, h *hub) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+h.team.copyOf(h.name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// TestSharedCopyIsHeld checks a copy that another process holds. A hub that follows continues
// later. A hub that appends is broken, because its batch is in the log and not in the copy.
func TestSharedCopyIsHeld(t *testing.T) {
	t.Parallel()
	for _, most := range mosts {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, most)
			a, b := m.hub(t, "a"), m.hub(t, "b")
			want := a.append(t, dozen)
			release := held(t, b)
			require.ErrorIs(t, b.Follow(t.Context(), nil), eventlog.ErrBusy)
			release()
			require.Len(t, b.follow(t), 1)
			requireCopies(t, want, a, b)

			release = held(t, b)
			batch := b.batch(dozen)
			err := b.Append(t.Context(), dozen, batch)
			require.ErrorContains(t, err, eventlog.ErrBusy.Error())
			requireBroken(t, b, dozen, err)
			release()
			require.NoError(t, b.Close())
			b = m.hub(t, "b")
			a.follow(t)
			requireCopies(t, append(want, series.Numbered(dozen, batch)...), a, b)
		})
	}
}
