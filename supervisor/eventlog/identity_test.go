package eventlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// copyWithTip is copyLog with the tip.
func copyWithTip(t *testing.T, path string) string {
	to := copyLog(t, path, t.TempDir())
	tip, err := os.ReadFile(tipOf(path))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tipOf(to), tip, 0o600))
	return to
}

// growing returns an open durable log of 60 facts, most of them in its write-ahead log.
func growing(t *testing.T) (string, *SQLite) {
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	for range 30 {
		require.NoError(t, l.Append(t.Context(), l.Last(), facts(l.Last(), 2)))
	}
	return path, l
}

// TestLostTail checks that a log that lost acknowledged facts is not opened for writing,
// whatever happened to its write-ahead log.
func TestLostTail(t *testing.T) {
	t.Parallel()
	path, _ := growing(t)
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	flipped := append([]byte{}, wal...)
	flipped[len(wal)/2] ^= 4
	for name, now := range map[string][]byte{"empty": {}, "half": wal[:len(wal)/2], "flipped": flipped} {
		t.Run(name, func(t *testing.T) {
			damaged := copyWithTip(t, path)
			require.NoError(t, os.WriteFile(damaged+"-wal", now, 0o600))
			_, err := Open(t.Context(), Options{Path: damaged, Durable: true})
			var broken *ChainError
			require.ErrorAs(t, err, &broken)
			require.Less(t, broken.Seq, int64(61))
			require.ErrorContains(t, err, "facts up to 60 were acknowledged")
			l := mustOpen(t, Options{Path: damaged, ReadOnly: true})
			last, lost := l.Check(t.Context())
			require.Equal(t, broken.Seq-1, last)
			requireBreak(t, last+1, lost)
		})
	}
	t.Run("gone", func(t *testing.T) {
		damaged := copyWithTip(t, path)
		require.NoError(t, os.Remove(damaged+"-wal"))
		_, err := Open(t.Context(), Options{Path: damaged, Durable: true})
		require.ErrorContains(t, err, "facts up to 60 were acknowledged")
	})
}

// TestTipProvesNothingElse checks that an older, damaged or missing tip refuses no log, and that a
// log that is not durable has none.
func TestTipProvesNothingElse(t *testing.T) {
	t.Parallel()
	path, l := growing(t)
	older, err := os.ReadFile(tipOf(path))
	require.NoError(t, err)
	require.NoError(t, l.Append(t.Context(), 60, facts(60, 1)))
	for name, tip := range map[string][]byte{"older": older, "short": older[:7], "flipped": append([]byte{1}, older[1:]...)} {
		t.Run(name, func(t *testing.T) {
			sound := copyLog(t, path, t.TempDir())
			require.NoError(t, os.WriteFile(tipOf(sound), tip, 0o600))
			require.Equal(t, int64(61), mustOpen(t, Options{Path: sound, Durable: true}).Last())
			seq, _ := readTip(sound)
			require.Equal(t, int64(61), seq)
		})
	}
	cut := copyWithTip(t, path)
	require.NoError(t, os.Remove(cut+"-wal"))
	mustOpen(t, Options{Path: cut})
	require.NoFileExists(t, tipOf(cut))
}

// TestEmptyFile checks that an empty file that had facts is not a new log, and that its
// write-ahead log stays.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	path, _ := growing(t)
	for _, missing := range []bool{false, true} {
		for _, tip := range []bool{false, true} {
			empty := copyWithTip(t, path)
			wal, err := os.ReadFile(empty + "-wal")
			require.NoError(t, err)
			require.NoError(t, os.Truncate(empty, 0))
			if missing {
				require.NoError(t, os.Remove(empty))
			}
			if !tip {
				require.NoError(t, os.Remove(tipOf(empty)))
			}
			_, err = Open(t.Context(), Options{Path: empty, Durable: true})
			var e *EmptyError
			require.ErrorAs(t, err, &e)
			require.Equal(t, missing, e.Missing)
			require.Equal(t, tip, e.Acked == 60)
			after, err := os.ReadFile(empty + "-wal")
			require.NoError(t, err)
			require.Equal(t, wal, after)
		}
	}
}

// TestFilesThatVanish checks that a log notices that one of its files was deleted or replaced.
// Later facts are in the database when it is closed, if that still exists.
func TestFilesThatVanish(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "-wal", "-shm"} {
		for _, replaced := range []bool{false, true} {
			path, l := growing(t)
			require.NoError(t, l.Sound())
			content, err := os.ReadFile(path + end)
			require.NoError(t, err)
			require.NoError(t, os.Rename(path+end, filepath.Join(t.TempDir(), "away")))
			if replaced {
				require.NoError(t, os.WriteFile(path+end, content, 0o600))
			}
			var lost *LostError
			require.ErrorAs(t, l.Sound(), &lost)
			require.Equal(t, path+end, lost.Path)
			require.Equal(t, replaced, lost.Replaced)
		}
	}
	path, l := growing(t)
	require.NoError(t, os.Remove(path+"-wal"))
	require.NoError(t, l.Append(t.Context(), 60, facts(60, 5)))
	require.NoError(t, l.Close())
	require.Equal(t, int64(65), mustOpen(t, Options{Path: path, Durable: true}).Last())
}

// TestInPlace checks that a file is lost if its path is empty or holds another file. A path that
// cannot be read proves no loss.
func TestInPlace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	open, err := os.Stat(name)
	require.NoError(t, err)
	require.NoError(t, InPlace(name, open))
	require.NoError(t, InPlace(filepath.Join(name, "below"), open), "it cannot be asked")
	require.NoError(t, os.Rename(name, name+".old"))
	var lost *LostError
	require.ErrorAs(t, InPlace(name, open), &lost)
	require.False(t, lost.Replaced)
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.ErrorAs(t, InPlace(name, open), &lost)
	require.True(t, lost.Replaced)
}

// TestOlderCopy checks that a copy in the place of a log that was closed in order is recognized as
// older, and is left unchanged, although the other files of that log still exist.
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	path, l := growing(t)
	require.NoError(t, l.Close())
	wal, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.Zero(t, wal.Size())
	older, err := os.ReadFile(path)
	require.NoError(t, err)

	l, err = Open(t.Context(), Options{Path: path, Durable: true})
	require.NoError(t, err)
	require.NoError(t, l.Append(t.Context(), 60, facts(60, 5)))
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(path, older, 0o600))
	_, err = Open(t.Context(), Options{Path: path, Durable: true})
	require.ErrorContains(t, err, "facts up to 65 were acknowledged")
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, older, now)

	for _, end := range []string{"-wal", "-shm", "-tip"} {
		require.NoError(t, os.Remove(path+end))
	}
	require.EqualValues(t, 60, mustOpen(t, Options{Path: path, Durable: true}).Last())
}
