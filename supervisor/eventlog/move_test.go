package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// local returns a log of one machine with n facts.
func local(t *testing.T, n int) *eventlog.SQLite {
	t.Helper()
	l, err := eventlog.Open(t.Context(), eventlog.Options{Path: filepath.Join(t.TempDir(), "events.db"), Durable: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, n)))
	return l
}

// moveIn moves a log into the team's, as the hub a.
func (m *team) moveIn(t *testing.T, from *eventlog.SQLite) error {
	return (&eventlog.Move{From: from, Engine: m.Join(), Owner: "a"}).In(t.Context())
}

// A record is moved in, with its numbers, times and sums, and hubs continue there. To move it again has no effect.
func TestMoveIn(t *testing.T) {
	t.Parallel()
	for _, most := range mosts {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			m, from := newTeam(t, most), local(t, 3000)
			want := series.All(t, from, 0)
			var told []string
			move := eventlog.Move{From: from, Engine: m.Join(), Owner: "a", Progress: func(doing string, done, all int64) {
				require.LessOrEqual(t, done, all)
				told = append(told, doing)
			}}
			require.NoError(t, move.In(t.Context()))
			require.Subset(t, told, []string{"copying", "reading it back"})
			sum, err := from.ChainSum(3000)
			require.NoError(t, err)
			a, b := m.hub(t, "a"), m.hub(t, "b")
			moved, err := b.SQLite.ChainSum(3000)
			require.NoError(t, err)
			require.Equal(t, sum, moved)
			requireCopies(t, want, a, b)
			a.append(t, 5)
			entries := m.Len()
			require.NoError(t, m.moveIn(t, from))
			require.Equal(t, entries, m.Len())
		})
	}
}

// A move that is interrupted at any entry, before or after it is stored, leaves a log that no hub appends to. The next
// move continues there.
func TestMoveInterrupted(t *testing.T) {
	t.Parallel()
	for _, most := range mosts {
		for _, stored := range []bool{false, true} {
			from := local(t, 2100) // three batches
			want := series.All(t, from, 0)
			for at := int64(0); at < 3; at++ {
				m := newTeam(t, most)
				cut := m.Join()
				fault := func(n int64) error {
					if n >= at {
						return errors.New("cut")
					}
					return nil
				}
				if stored {
					cut.Stored = func(n int64, _ eventlog.Entry) error { return fault(n - 1) }
				} else {
					cut.Putting = func(n int64, _ eventlog.Entry) error { return fault(n) }
				}
				require.ErrorContains(t, (&eventlog.Move{From: from, Engine: cut, Owner: "a"}).In(t.Context()), "cut")
				if b := m.hub(t, "b"); m.Len() > 0 && (stored && at < 2 || most > 200) {
					requireElsewhere(t, b.Append(t.Context(), b.Last(), b.batch(1)), "a", false)
				}
				require.NoError(t, m.moveIn(t, from))
				requireCopies(t, want, m.hub(t, "c"))
			}
		}
	}
}

func requireElsewhere(t *testing.T, err error, owner string, out bool) {
	t.Helper()
	require.ErrorIs(t, err, eventlog.ErrMoved)
	away, ok := errors.AsType[*eventlog.ElsewhereError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, owner, away.Owner)
	require.Equal(t, out, away.Out)
}

// After an interrupted move into the log, the hub cannot use its record as a copy, and another hub can neither finish
// the move nor move the record out.
func TestMoveOfAnother(t *testing.T) {
	t.Parallel()
	m, from := newTeam(t, 1<<20), local(t, 2100)
	cut := m.Join()
	cut.Putting = func(at int64, _ eventlog.Entry) error {
		if at == 1 {
			return errors.New("cut")
		}
		return nil
	}
	require.Error(t, (&eventlog.Move{From: from, Engine: cut, Owner: "a"}).In(t.Context()))
	b := m.hub(t, "b")
	require.Equal(t, int64(1024), b.Last())
	requireElsewhere(t, b.MoveOut(t.Context(), "b"), "a", false)
	requireElsewhere(t, b.MoveOut(t.Context(), "a"), "a", false)
	requireElsewhere(t, (&eventlog.Move{From: b.SQLite, Engine: m.Join(), Owner: "b"}).In(t.Context()), "a", false)
	_, err := eventlog.Copy(t.Context(), pathOf(t, from), m.copyOf("a"))
	require.NoError(t, err)
	requireElsewhere(t, m.refused(t, "a"), "a", false)
}

// pathOf returns the file of a log.
func pathOf(t *testing.T, l *eventlog.SQLite) string {
	to := filepath.Join(t.TempDir(), "copied.db")
	made, err := eventlog.Open(t.Context(), eventlog.Options{Path: to})
	require.NoError(t, err)
	require.NoError(t, made.Append(t.Context(), 0, series.All(t, l, 0)))
	require.NoError(t, made.Close())
	return to
}

// A log that has another record is left unchanged, and so is one that a hub begins to use during
// the move.
func TestMoveRefused(t *testing.T) {
	t.Parallel()
	m, from := newTeam(t, 1<<20), local(t, 100)
	a := m.hub(t, "a")
	a.append(t, 1)
	var other *eventlog.OtherRecordError
	require.ErrorAs(t, m.moveIn(t, from), &other)
	require.Equal(t, int64(1), other.Last)
	require.Equal(t, 1, m.Len())

	m = newTeam(t, 1<<20)
	b := m.hub(t, "b")
	raced := m.Join()
	raced.Putting = func(at int64, _ eventlog.Entry) error {
		if at == 0 {
			b.append(t, 1)
		}
		return nil
	}
	require.ErrorIs(t, (&eventlog.Move{From: from, Engine: raced, Owner: "a"}).In(t.Context()), eventlog.ErrMoved)
	require.Equal(t, 1, m.Len())

	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, (&eventlog.Move{From: from, Engine: newTeam(t, 0).Join(), Owner: "a"}).In(over), context.Canceled)

	trimmed := local(t, 1)
	require.NoError(t, trimmed.Append(t.Context(), 1, series.Facts(1, 100)))
	for seq := range int64(2) {
		require.NoError(t, trimmed.Keep(t.Context(), 90+seq, strings.NewReader("state")))
	}
	require.Equal(t, int64(50), series.Trimmed(t, trimmed, 50).Seq)
	var removed *wire.RemovedError
	require.ErrorAs(t, (&eventlog.Move{From: trimmed, Engine: newTeam(t, 0).Join(), Owner: "a"}).In(t.Context()), &removed)
}

// A record that is moved out is a local one, and no hub appends to the log. It can be moved in again, by its owner
// only, with the facts added since.
func TestMoveOut(t *testing.T) {
	t.Parallel()
	for _, most := range mosts {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, most)
			a, b, c := m.hub(t, "a"), m.hub(t, "b"), m.hub(t, "c")
			b.append(t, 10)
			once := false
			a.engine.Putting = func(int64, eventlog.Entry) error { // the hub at work is faster, once
				if !once {
					once = true
					b.append(t, 10)
				}
				return nil
			}
			require.NoError(t, a.MoveOut(t.Context(), "a"))
			require.NoError(t, a.MoveOut(t.Context(), "a"), "it is done")
			requireElsewhere(t, b.Current(t.Context()), "a", true)
			requireElsewhere(t, b.Append(t.Context(), 20, b.batch(1)), "a", true)
			require.ErrorIs(t, c.Append(t.Context(), 0, c.batch(1)), eventlog.ErrMoved)
			requireElsewhere(t, b.MoveOut(t.Context(), "b"), "a", true)
			require.NoError(t, a.Close())

			own, err := eventlog.Open(t.Context(), eventlog.Options{Path: m.copyOf("a"), Durable: true})
			require.NoError(t, err)
			last, broken := own.Check(t.Context())
			require.NoError(t, broken)
			require.Equal(t, int64(20), last)
			requireElsewhere(t, (&eventlog.Move{From: b.SQLite, Engine: m.Join(), Owner: "b"}).In(t.Context()), "a", true)
			require.NoError(t, own.Append(t.Context(), 20, series.Facts(20, 5)))
			require.NoError(t, own.Close())
			requireElsewhere(t, m.refused(t, "a"), "a", true)
			own, err = eventlog.Open(t.Context(), eventlog.Options{Path: m.copyOf("a"), ReadOnly: true})
			require.NoError(t, err)
			require.NoError(t, m.moveIn(t, own))
			want := series.All(t, own, 0)
			require.NoError(t, own.Close())
			b.follow(t)
			requireCopies(t, want, m.hub(t, "a"), b)
			b.append(t, 1)
		})
	}
}

// A hub cannot move in an older record than the one that it has moved out.
func TestMoveOlder(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 1<<20)
	a := m.hub(t, "a")
	require.NoError(t, a.Append(t.Context(), 0, series.Facts(0, 20)))
	require.NoError(t, a.MoveOut(t.Context(), "a"))
	var other *eventlog.OtherRecordError
	require.ErrorAs(t, m.moveIn(t, local(t, 10)), &other)
	require.True(t, other.Same)
	entries := m.Len()
	require.NoError(t, m.moveIn(t, local(t, 20)), "nothing was added")
	require.Equal(t, entries+1, m.Len())
	require.NoError(t, m.hub(t, "b").Elsewhere())
}
