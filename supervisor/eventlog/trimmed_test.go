package eventlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrimmedLogIsOpened checks that a log without its front is opened, checked, copied and
// salvaged, by each library, and that a second process sees the removal.
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
				last, lost, err := Salvage(t.Context(), path, to, nil)
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
