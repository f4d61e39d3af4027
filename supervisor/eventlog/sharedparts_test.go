package eventlog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// A dozen facts have four parts of 200 bytes.
const (
	dozen = 12
	parts = 4
)

// errDead is the error of a dead engine.
var errDead = errors.New("the engine is dead")

// dieAt makes the engine fail before it stores a part, from 1.
func (h *hub) dieAt(part int) {
	h.engine.Putting = func(_ int64, e eventlog.Entry) error {
		if e.Part >= part {
			return errDead
		}
		return nil
	}
}

// before calls do when the engine is about to store a part, once.
func (h *hub) before(part int, do func()) {
	h.engine.Putting = func(_ int64, e eventlog.Entry) error {
		if e.Part == part {
			h.engine.Putting = nil
			do()
		}
		return nil
	}
}

// TestSharedParts checks how many parts a batch has.
func TestSharedParts(t *testing.T) {
	m := newTeam(t, 200)
	a := m.hub(t, "a")
	a.append(t, dozen)
	require.Equal(t, parts, m.Len())
	for n := range parts {
		e, err := m.Entry(int64(n + 1))
		require.NoError(t, err)
		require.Equal(t, []any{int64(1), dozen, n + 1, parts}, []any{e.First, e.Count, e.Part, e.Of})
	}
}

// TestSharedIncomplete checks that a partly stored batch counts nowhere. Other hubs continue,
// whether they have read the parts or not, and so does the hub itself.
func TestSharedIncomplete(t *testing.T) {
	t.Parallel()
	for stored := range parts {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprint(stored, " parts, read: ", read), func(t *testing.T) {
				m := newTeam(t, 200)
				a, b := m.hub(t, "a"), m.hub(t, "b")
				want := a.append(t, 3)
				b.follow(t)
				a.dieAt(stored + 1)
				require.ErrorIs(t, a.Append(t.Context(), 3, a.batch(dozen)), errDead)
				if read {
					require.Empty(t, b.follow(t))
				} else if stored > 0 {
					err := b.Append(t.Context(), 3, b.batch(dozen))
					require.ErrorIs(t, err, eventlog.ErrMoved, "the other hub may live")
					require.ErrorContains(t, err, "has begun a batch after fact 3")
				}
				requireCopies(t, want, b, m.hub(t, "c"))
				want = append(want, b.append(t, dozen)...)
				require.NoError(t, a.Close())
				a = m.start(t, "a")
				require.Equal(t, int64(3), a.Last())
				require.Len(t, a.follow(t), 1)
				b.follow(t)
				want = append(want, a.append(t, dozen)...)
				b.follow(t)
				requireCopies(t, want, a, b, m.hub(t, "d"))
				require.NoError(t, b.Close())
				requireCopies(t, want, a, m.start(t, "b"))
			})
		}
	}
}

// TestSharedGoesOn checks that a hub that died within a batch opens again and appends it, at once or
// after it has followed.
func TestSharedGoesOn(t *testing.T) {
	t.Parallel()
	for died := 2; died <= parts; died++ {
		for _, first := range []int{0, 3} {
			m := newTeam(t, 200)
			a := m.hub(t, "a")
			var want []wire.Record
			if first > 0 {
				want = a.append(t, first)
			}
			last, batch := a.Last(), a.batch(dozen)
			a.dieAt(died)
			require.ErrorIs(t, a.Append(t.Context(), last, batch), errDead)
			require.NoError(t, a.Close())
			a = m.start(t, "a")
			require.ErrorIs(t, a.Append(t.Context(), last, batch), eventlog.ErrMoved, "it has not followed")
			require.NoError(t, a.Append(t.Context(), last, batch))
			want = append(want, series.Numbered(last, batch)...)
			a.dieAt(died)
			require.ErrorIs(t, a.Append(t.Context(), a.Last(), a.batch(dozen)), errDead)
			require.NoError(t, a.Close())
			a = m.hub(t, "a")
			want = append(want, a.append(t, dozen)...)
			requireCopies(t, want, a, m.hub(t, "b"))
		}
	}
}

// TestSharedStranger checks that of two hubs that write parts the one that was interrupted is
// refused, and that its batch counts nowhere.
func TestSharedStranger(t *testing.T) {
	t.Parallel()
	for part := 1; part <= parts; part++ {
		m := newTeam(t, 200)
		a, b := m.hub(t, "a"), m.hub(t, "b")
		want := a.append(t, 3)
		a.before(part, func() {
			b.follow(t)
			want = append(want, b.append(t, dozen)...)
		})
		require.ErrorIs(t, a.Append(t.Context(), 3, a.batch(dozen)), eventlog.ErrMoved)
		requireCopies(t, want, a, b, m.hub(t, "c"))
		want = append(want, a.append(t, dozen)...)
		b.follow(t)
		requireCopies(t, want, a, b, m.hub(t, "d"))
	}
}

// TestSharedBothBegin checks two hubs that have each stored a part when the other one continues.
func TestSharedBothBegin(t *testing.T) {
	m := newTeam(t, 200)
	a, b := m.hub(t, "a"), m.hub(t, "b")
	want := a.append(t, 3)
	a.before(2, func() {
		b.follow(t)
		b.before(3, func() {
			require.Empty(t, m.hub(t, "c").follow(t))
		})
		want = append(want, b.append(t, dozen)...)
	})
	require.ErrorIs(t, a.Append(t.Context(), 3, a.batch(dozen)), eventlog.ErrMoved)
	requireCopies(t, want, a, b, m.hub(t, "d"))
}

// TestSharedAppendsAmongParts checks a hub that has read some parts of a batch and appends after
// the rest: it is refused and has the batch.
func TestSharedAppendsAmongParts(t *testing.T) {
	for part := 2; part <= parts; part++ {
		m := newTeam(t, 200)
		a, b := m.hub(t, "a"), m.hub(t, "b")
		want := a.append(t, 3)
		a.before(part, func() { require.Len(t, b.follow(t), 1) })
		want = append(want, a.append(t, dozen)...)
		require.Equal(t, int64(3), b.Last())
		require.ErrorIs(t, b.Append(t.Context(), 3, b.batch(dozen)), eventlog.ErrMoved)
		requireCopies(t, want, a, b)
		want = append(want, b.append(t, dozen)...)
		a.follow(t)
		requireCopies(t, want, a, b, m.hub(t, "c"))
	}
}

// TestSharedWrongEntries checks that entries that no hub writes are refused each time, and break
// neither the copy nor the hub.
func TestSharedWrongEntries(t *testing.T) {
	m := newTeam(t, 200)
	a, b := m.hub(t, "a"), m.hub(t, "b")
	want := a.append(t, 3)
	b.follow(t)
	sum := eventlog.SumOf(a.Shared)
	for want, e := range map[string]eventlog.Entry{
		"at fact 4: the copy ends at fact 3":      {First: 4, Count: 1, Part: 1, Of: 1, Before: sum + 1},
		"at fact 5: the copy ends at fact 3":      {First: 5, Count: 1, Part: 1, Of: 1, Before: sum},
		"part 2 of 2, and the part before it is":  {First: 4, Count: 1, Part: 2, Of: 2, Before: sum},
		"a batch is shorter than its entry says":  {First: 4, Count: 1000, Part: 1, Of: 1, Before: sum, Body: make([]byte, 50)},
		"does not have the facts that its entry":  {First: 4, Count: 2, Part: 1, Of: 1, Before: sum, Body: make([]byte, 19)},
		"copying it: not a fact that can be kept": {First: 4, Count: 1, Part: 1, Of: 1, Before: sum, Body: []byte("\x00\x01\xff\x00\x00\x00\x00\x00\x00\x00")},
	} {
		_, err := m.Join().Put(int64(m.Len()), e)
		require.NoError(t, err)
		for range 2 {
			err = b.Follow(t.Context(), nil)
			require.ErrorContains(t, err, want)
			require.NotErrorIs(t, err, eventlog.ErrBroken)
		}
		err = b.Append(t.Context(), 3, b.batch(1))
		require.ErrorIs(t, err, eventlog.ErrMoved)
		require.ErrorContains(t, err, want)
		m.Lose(m.Len() - 1)
	}
	want = append(want, a.append(t, 1)...)
	b.follow(t)
	requireCopies(t, want, a, b)
}
