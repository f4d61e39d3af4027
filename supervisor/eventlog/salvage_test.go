package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestSalvage checks that the sound beginning of a damaged log makes a new one, and that the
// damaged log stays unchanged.
func TestSalvage(t *testing.T) {
	t.Parallel()
	whole := closedLog(t, 3000)
	for sql, first := range map[string]int64{
		"UPDATE events SET kind = 'early' WHERE seq = 2500": 2500,
		"UPDATE events SET kind = 'early' WHERE seq = 2":    2,
		"DELETE FROM events WHERE seq = 1700":               1700,
		"SELECT 1":                                          3001,
	} {
		t.Run(sql, func(t *testing.T) {
			path := copyLog(t, whole, t.TempDir())
			edit(t, path, sql)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			to := filepath.Join(t.TempDir(), "new.db")
			last, lost, err := Salvage(t.Context(), path, to, nil)
			require.NoError(t, err)
			require.Equal(t, first-1, last)
			if first <= 3000 {
				requireBreak(t, first, lost)
			} else {
				require.NoError(t, lost)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after))
			moved := filepath.Join(t.TempDir(), "events.db")
			require.NoError(t, os.Rename(to, moved))
			left, err := os.ReadDir(filepath.Dir(to))
			require.NoError(t, err)
			require.Empty(t, left, "all is in the file that was named")
			to = moved
			l := mustOpen(t, Options{Path: to, Durable: true})
			require.Equal(t, numbered(0, facts(0, int(last))), all(t, l, 0))
			require.NoError(t, l.Append(t.Context(), last, facts(last, 3)))
			_, _, err = Salvage(t.Context(), path, to, nil)
			require.ErrorIs(t, err, os.ErrExist)
		})
	}
}

// TestSalvageWithout checks that facts that are damaged and named leave a gap, and that no other fact is lost.
func TestSalvageWithout(t *testing.T) {
	t.Parallel()
	whole := closedLog(t, 3000)
	fill := func(seq int64) wire.Record {
		return wire.Record{At: time.Unix(1, 0).UTC(), From: "GO", Kind: "gap", Payload: []byte(fmt.Sprintf(`{"n":%d}`, seq))}
	}
	for _, c := range []struct {
		sql           string
		without, left []int64
		last          int64
	}{
		{"UPDATE events SET kind = 'early' WHERE seq = 2500", []int64{2500}, []int64{2500}, 3000},
		{"UPDATE events SET kind = 'early' WHERE seq IN (2, 700, 3000)", []int64{700, 2, 3000}, []int64{2, 700, 3000}, 3000},
		{"UPDATE events SET kind = 'early' WHERE seq IN (2, 700)", []int64{2}, []int64{2}, 699},
		{"DELETE FROM events WHERE seq = 1700", []int64{1700}, []int64{1700}, 1700},
		{"DELETE FROM events WHERE seq = 1700", []int64{1700, 1701}, []int64{1700, 1701}, 3000},
		{"SELECT 1", []int64{5}, nil, 3000},
	} {
		t.Run(fmt.Sprint(c.sql, c.without), func(t *testing.T) {
			path, to := copyLog(t, whole, t.TempDir()), filepath.Join(t.TempDir(), "new.db")
			edit(t, path, c.sql)
			gaps := &Gaps{Without: c.without, Fill: fill}
			last, lost, err := Salvage(t.Context(), path, to, gaps)
			require.NoError(t, err)
			require.Equal(t, c.last, last)
			require.Equal(t, c.last < 3000, lost != nil)
			require.Equal(t, c.left, gaps.Left)
			want := numbered(0, facts(0, int(last)))
			for _, seq := range c.left {
				want[seq-1] = fill(seq)
				want[seq-1].Seq = seq
			}
			require.Equal(t, want, all(t, mustOpen(t, Options{Path: to}), 0))
		})
	}
}

// TestSalvageOfAnEndThatCannotBeFound checks a log without its last pages, while earlier ones can
// be read.
func TestSalvageOfAnEndThatCannotBeFound(t *testing.T) {
	t.Parallel()
	path := copyLog(t, closedLog(t, 3000), t.TempDir())
	require.NoError(t, os.Remove(path+"-wal")) // it holds these pages too
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(content, []byte(`{"task":3000}`))
	page := at / 4096 * 4096
	clear(content[page : page+4096])
	require.NoError(t, os.WriteFile(path, content, 0o600))
	_, err = Open(t.Context(), Options{Path: path})
	require.Error(t, err)
	to := filepath.Join(t.TempDir(), "new.db")
	last, lost, err := Salvage(t.Context(), path, to, nil)
	require.NoError(t, err)
	require.Error(t, lost)
	require.Greater(t, last, int64(2000))
	require.Len(t, all(t, mustOpen(t, Options{Path: to}), 0), int(last))
}

// TestCopy checks that a copy made while the log grows has everything acknowledged before it
// began.
func TestCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 100)))
	var group sync.WaitGroup
	over := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_ = l.Append(t.Context(), l.Last(), facts(l.Last(), 3))
			}
		}
	})
	dir := filepath.Join(t.TempDir(), "it's a folder")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for n := range 5 {
		acked := l.Last()
		to := filepath.Join(dir, fmt.Sprint("copy ", n))
		last, err := Copy(t.Context(), path, to)
		require.NoError(t, err)
		require.GreaterOrEqual(t, last, acked)
		info, err := os.Stat(to)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		copied := mustOpen(t, Options{Path: to, Durable: true})
		require.Equal(t, last, copied.Last())
		require.NoError(t, copied.Close())
	}
	close(over)
	group.Wait()

	taken := filepath.Join(dir, "copy 0")
	before, err := os.ReadFile(taken)
	require.NoError(t, err)
	_, err = Copy(t.Context(), path, taken)
	require.ErrorIs(t, err, os.ErrExist)
	after, err := os.ReadFile(taken)
	require.NoError(t, err)
	require.Equal(t, before, after)

	for _, end := range []string{"-wal", "-shm", "-tip"} { // of a log that was moved away
		name := filepath.Join(dir, "moved"+end)
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		_, err = Copy(t.Context(), path, filepath.Join(dir, "moved"))
		require.ErrorIs(t, err, os.ErrExist)
		require.ErrorContains(t, err, name)
		_, _, err = Salvage(t.Context(), path, filepath.Join(dir, "moved"), nil)
		require.ErrorIs(t, err, os.ErrExist)
		require.NoError(t, os.Remove(name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cut.part-1"), nil, 0o600)) // a copy that was killed
	_, err = Copy(t.Context(), path, filepath.Join(dir, "cut"))
	require.NoError(t, err)

	damaged := copyLog(t, closedLog(t, 3000), t.TempDir())
	edit(t, damaged, "UPDATE events SET kind = 'early' WHERE seq = 17")
	_, err = Copy(t.Context(), damaged, filepath.Join(dir, "none"))
	requireBreak(t, 17, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range left {
		require.NotContains(t, e.Name(), "none")
	}
}

// TestModeOfFiles checks that only the owner can read the files beside the log.
func TestModeOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{facts(0, 1)[0]}))
	for _, end := range []string{"", "-wal", "-shm", "-tip"} {
		info, err := os.Stat(path + end)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), end)
	}
}

// Restore keeps the log that was there, also a damaged one, and can be called again after it was interrupted. Until it
// has ended, the log is refused.
func TestRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, saved := filepath.Join(dir, "events.db"), filepath.Join(t.TempDir(), "saved.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 50)))
	_, err := Copy(t.Context(), path, saved)
	require.NoError(t, err)
	require.NoError(t, l.Append(t.Context(), 50, facts(50, 20)))
	require.NoError(t, l.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	ready := func() error { return nil }

	last, err := Restore(t.Context(), saved, path, filepath.Join(dir, "unused"), func() error { return os.ErrPermission })
	require.ErrorIs(t, err, os.ErrPermission)
	require.Zero(t, last)
	_, err = Restore(t.Context(), filepath.Join(dir, "missing.db"), path, filepath.Join(dir, "unused"), ready)
	require.ErrorIs(t, err, os.ErrNotExist)
	broken := filepath.Join(t.TempDir(), "broken.db")
	require.NoError(t, os.WriteFile(broken, before[:len(before)/2], 0o600))
	_, err = Restore(t.Context(), broken, path, filepath.Join(dir, "unused"), ready)
	require.Error(t, err)
	require.NoDirExists(t, filepath.Join(dir, "unused"))
	require.EqualValues(t, 70, reopened(t, path), "the log is as it was")

	// The files after a call that is interrupted between its steps.
	for i, interrupted := range []func(){
		func() {},
		func() { require.NoError(t, os.WriteFile(path+".restored", before[:len(before)/3], 0o600)) },
		func() { require.NoError(t, moveAll(logFiles(path)[:1], filepath.Join(dir, "first"))) },
		func() { require.NoError(t, moveAll(logFiles(path)[:3], filepath.Join(dir, "second"))) },
		func() {
			require.NoError(t, moveAll(logFiles(path)[:3], filepath.Join(dir, "third")))
			_, err := Copy(t.Context(), saved, path+".restored")
			require.NoError(t, err)
			require.NoError(t, adoptTip(path, path+".restored"))
		},
	} {
		interrupted()
		if i > 1 {
			_, err := Open(t.Context(), Options{Path: path, Durable: true})
			require.Error(t, err, i)
		}
		last, err := Restore(t.Context(), saved, path, filepath.Join(dir, fmt.Sprint("aside ", i)), ready)
		require.NoError(t, err, i)
		require.EqualValues(t, 50, last)
		require.EqualValues(t, 50, reopened(t, path))
		l := mustOpen(t, Options{Path: path, Durable: true})
		require.NoError(t, l.Append(t.Context(), 50, facts(50, 30))) // other facts than the first
		require.NoError(t, l.Close())
	}
	require.EqualValues(t, 70, reopened(t, filepath.Join(dir, "aside 0", "events.db")))

	// After the last step no work is left.
	require.NoError(t, moveAll(logFiles(path)[:3], filepath.Join(dir, "fourth")))
	_, err = Copy(t.Context(), saved, path+".restored")
	require.NoError(t, err)
	require.NoError(t, adoptTip(path, path+".restored"))
	require.NoError(t, os.Rename(path+".restored", path))
	require.EqualValues(t, 50, reopened(t, path))
	l = mustOpen(t, Options{Path: path, Durable: true})
	require.NoError(t, l.Append(t.Context(), 50, facts(50, 30)))
	require.NoError(t, l.Close())
	require.NoFileExists(t, path+".restored")

	// A log without a tip is refused too after an interruption, and is unchanged if no file was
	// moved.
	require.NoError(t, os.Remove(tipOf(path)))
	blocked := filepath.Join(dir, "blocked")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	_, err = Restore(t.Context(), saved, path, blocked, ready)
	require.Error(t, err)
	require.EqualValues(t, 80, reopened(t, path))
	for _, half := range []string{"half without a tip", "half with one"} {
		if half == "half without a tip" {
			require.NoError(t, os.Remove(tipOf(path)))
		}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, half, "events.db-wal", "x"), 0o700))
		last, err = Restore(t.Context(), saved, path, filepath.Join(dir, half), ready)
		require.Error(t, err)
		require.EqualValues(t, 50, last)
		require.NoFileExists(t, path)
		_, err = Open(t.Context(), Options{Path: path})
		require.Error(t, err, half)
		_, err = Restore(t.Context(), saved, path, filepath.Join(dir, "whole "+half), ready)
		require.NoError(t, err)
		require.EqualValues(t, 50, reopened(t, path))
	}

	none := filepath.Join(t.TempDir(), "events.db")
	_, err = Restore(t.Context(), saved, none, filepath.Join(dir, "unused"), ready)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "unused"))
	require.EqualValues(t, 50, reopened(t, none))
}

// Copy removes the remains of a killed copy to the same file, and Open the remains of a killed
// Restore.
func TestLeftParts(t *testing.T) {
	t.Parallel()
	path := closedLog(t, 10)
	dir := t.TempDir()
	to := filepath.Join(dir, "a[b]*.db")
	left := []string{to + ".part-123", to + ".part-123-journal", path + ".restored", path + ".restored.part-7"}
	for _, name := range append(left, to+".part-9") {
		require.NoError(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	held, err := os.Open(to + ".part-9")
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
	_, err = Copy(t.Context(), path, to)
	require.NoError(t, err)
	require.EqualValues(t, 10, reopened(t, path))
	for _, name := range left {
		require.NoFileExists(t, name)
	}
	require.FileExists(t, to+".part-9", "another copy is being made")
}

// reopened returns the last fact of a log.
func reopened(t *testing.T, path string) int64 {
	l := mustOpen(t, Options{Path: path, Durable: true})
	defer l.Close()
	return l.Last()
}
