package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// later is the time at which the tests remove facts.
var later = noon.Add(time.Hour)

// trimmed removes facts up to a number, as far as the log allows it, and returns the base.
func trimmed(t testing.TB, l Log, upTo int64) wire.Base {
	t.Helper()
	base, err := l.Base(t.Context())
	require.NoError(t, err)
	for {
		next, err := l.Trim(t.Context(), upTo, later)
		require.NoError(t, err)
		require.LessOrEqual(t, next.Seq, max(base.Seq, upTo))
		require.LessOrEqual(t, next.Seq-base.Seq, int64(trimRows))
		if next.Seq == base.Seq {
			return next
		}
		base = next
	}
}

// trimmable appends n facts, every third a letter, with two states that include all but the last.
func trimmable(t testing.TB, l Log, n int) []wire.Record {
	t.Helper()
	var batch []wire.Record
	for i := range n {
		r := fact(i + 1)
		if i%3 == 0 {
			r = letter(i+1, fmt.Sprint("agent-", i%2))
		}
		r.Key = fmt.Sprint("key-", i+1)
		batch = append(batch, r)
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	for seq := int64(n - 2); seq < int64(n); seq++ {
		require.NoError(t, l.Keep(t.Context(), seq, bytes.NewReader(fmt.Append(nil, "state of ", seq))))
	}
	return numbered(0, batch)
}

// requireRemoved requires that facts behind a number were removed, and that the error says so.
func requireRemoved(t testing.TB, l Log, after int64, base wire.Base) {
	t.Helper()
	for _, err := range l.Records(t.Context(), after) {
		var removed *wire.RemovedError
		require.ErrorAs(t, err, &removed)
		require.Equal(t, base, removed.Base)
	}
}

// conformTrim checks that facts are removed from the front only, that reading behind the base is
// an error, and that everything else stays as it is.
func conformTrim(t *testing.T, e engine) {
	l := e.open(t)
	require.Zero(t, trimmed(t, l, 100))
	kept := trimmable(t, l, 1000)
	before, err := l.Size(t.Context())
	require.NoError(t, err)
	base := trimmed(t, l, 600)
	require.Equal(t, wire.Base{Seq: 600, At: kept[599].At, Removed: later.Truncate(time.Millisecond), Began: kept[0].At}, base)
	after, err := l.Size(t.Context())
	require.NoError(t, err)
	require.Less(t, after, before)
	for _, n := range []int64{-1, 0, 1, 599} {
		requireRemoved(t, l, n, base)
	}
	require.Equal(t, kept[600:], all(t, l, 600))
	require.Equal(t, kept[700:], all(t, l, 700))
	for _, s := range searches(kept) {
		require.Equal(t, sift(kept[600:], s), found(t, l, s), "%+v", s)
	}
	require.Empty(t, found(t, l, wire.Search{From: kept[599].From, Key: kept[599].Key}))
	require.Len(t, found(t, l, wire.Search{From: kept[600].From, Key: kept[600].Key}), 1)
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(999), seq)
	require.Equal(t, "state of 999", string(state))

	again := fact(1001)
	again.From, again.Key = kept[0].From, kept[0].Key
	require.NoError(t, l.Append(t.Context(), 1000, []wire.Record{again}), "a key goes with its fact")
	require.Equal(t, int64(998), trimmed(t, l, 5000).Seq, "the older state needs what follows it")
	require.Len(t, all(t, l, 998), 3)
	require.NoError(t, l.Append(t.Context(), 1001, facts(1001, 3)))
	require.Len(t, all(t, l, 998), 6)
}

// TestTrimmedLogIsOpened checks that a log without its front is opened, checked, copied and
// salvaged, by each library, and that a second process sees what was removed.
func TestTrimmedLogIsOpened(t *testing.T) {
	for _, library := range []library{ncruces, modernc} {
		path := filepath.Join(t.TempDir(), "events.db")
		l := mustOpen(t, Options{Path: path, Durable: true, library: library})
		kept := trimmable(t, l, 3000)
		require.NoError(t, l.Close())
		before, err := os.Stat(path)
		require.NoError(t, err)
		l = mustOpen(t, Options{Path: path, Durable: true, library: library})
		reader := mustOpen(t, Options{Path: path, ReadOnly: true, library: library})
		require.Equal(t, kept, all(t, reader, 0))
		base := trimmed(t, l, 2900)
		requireRemoved(t, reader, 0, base)
		require.Equal(t, kept[2900:], all(t, reader, 2900))
		require.NoError(t, reader.Close())
		require.NoError(t, l.Close())
		after, err := os.Stat(path)
		require.NoError(t, err)
		require.Less(t, after.Size(), before.Size()/2, "the file shrinks")

		for range 2 {
			l = mustOpen(t, Options{Path: path, Durable: true, library: library})
			require.Equal(t, int64(3000), l.Last())
			require.Equal(t, kept[2900:], all(t, l, 2900))
			last, broken := l.Check(t.Context())
			require.NoError(t, broken)
			require.Equal(t, int64(3000), last)
			require.NoError(t, l.Close())
		}
		for _, copied := range []func(to string) error{
			func(to string) error { _, err := Copy(t.Context(), path, to); return err },
			func(to string) error {
				last, lost, err := Salvage(t.Context(), path, to)
				require.NoError(t, lost)
				require.Equal(t, int64(3000), last)
				return err
			},
		} {
			to := filepath.Join(t.TempDir(), "events.db")
			require.NoError(t, copied(to))
			l := mustOpen(t, Options{Path: to, Durable: true})
			requireRemoved(t, l, 2899, base)
			require.Equal(t, kept[2900:], all(t, l, 2900))
			require.NoError(t, l.Append(t.Context(), 3000, facts(3000, 2)))
			seq, _, err := l.Snapshot(t.Context())
			require.NoError(t, err)
			require.Equal(t, int64(2999), seq)
			require.NoError(t, l.Close())
		}
	}
}

// TestTrimKeepsDamage checks that damaged facts are reported, and neither removed nor skipped.
func TestTrimKeepsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	trimmable(t, l, 2000)
	require.NoError(t, l.Close())
	edit(t, path, "UPDATE events SET kind = 'other' WHERE seq = 300")
	l = mustOpen(t, Options{Path: path, Durable: true})
	base, err := l.Trim(t.Context(), 900, later)
	require.NoError(t, err)
	require.Equal(t, int64(trimRows), base.Seq)
	_, err = l.Trim(t.Context(), 900, later)
	var broken *ChainError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, int64(300), broken.Seq)
	require.NoError(t, l.Append(t.Context(), 2000, facts(2000, 1)))
	require.NoError(t, l.Close())
	edit(t, path, "UPDATE base SET seq = seq + 1")
	l = mustOpen(t, Options{Path: path, ReadOnly: true})
	_, err = l.Check(t.Context())
	require.ErrorAs(t, err, &broken, "a base that was moved")
}
