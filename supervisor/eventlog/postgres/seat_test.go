package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
)

// asks waits until Ask reports a hub at work, or "" for none.
func asks(t *testing.T, e *Engine, want string) {
	t.Helper()
	eventually(t, func(t *assert.CollectT) {
		who, err := e.Ask(context.Background())
		if want == "" {
			require.ErrorIs(t, err, eventlog.ErrVacant)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, string(who))
	})
}

// asksUntil asks until the answer is the wanted one, and requires that the seat is never reported free before.
func asksUntil(t *testing.T, e *Engine, want string) {
	t.Helper()
	vacant := false
	eventually(t, func(t *assert.CollectT) {
		who, err := e.Ask(context.Background())
		vacant = vacant || errors.Is(err, eventlog.ErrVacant)
		require.Equal(t, want, string(who))
	})
	require.False(t, vacant)
}

// serves adds an entry and serves.
func serves(t *testing.T, e *Engine, who string) (end func()) {
	t.Helper()
	at, err := e.End(t.Context())
	require.NoError(t, err)
	_, err = e.Put(at, entry(at+1, who))
	require.NoError(t, err)
	end, err = e.Serve([]byte(who))
	require.NoError(t, err)
	return end
}

// A hub at work answers, and one that has ended does not.
func TestSeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b, c := s.join("team"), s.join("team"), s.join("team")
	_, err := c.Ask(t.Context())
	require.ErrorIs(t, err, eventlog.ErrVacant)
	end := serves(t, a, "h1")
	asks(t, c, "h1")
	asks(t, a, "h1")
	_, err = s.join("another team").Ask(t.Context())
	require.ErrorIs(t, err, eventlog.ErrVacant)
	end()
	asks(t, c, "")
	end()
	serves(t, b, "h2")
	asks(t, c, "h2")
	require.NoError(t, b.Close())
	asks(t, c, "")
	serves(t, a, "h1")
	asks(t, c, "h1")
}

// A hub that hangs is silent, and keeps its session. The one that takes its turn after it has the seat, also when the
// first one wakes.
func TestHubHangs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := newRelay(t, s.Address())
	a, b, c := s.joinAt(r.url(), "team"), s.join("team"), s.join("team")
	serves(t, a, "h1")
	asks(t, c, "h1")
	r.requests.Lock()
	eventually(t, func(t *assert.CollectT) {
		_, err := c.Ask(context.Background())
		require.ErrorIs(t, err, eventlog.ErrSilent)
	})
	admin := s.administer()
	const holders = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
	require.Equal(t, 1, value[int](t, admin, holders), "it still holds the lock")
	end := serves(t, b, "h2")
	asks(t, c, "h2")
	r.requests.Unlock()

	const beat = "SELECT beat FROM orchestrator_logs WHERE log = 'team'"
	began := value[int](t, admin, beat)
	eventually(t, func(t *assert.CollectT) { // the first one has its session still, or has a new one
		require.Equal(t, 2, value[int](t, admin, holders))
		require.Greater(t, value[int](t, admin, beat), began+4)
	})
	require.Equal(t, "h2", string(value[[]byte](t, admin, "SELECT who FROM orchestrator_logs WHERE log = 'team'")))
	asksUntil(t, c, "h2")
	end()
	require.NoError(t, a.Close())
	asks(t, c, "")
}

// After the end of its session, a hub takes the lock again by itself.
func TestSessionEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, c, admin := s.join("team"), s.join("team"), s.administer()
	serves(t, a, "h1")
	asks(t, c, "h1")
	for range 3 {
		const holder = "SELECT pid FROM orchestrator_logs WHERE log = 'team'"
		pid := value[int](t, admin, holder)
		require.True(t, value[bool](t, admin, "SELECT pg_terminate_backend($1)", pid))
		eventually(t, func(t *assert.CollectT) { require.NotEqual(t, pid, value[int](t, admin, holder)) })
		asks(t, c, "h1")
	}
}

// A restart of the server vacates no seat: the hub at work takes it again.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, c := s.join("team"), s.join("team")
	serves(t, a, "h1")
	asks(t, c, "h1")
	for range 2 {
		s.Stop()
		s.Start()
		asksUntil(t, c, "h1")
		s.Kill()
		s.Start()
		asksUntil(t, c, "h1")
	}
	s.Stop()
	require.NoError(t, a.Close()) // the row still has it as serving
	s.Start()
	eventually(t, func(t *assert.CollectT) {
		_, err := c.Ask(context.Background())
		require.ErrorIs(t, err, eventlog.ErrSilent)
	})
	b := s.join("team")
	serves(t, b, "h2")
	asksUntil(t, c, "h2")
}

// The answers of Ask follow from the content and time of the rows.
func TestSeatView(t *testing.T) {
	t.Parallel()
	var s seatView
	now := time.Now()
	const ms = time.Millisecond
	held := seatRow{held: true, who: []byte("h1"), beat: 1, end: 5}
	moved := func(f seatRow, beat int64) seatRow { f.beat = beat; return f }
	free := seatRow{beat: 2, end: 5}
	for i, step := range []struct {
		after time.Duration
		seatRow
		want error
	}{
		{0, held, nil},
		{900 * ms, held, nil},
		{200 * ms, held, eventlog.ErrSilent},
		{0, moved(held, 2), nil},
		{9 * time.Second, moved(held, 3), nil}, // this engine has not asked for long
		{200 * ms, free, eventlog.ErrSilent},
		{100 * ms, free, eventlog.ErrSilent},
		{100 * ms, free, eventlog.ErrVacant},
		{0, seatRow{beat: 2, end: 6}, eventlog.ErrSilent}, // a hub has just taken its turn
		{200 * ms, moved(held, 4), nil},
		{200 * ms, seatRow{beat: 4, end: 5}, eventlog.ErrSilent},
		{0, seatRow{beat: 4, end: 5, restarted: true}, eventlog.ErrSilent},
		{time.Hour, seatRow{beat: 4, end: 5, restarted: true}, eventlog.ErrSilent},
		{0, seatRow{beat: 4, end: 5}, eventlog.ErrSilent},
		{time.Hour, seatRow{beat: 4}, eventlog.ErrVacant}, // an empty log
	} {
		now = now.Add(step.after)
		who, err := s.answer(step.seatRow, now)
		require.Equal(t, step.want, err, "step %d", i)
		require.Equal(t, err == nil, string(who) == "h1", "step %d", i)
	}
}
