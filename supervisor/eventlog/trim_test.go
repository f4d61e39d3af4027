package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// trimForEver appends and keeps states like appendForEver, and removes all but the newest facts
// beside it.
func trimForEver(path string) error {
	l, err := Open(context.Background(), Options{Path: path, Durable: true})
	if err != nil {
		return err
	}
	for err == nil {
		last := l.Last()
		var batch []wire.Record
		for n := range last%23 + 1 {
			batch = append(batch, long(last+n+1))
		}
		if err = l.Append(context.Background(), last, batch); err == nil {
			fmt.Println(l.Last())
			err = l.Keep(context.Background(), l.Last(), bytes.NewReader(fmt.Append(nil, "state of ", l.Last())))
		}
		if err == nil {
			_, err = l.Trim(context.Background(), l.Last()-100, later)
		}
	}
	return err
}

// requireWhole requires that a log is a base and intact facts after it, and a state that fits.
func requireWhole(t *testing.T, l *SQLite, acked int64) wire.Base {
	t.Helper()
	require.GreaterOrEqual(t, l.Last(), acked)
	base, err := l.Base(t.Context())
	require.NoError(t, err)
	next := base.Seq
	for r, err := range l.Records(t.Context(), base.Seq) {
		require.NoError(t, err)
		next++
		require.Equal(t, asKept(long(next), next), r)
	}
	require.Equal(t, l.Last(), next)
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, seq, base.Seq, "without a state, the removed facts would be missed")
	if seq > 0 {
		require.Equal(t, fmt.Sprint("state of ", seq), string(state))
	}
	return base
}

// TestKilledWhileTrimming checks that a kill at any moment loses no fact that is acknowledged and
// not removed, and that facts and base always fit.
func TestKilledWhileTrimming(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var acked int64
	var base wire.Base
	for cycle := range max(8, rounds(30)) {
		c := start(t, "trim", path)
		for range random.IntN(40) {
			require.True(t, c.out.Scan(), c.err)
		}
		for spin := range random.IntN(200_000) {
			_ = spin // the kill comes at any point of a round
		}
		require.NoError(t, c.cmd.Process.Kill())
		acked = c.acked(t, acked)
		require.Error(t, c.cmd.Wait())
		l, err := Open(t.Context(), Options{Path: path, Durable: true})
		require.NoError(t, err, "cycle %d, seed %d", cycle, seed)
		now := requireWhole(t, l, acked)
		require.GreaterOrEqual(t, now.Seq, base.Seq)
		base = now
		require.NoError(t, l.Close())
	}
	require.Positive(t, base.Seq)
}

// TestEveryFaultWhileTrimming fails an operation on the files in each round, every fourth one of a
// run, beginning at random: a disk that is full, and a sync that fails. The rest is whole.
func TestEveryFaultWhileTrimming(t *testing.T) {
	t.Parallel()
	for _, forEver := range []bool{false, true} {
		t.Run(fmt.Sprint("for ever: ", forEver), func(t *testing.T) {
			stride := int64(32 / rounds(8))
			n, broken := 1+rand.Int64N(stride), 0
			t.Log("the first operation that fails is", n)
			for ; ; n += stride {
				f := &faults{VFS: vfs.Find("os"), at: n, forEver: forEver}
				name := fmt.Sprint("trim-", forEver, n)
				vfs.Register(name, f)
				path := filepath.Join(t.TempDir(), "events.db")
				l, err := Open(t.Context(), Options{Path: path, Durable: true, VFS: name})
				acked := int64(0)
				if err == nil {
					acked, err = trimUnderFault(t, l)
					l.Close() // may fail, without a loss
				}
				if err != nil {
					broken++
				}
				vfs.Unregister(name)
				l, err = Open(t.Context(), Options{Path: path, Durable: true})
				require.NoError(t, err, "operation %d", n)
				requireWhole(t, l, acked)
				require.NoError(t, l.Append(t.Context(), l.Last(), []wire.Record{long(l.Last() + 1)}))
				require.NoError(t, l.Close())
				if !f.fired() {
					break
				}
			}
			require.Greater(t, n, int64(60), "operations")
			require.Greater(t, int64(broken)*stride, int64(40))
		})
	}
}

// trimUnderFault appends, keeps states and removes facts until one of these fails.
func trimUnderFault(t *testing.T, l *SQLite) (acked int64, err error) {
	_ = l.writer.exec("PRAGMA wal_autocheckpoint = 10") // so that there are some
	for range 8 {
		var batch []wire.Record
		for i := range int64(6) {
			batch = append(batch, long(acked+i+1))
		}
		if err = l.Append(t.Context(), acked, batch); err == nil {
			acked += 6
			err = l.Keep(t.Context(), acked, bytes.NewReader(fmt.Append(nil, "state of ", acked)))
		}
		if err == nil {
			_, err = l.Trim(t.Context(), acked-8, later)
		}
		if err != nil {
			require.True(t, errors.Is(err, ErrBroken) || codeOf(err) != 0, "%v", err)
			return acked, err
		}
	}
	return acked, nil
}
