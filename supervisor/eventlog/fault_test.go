package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"
)

// faults is a file system that fails at one of its writes, syncs and truncations, and optionally
// at all later ones.
type faults struct {
	vfs.VFS
	at      int64 // which operation fails, from 1; none if less
	forEver bool
	seen    atomic.Int64
	syncs   atomic.Int64
}

// due counts an operation and reports whether it fails.
func (f *faults) due() bool {
	n := f.seen.Add(1)
	return n == f.at || f.forEver && n > f.at && f.at > 0
}

// fired reports whether the fault has happened.
func (f *faults) fired() bool { return f.seen.Load() >= f.at }

func (f *faults) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfsutil.WrapOpen(f.VFS, name, flags)
	return &faultyFile{File: file, faults: f}, flags, err
}

func (f *faults) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfsutil.WrapOpenFilename(f.VFS, name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &faultyFile{File: file, faults: f}, flags, nil
}

type faultyFile struct {
	vfs.File
	faults *faults
}

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if f.faults.due() {
		n, _ := f.File.WriteAt(p[:len(p)/2], at) // torn
		return n, sqlite3.FULL
	}
	return f.File.WriteAt(p, at)
}

func (f *faultyFile) Sync(flags vfs.SyncFlag) error {
	if f.faults.due() {
		return sqlite3.IOERR_FSYNC
	}
	f.faults.syncs.Add(1)
	return f.File.Sync(flags)
}

func (f *faultyFile) Truncate(size int64) error {
	if f.faults.due() {
		return sqlite3.IOERR_TRUNCATE
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f *faultyFile) LockState() vfs.LockLevel       { return vfsutil.WrapLockState(f.File) }
func (f *faultyFile) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f *faultyFile) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }

// TestEveryFault fails each operation on the files, one in each round, until a round passes without
// a fault. Under the race detector it fails every eighth. A failed append breaks the log, and every
// acknowledged fact exists when the log is opened on a sound disk.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	for _, forEver := range []bool{false, true} {
		t.Run(fmt.Sprint("for ever: ", forEver), func(t *testing.T) {
			stride := int64(8 / rounds(8))
			broken, n := 0, 1+rand.Int64N(stride)
			for ; ; n += stride {
				f := &faults{VFS: vfs.Find("os"), at: n, forEver: forEver}
				if survive(t, f) {
					broken++
				}
				if !f.fired() {
					break
				}
			}
			require.Greater(t, n, int64(60), "operations")
			require.Greater(t, int64(broken)*stride, int64(40))
		})
	}
}

// survive writes with a fault and reads without it. It reports whether the log was broken.
func survive(t *testing.T, f *faults) (broken bool) {
	path := filepath.Join(t.TempDir(), "events.db")
	name := fmt.Sprint("faults-", f.forEver, f.at)
	acked, tried := int64(0), int64(0)
	vfs.Register(name, f)
	defer vfs.Unregister(name)
	l, err := Open(t.Context(), Options{Path: path, Durable: true, VFS: name})
	if err == nil {
		acked, tried, broken = appendUnderFault(t, l)
		l.Close() // may fail, without a loss
	}
	l, err = Open(t.Context(), Options{Path: path, Durable: true})
	require.NoError(t, err, "operation %d", f.at)
	require.GreaterOrEqual(t, l.Last(), acked, "operation %d", f.at)
	require.LessOrEqual(t, l.Last(), tried)
	for _, r := range all(t, l, 0) {
		require.Equal(t, asKept(long(r.Seq), r.Seq), r)
	}
	require.NoError(t, l.Append(t.Context(), l.Last(), facts(l.Last(), 2)))
	require.NoError(t, l.Close())
	return broken
}

// appendUnderFault appends until an append fails. Then the log must show only acknowledged facts
// and accept no more.
func appendUnderFault(t *testing.T, l *SQLite) (acked, tried int64, broken bool) {
	_ = l.writer.exec("PRAGMA wal_autocheckpoint = 10") // so that there are some
	var err error
	for round := 0; round < 12 && err == nil; round++ {
		acked = l.Last()
		batch := facts(acked, 0)
		for i := range int64(3) {
			batch = append(batch, long(acked+i+1))
		}
		tried = acked + 3
		if err = l.Append(t.Context(), acked, batch); err == nil {
			acked = tried
		}
		if err == nil && round%4 == 3 {
			err = l.Keep(t.Context(), acked, bytes.NewReader([]byte("state")))
		}
	}
	if err == nil {
		return acked, tried, false
	}
	require.ErrorIs(t, err, ErrBroken)
	for range 3 {
		require.Equal(t, err, l.Append(t.Context(), acked, facts(acked, 1)), "for ever")
		require.Equal(t, err, l.Keep(t.Context(), acked, bytes.NewReader(nil)))
	}
	require.Equal(t, acked, l.Last())
	for r, err := range l.Records(t.Context(), 0) {
		var chain *ChainError
		require.False(t, errors.As(err, &chain), "the chain is sound: %v", err)
		require.LessOrEqual(t, r.Seq, acked)
	}
	return acked, tried, true
}

// panicking is a statement that panics, as SQLite in Go does without memory.
type panicking struct{ statement }

func (panicking) run([]value) error { panic("out of memory") }

// TestPanic checks that a panic breaks only the log.
func TestPanic(t *testing.T) {
	l := mustOpen(t, Options{Path: closedLog(t, 3)})
	l.insert = panicking{l.insert}
	require.ErrorIs(t, l.Append(t.Context(), 3, facts(3, 1)), ErrBroken)
	require.ErrorIs(t, l.Append(t.Context(), 3, facts(3, 1)), ErrBroken)
	require.Len(t, all(t, l, 0), 3)
}

// TestFolderIsSynced checks that the names of all files of a durable log are on disk before it
// is used.
func TestFolderIsSynced(t *testing.T) {
	for _, durable := range []bool{true, false} {
		path, synced := filepath.Join(t.TempDir(), "events.db"), 0
		mustOpen(t, Options{Path: path, Durable: durable, sync: func(dir string) error {
			require.Equal(t, filepath.Dir(path), dir)
			for _, end := range []string{"", "-wal", "-tip"} {
				require.FileExists(t, path+end)
			}
			synced++
			return nil
		}})
		require.Equal(t, durable, synced == 1)
	}
	failed := errors.New("no sync")
	_, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "events.db"), Durable: true, sync: func(string) error { return failed }})
	require.ErrorIs(t, err, failed)
}

type refusing struct {
	statement
	err error
}

func (r refusing) run([]value) error { return r.err }

// TestFullDiskIsNamed checks that a write without room returns ErrFull, and does not mention a
// transaction.
func TestFullDiskIsNamed(t *testing.T) {
	l := mustOpen(t, Options{Path: closedLog(t, 3)})
	l.insert = refusing{l.insert, &sqlError{code: codeFull, cause: errors.New("database or disk is full")}}
	err := l.Append(t.Context(), 3, facts(3, 1))
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, ErrBroken)
	require.NotContains(t, err.Error(), "rollback")
}

// TestDurable checks that each append of a durable log is one sync, however small, and that
// other logs do not sync.
func TestDurable(t *testing.T) {
	for _, durable := range []bool{true, false} {
		f := &faults{VFS: vfs.Find("os"), at: -1}
		name := fmt.Sprint("durable-", durable)
		vfs.Register(name, f)
		t.Cleanup(func() { vfs.Unregister(name) })
		l := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "events.db"), Durable: durable, VFS: name})
		require.NoError(t, l.Append(t.Context(), 0, facts(0, 1))) // begins the write-ahead log, with a sync of its header
		for range 20 {
			before, last := f.syncs.Load(), l.Last()
			require.NoError(t, l.Append(t.Context(), last, facts(last, 5)))
			want := int64(0)
			if durable {
				want = 1
			}
			require.Equal(t, want, f.syncs.Load()-before)
		}
	}
}
