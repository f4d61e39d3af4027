package eventlog_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// mosts are sizes of an entry: one for a whole batch, and one that splits most batches into parts.
var mosts = []int{1 << 20, 200}

// A team is a shared log and the folder for the copy of each hub.
type team struct {
	logtest.Entries
	folder string
}

func newTeam(t *testing.T, most int) *team {
	return &team{Entries: logtest.Entries{Most: most}, folder: t.TempDir()}
}

// A hub is an open log of a team.
type hub struct {
	*eventlog.Shared
	engine *logtest.Memory
	name   string
	team   *team
}

// copyOf returns the file of a hub.
func (m *team) copyOf(name string) string { return filepath.Join(m.folder, name) }

// start opens the log of a hub, as far as it has a copy.
func (m *team) start(t *testing.T, name string) *hub {
	t.Helper()
	h := &hub{engine: m.Join(), name: name, team: m}
	var err error
	h.Shared, err = eventlog.OpenShared(t.Context(), m.copyOf(name), h.engine)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// hub opens the log of a hub and follows.
func (m *team) hub(t *testing.T, name string) *hub {
	t.Helper()
	h := m.start(t, name)
	h.follow(t)
	return h
}

// refused opens the log of a hub, which must fail, and returns the error.
func (m *team) refused(t *testing.T, name string) error {
	t.Helper()
	_, err := eventlog.OpenShared(t.Context(), m.copyOf(name), m.Join())
	require.Error(t, err)
	return err
}

// follow returns the facts that Follow has shown.
func (h *hub) follow(t *testing.T) (batches [][]wire.Record) {
	t.Helper()
	require.NoError(t, h.Follow(t.Context(), func(batch []wire.Record) error {
		batches = append(batches, batch)
		return nil
	}))
	return batches
}

// batch returns n facts for the end of the copy, which name the hub.
func (h *hub) batch(n int) []wire.Record {
	batch := series.Facts(h.Last(), n)
	for i := range batch {
		batch[i].From = h.name
	}
	return batch
}

// append appends n facts and returns them as the log does.
func (h *hub) append(t *testing.T, n int) []wire.Record {
	t.Helper()
	last, batch := h.Last(), h.batch(n)
	require.NoError(t, h.Append(t.Context(), last, batch))
	return series.Numbered(last, batch)
}

// requireCopies requires that some hubs have some facts, and the same checksums.
func requireCopies(t *testing.T, want []wire.Record, hubs ...*hub) {
	t.Helper()
	for _, h := range hubs {
		require.Equal(t, want, series.All(t, h, 0), h.name)
		require.Equal(t, eventlog.SumOf(hubs[0].Shared), eventlog.SumOf(h.Shared), h.name)
	}
}

// TestSharedFollows checks that a hub gets the batches of another one whole and in order, at once or
// later, and that the copies are equal.
func TestSharedFollows(t *testing.T) {
	t.Parallel()
	for _, most := range mosts {
		m := newTeam(t, most)
		a, b := m.hub(t, "a"), m.hub(t, "b")
		var want []wire.Record
		var batches, seen [][]wire.Record
		for n := range 20 {
			batch := a.append(t, n+1)
			want, batches = append(want, batch...), append(batches, batch)
			if n%3 == 0 {
				seen = append(seen, b.follow(t)...)
				requireCopies(t, want, a, b)
			}
		}
		seen = append(seen, b.follow(t)...)
		require.Equal(t, batches, seen)
		require.Empty(t, b.follow(t))
		require.Empty(t, a.follow(t), "a hub is not shown its own batches")
		want = append(want, b.append(t, 5)...)
		require.Len(t, a.follow(t), 1)
		requireCopies(t, want, a, b, m.hub(t, "c"))
	}
}

// TestSharedSeeFails checks that an error of see ends Follow, and that no fact is lost or shown
// twice.
func TestSharedSeeFails(t *testing.T) {
	m := newTeam(t, 200)
	a, b := m.hub(t, "a"), m.hub(t, "b")
	want := append(append(a.append(t, 9), a.append(t, 9)...), a.append(t, 9)...)
	enough, seen := errors.New("enough"), 0
	require.ErrorIs(t, b.Follow(t.Context(), func([]wire.Record) error {
		seen++
		return enough
	}), enough)
	require.Equal(t, 1, seen)
	require.Equal(t, int64(9), b.Last())
	require.Equal(t, [][]wire.Record{want[9:18], want[18:]}, b.follow(t))
	requireCopies(t, want, a, b)
}

// TestSharedDeposed checks that the batch of a hub that is behind is refused and not in the log,
// and that the hub can continue after the batches that it has missed.
func TestSharedDeposed(t *testing.T) {
	for _, most := range mosts {
		m := newTeam(t, most)
		a, b := m.hub(t, "a"), m.hub(t, "b")
		want := a.append(t, 3)
		b.follow(t)
		want = append(want, b.append(t, 20)...)
		late := a.batch(20)
		late[0].Key = "once"
		require.ErrorIs(t, a.Append(t.Context(), 3, late), eventlog.ErrMoved)
		requireCopies(t, want, a, b)
		before := m.Len()
		require.ErrorIs(t, a.Append(t.Context(), 3, late), eventlog.ErrMoved, "again, and the engine is not asked")
		require.Equal(t, before, m.Len())
		late = a.batch(20)
		late[0].Key = "once"
		require.NoError(t, a.Append(t.Context(), 23, late), "the key is free still")
		want = append(want, series.Numbered(23, late)...)
		require.ErrorIs(t, b.Append(t.Context(), 23, b.batch(1)), eventlog.ErrMoved)
		requireCopies(t, want, a, b, m.hub(t, "c"))
		require.ErrorIs(t, b.Append(t.Context(), 43, late[:1]), eventlog.ErrTaken, "a hub knows the keys of others")
	}
}

// TestSharedRace checks that of several hubs that append at the same place exactly one succeeds.
// With 100 bytes an entry, each batch has parts, and hubs interrupt each other within a batch.
func TestSharedRace(t *testing.T) {
	t.Parallel()
	const numbers = 120
	for _, most := range []int{1 << 20, 100} {
		m := newTeam(t, most)
		hubs := []*hub{m.hub(t, "a"), m.hub(t, "b"), m.hub(t, "c"), m.hub(t, "d")}
		won := make([]map[int64]bool, len(hubs))
		var group sync.WaitGroup
		for i, h := range hubs {
			won[i] = make(map[int64]bool)
			h.engine.Putting = func(int64, eventlog.Entry) error {
				runtime.Gosched()
				return nil
			}
			group.Go(func() {
				for last := h.Last(); last < numbers; last = h.Last() {
					switch err := h.Append(t.Context(), last, h.batch(3)); {
					case err == nil:
						won[i][last+1] = true
					case !errors.Is(err, eventlog.ErrMoved):
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		for _, h := range hubs {
			h.follow(t)
		}
		want := series.All(t, hubs[0], 0)
		requireCopies(t, want, hubs...)
		for _, r := range want {
			for i, h := range hubs {
				require.Equal(t, r.From == h.name, won[i][(r.Seq-1)/3*3+1], "fact %d is of %s", r.Seq, r.From)
			}
		}
		t.Logf("%d entries for %d facts", m.Len(), len(want))
	}
}

// TestSharedAppendsNothing checks that an empty batch finds whether the log ends elsewhere.
func TestSharedAppendsNothing(t *testing.T) {
	m := newTeam(t, 200)
	a, b := m.hub(t, "a"), m.hub(t, "b")
	nothing := func(h *hub, last int64) error { return h.Append(t.Context(), last, nil) }
	require.NoError(t, nothing(a, 0))
	want := a.append(t, 12)
	require.NoError(t, nothing(a, 12))
	require.ErrorIs(t, nothing(b, 12), eventlog.ErrMoved, "it does not know these facts")
	require.ErrorIs(t, nothing(b, 0), eventlog.ErrMoved)
	require.NoError(t, nothing(b, 12), "now it knows them")
	a.dieAt(2)
	require.ErrorIs(t, a.Append(t.Context(), 12, a.batch(12)), eventlog.ErrBroken)
	require.NoError(t, nothing(b, 12), "a part of a batch is no fact")
	requireCopies(t, append(want, b.append(t, 2)...), b)

	ends := int64(m.Len())
	m.Lose(m.Len() - 1)
	require.ErrorContains(t, nothing(b, 14), fmt.Sprintf("ends at entry %d, and entry %d was read", ends-1, ends))
	lost := errors.New("no answer")
	b.engine.Asking = func() error { return lost }
	require.ErrorIs(t, nothing(b, 14), lost)
	require.NotErrorIs(t, nothing(b, 14), eventlog.ErrBroken, "a question breaks nothing")
}
