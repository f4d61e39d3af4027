package eventlog_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// save copies the copy of a hub that is closed, to a hub of another name in any team.
func (m *team) save(t *testing.T, name string, to *team, as string) {
	t.Helper()
	for _, end := range []string{"", "-wal"} {
		content, err := os.ReadFile(m.copyOf(name) + end)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to.copyOf(as)+end, content, 0o600))
	}
}

// A growth is a log that grew, with the copy of a hub after each batch.
type growth struct {
	*team
	facts []wire.Record
	ends  []int64 // of the batches
}

// grown returns a log with copies "0", "1" and so on. Between the batches are parts of other
// batches that count nowhere.
func grown(t *testing.T) *growth {
	g := &growth{team: newTeam(t, 200), ends: []int64{0}}
	for i, n := range []int{3, dozen, 1, dozen} {
		a := g.hub(t, "a")
		g.facts = append(g.facts, a.append(t, n)...)
		g.ends = append(g.ends, a.Last())
		a.dieAt(2 + i%3)
		require.Error(t, a.Append(t.Context(), a.Last(), a.batch(dozen)))
		require.NoError(t, a.Close())
		g.save(t, "a", g.team, fmt.Sprint(i+1))
	}
	return g
}

// TestSharedCopyIsBehind checks that a hub finds the place of its copy in the log, wherever it ended,
// and follows from there. Such a copy has lost its newest facts, because it is not synced.
func TestSharedCopyIsBehind(t *testing.T) {
	t.Parallel()
	g := grown(t)
	for i, end := range g.ends {
		if i == 0 {
			continue
		}
		h := g.start(t, fmt.Sprint(i))
		require.Equal(t, end, h.Last())
		require.Len(t, h.follow(t), len(g.ends)-1-i)
		requireCopies(t, g.facts, h, g.hub(t, "a"))
		require.NoError(t, h.Close())
	}
}

// TestSharedShorter checks that a hub refuses a log that ends before its copy, with both numbers,
// and no other.
func TestSharedShorter(t *testing.T) {
	t.Parallel()
	g := grown(t)
	for entries := g.Len(); entries >= 0; entries-- {
		g.Lose(entries)
		left := int64(0) // the last fact of the log
		for n := range entries {
			e, err := g.Entry(int64(n + 1))
			require.NoError(t, err)
			if e.Part == e.Of {
				left = e.First + int64(e.Count) - 1
			}
		}
		for i, end := range g.ends[1:] {
			name := fmt.Sprint(i + 1)
			if end <= left {
				require.NoError(t, g.start(t, name).Close())
				continue
			}
			var shorter *eventlog.ShorterError
			require.ErrorAs(t, g.refused(t, name), &shorter)
			require.Equal(t, eventlog.ShorterError{Copy: end, Log: left}, *shorter)
			require.ErrorContains(t, shorter, fmt.Sprintf("lost facts %d to %d", left+1, end))
		}
	}
}

// TestSharedOtherLog checks that a hub refuses the copy of another log, and names the fact.
func TestSharedOtherLog(t *testing.T) {
	for name, c := range map[string]struct {
		here, there [][]wire.Record // the batches of the copy, and of the log
		want        string
	}{
		"all differs":            {[][]wire.Record{tagged("x", 0, 3)}, [][]wire.Record{tagged("y", 0, 3)}, "at fact 1: the checksums differ"},
		"an old batch differs":   {[][]wire.Record{tagged("x", 0, 3), tagged("x", 3, dozen)}, [][]wire.Record{tagged("y", 0, 3), tagged("x", 3, dozen)}, "at fact 4: the checksums differ"},
		"the last batch differs": {[][]wire.Record{tagged("x", 0, 3), tagged("x", 3, dozen)}, [][]wire.Record{tagged("x", 0, 3), tagged("y", 3, dozen)}, "at fact 4: the checksums differ"},
		"it ends within a batch": {[][]wire.Record{tagged("x", 0, 3), tagged("x", 3, 2)}, [][]wire.Record{tagged("x", 0, 3), tagged("x", 3, dozen)}, "at fact 5: it ends within a batch"},
		"the log is longer":      {[][]wire.Record{tagged("x", 0, 3)}, [][]wire.Record{tagged("y", 0, 3), tagged("y", 3, 3)}, "at fact 1: the checksums differ"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := newTeam(t, 200), newTeam(t, 200)
			for m, batches := range map[*team][][]wire.Record{here: c.here, there: c.there} {
				h := m.hub(t, "a")
				for _, batch := range batches {
					require.NoError(t, h.Append(t.Context(), h.Last(), batch))
				}
				require.NoError(t, h.Close())
			}
			here.save(t, "a", there, "stranger")
			err := there.refused(t, "stranger")
			require.ErrorContains(t, err, "the copy is not one of this log: "+c.want)
			require.ErrorContains(t, err, there.copyOf("stranger"))
			there.hub(t, "a")
		})
	}
}

// tagged returns the n facts after number last, from a sender.
func tagged(from string, last int64, n int) []wire.Record {
	batch := series.Facts(last, n)
	for i := range batch {
		batch[i].From = from
	}
	return batch
}

// TestSharedCopyIsDeleted checks that a copy that was deleted is fetched anew.
func TestSharedCopyIsDeleted(t *testing.T) {
	g := grown(t)
	for _, end := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(g.copyOf("a")+end))
	}
	a := g.start(t, "a")
	require.Zero(t, a.Last())
	require.ErrorIs(t, a.Append(t.Context(), 0, a.batch(1)), eventlog.ErrMoved)
	a.follow(t)
	requireCopies(t, g.facts, a, g.hub(t, "b"))
}

// TestSharedCopyIsTrimmed checks that a hub that has removed old facts from its copy opens it
// again, also if only the last batch, or a part of it, is left.
func TestSharedCopyIsTrimmed(t *testing.T) {
	for _, upTo := range []int64{1, 3, 4, 9, 14} {
		m := newTeam(t, 200)
		a, b := m.hub(t, "a"), m.hub(t, "b")
		want := append(a.append(t, 3), a.append(t, dozen)...)
		for seq := range int64(2) {
			require.NoError(t, a.Keep(t.Context(), 14+seq, bytes.NewReader([]byte("state"))))
		}
		require.Equal(t, upTo, series.Trimmed(t, a.SQLite, upTo).Seq)
		require.NoError(t, a.Close())
		a = m.start(t, "a")
		b.follow(t)
		want = append(want, b.append(t, dozen)...)
		require.Len(t, a.follow(t), 1)
		require.Equal(t, want[upTo:], series.All(t, a, upTo))
		require.Equal(t, eventlog.SumOf(a.Shared), eventlog.SumOf(b.Shared))
	}
}

// TestSharedOpenFails checks that a hub is not opened if its engine does not answer, and that the
// engine is closed.
func TestSharedOpenFails(t *testing.T) {
	g := grown(t)
	for asked := range 10 {
		engine, n := g.Join(), 0
		engine.Asking = func() error {
			if n++; n > asked {
				return errDead
			}
			return nil
		}
		h, err := eventlog.OpenShared(t.Context(), g.copyOf("3"), engine)
		if err == nil {
			require.Greater(t, asked, 5, "End, First for each half, Get twice")
			require.NoError(t, h.Close())
			return
		}
		require.ErrorIs(t, err, errDead)
		<-engine.Closed()
	}
	require.Fail(t, "it never opens")
}

// TestSharedOpenWaits checks that a hub that starts waits for answers, for instance while a leader is
// elected. It gives up when its context ends.
func TestSharedOpenWaits(t *testing.T) {
	g := grown(t)
	engine, n := g.Join(), 0
	engine.Asking = func() error {
		if n++; n%3 != 0 && n < 12 {
			return fmt.Errorf("%w: an election", eventlog.ErrUnanswered)
		}
		return nil
	}
	h, err := eventlog.OpenShared(t.Context(), g.copyOf("3"), engine)
	require.NoError(t, err)
	require.Greater(t, n, 12)
	require.Equal(t, g.ends[3], h.Last())
	require.NoError(t, h.Close())

	ctx, cancel := context.WithCancel(t.Context())
	engine = g.Join()
	engine.Asking = func() error {
		cancel()
		return eventlog.ErrUnanswered
	}
	_, err = eventlog.OpenShared(ctx, g.copyOf("3"), engine)
	require.ErrorIs(t, err, eventlog.ErrUnanswered)
	<-engine.Closed()
}
