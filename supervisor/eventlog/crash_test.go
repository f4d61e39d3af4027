package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// roles maps the further roles of the test binary to their functions.
var roles = map[string]func(path string) error{
	"append": appendForEver,
	"trim":   trimForEver,
	"full":   appendUntilFull,
	"read":   readAsStranger,
}

// long returns the n-th fact of a series with a payload of some kilobytes.
func long(n int64) wire.Record {
	r := fact(int(n))
	r.Payload = fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat(string(rune('a'+n%26)), int(n*7919%3000)))
	r.Key = fmt.Sprint(n)
	return r
}

// appendForEver appends batches of every size, prints the last number of each durable one, and
// keeps a state now and then.
func appendForEver(path string) error {
	l, err := Open(context.Background(), Options{Path: path, Durable: true})
	if err != nil {
		return err
	}
	for round := 0; err == nil; round++ {
		last := l.Last()
		var batch []wire.Record
		for n := range last%23 + 1 {
			batch = append(batch, long(last+n+1))
		}
		if err = l.Append(context.Background(), last, batch); err == nil {
			fmt.Println(l.Last())
		}
		if round%20 == 19 {
			err = errors.Join(err, l.Keep(context.Background(), l.Last(), bytes.NewReader(fmt.Append(nil, "state of ", l.Last()))))
		}
	}
	return err
}

// TestKilled checks that every acknowledged fact exists after a kill at any moment.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var acked, checked int64
	cycles := max(8, rounds(30))
	for cycle := range cycles {
		c := start(t, "append", path)
		for range random.IntN(60) {
			require.True(t, c.out.Scan(), c.err)
		}
		for spin := range random.IntN(200_000) {
			_ = spin // the kill comes at any point of an append
		}
		require.NoError(t, c.cmd.Process.Kill())
		acked = c.acked(t, acked)
		require.Error(t, c.cmd.Wait())

		l, err := Open(t.Context(), Options{Path: path, Durable: true})
		require.NoError(t, err)
		require.GreaterOrEqual(t, l.Last(), acked, "cycle %d, seed %d", cycle, seed)
		for r, err := range l.Records(t.Context(), checked) {
			require.NoError(t, err)
			require.Equal(t, asKept(long(r.Seq), r.Seq), r)
			checked = r.Seq
		}
		require.Equal(t, l.Last(), checked)
		seq, state, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		if seq > 0 {
			require.Equal(t, fmt.Sprint("state of ", seq), string(state))
		}
		require.NoError(t, l.Close())
	}
	require.Greater(t, checked, int64(30*cycles))
	require.Len(t, all(t, mustOpen(t, Options{Path: path}), 0), int(checked))
}

// appendUntilFull appends to a file that cannot grow beyond 1 MB.
func appendUntilFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	const limit = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	err := appendForEver(path)
	if !errors.Is(err, ErrBroken) {
		return fmt.Errorf("want a broken log, have: %w", err)
	}
	return nil
}

// TestDiskFull checks that an append that does not fit breaks the log, and loses no acknowledged
// fact.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	c := start(t, "full", path)
	acked := c.acked(t, 0)
	require.NoError(t, c.cmd.Wait(), c.err)
	require.Positive(t, acked)

	l := mustOpen(t, Options{Path: path, Durable: true})
	require.Equal(t, acked, l.Last())
	for _, r := range all(t, l, 0) {
		require.Equal(t, asKept(long(r.Seq), r.Seq), r)
	}
	require.NoError(t, l.Append(t.Context(), acked, []wire.Record{long(acked + 1)}))
}

// TestTornTail checks that a write-ahead log that was cut anywhere holds a beginning of the
// appended facts, in whole batches.
func TestTornTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	l := mustOpen(t, Options{Path: path, Durable: true})
	ends := map[int64]bool{0: true}
	for range 30 {
		last := l.Last()
		require.NoError(t, l.Append(t.Context(), last, facts(last, int(last%7)+1)))
		ends[l.Last()] = true
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 40 {
		torn := copyLog(t, path, t.TempDir())
		wal, err := os.ReadFile(torn + "-wal")
		require.NoError(t, err)
		cut := random.IntN(len(wal) + 1)
		if round%2 == 0 {
			wal = wal[:cut]
		} else {
			for i := cut; i < len(wal); i++ {
				wal[i] = byte(random.Uint32())
			}
		}
		require.NoError(t, os.WriteFile(torn+"-wal", wal, 0o600))

		after, err := Open(t.Context(), Options{Path: torn, Durable: true})
		require.NoError(t, err, "seed %d", seed)
		last := after.Last()
		require.True(t, ends[last], "seed %d: %d facts are not whole batches", seed, last)
		require.Equal(t, numbered(0, facts(0, int(last))), append([]wire.Record{}, all(t, after, 0)...))
		require.NoError(t, after.Append(t.Context(), last, facts(last, 3)))
		require.NoError(t, after.Close())
	}
}
