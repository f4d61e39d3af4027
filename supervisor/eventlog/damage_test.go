package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// closedLog makes a log of n facts and returns its file.
func closedLog(t *testing.T, n int) string {
	path := filepath.Join(t.TempDir(), "events.db")
	l, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, n)))
	require.NoError(t, l.Close())
	return path
}

// edit runs SQL on the file without the log.
func edit(t *testing.T, path, sql string) {
	c, err := ncruces(path, false)
	require.NoError(t, err)
	require.NoError(t, c.exec(sql))
	require.NoError(t, c.close())
}

// TestBreaks checks that damage is found at the damaged row. If it is near the end, the log does
// not open for writing; it always opens for reading.
func TestBreaks(t *testing.T) {
	t.Parallel()
	const facts = 3000
	whole := closedLog(t, facts)
	for _, damage := range []struct {
		sql string
		seq int64
	}{
		{"UPDATE events SET at = '2026-11-02T12:00:00.001Z' WHERE seq = 2500", 2500},
		{"UPDATE events SET at = 'yesterday' WHERE seq = 2500", 2500},
		{"UPDATE events SET actor_from = 'somebody' WHERE seq = 2500", 2500},
		{"UPDATE events SET actor_to = 'somebody' WHERE seq = 2500", 2500},
		{"UPDATE events SET topic = 'something' WHERE seq = 2500", 2500},
		{"UPDATE events SET kind = 'task.destroyed' WHERE seq = 2500", 2500},
		{"UPDATE events SET payload = NULL WHERE seq = 2500", 2500},
		{"UPDATE events SET reply_to = 1 WHERE seq = 2500", 2500},
		{"UPDATE events SET idempotency_key = 'k' WHERE seq = 2500", 2500},
		{"UPDATE events SET correlation = actor_from, actor_from = correlation WHERE seq = 2500", 2500},
		{"UPDATE events SET crc = crc + 1 WHERE seq = 2500", 2500},
		{"UPDATE events SET crc = crc + 4294967296 WHERE seq = 2500", 2500},
		{"UPDATE events SET payload = 'x', crc = 1 WHERE seq = 3000", 3000},
		{"DELETE FROM events WHERE seq = 2500", 2500},
		{"DELETE FROM events WHERE seq = 1", 1},
		{"UPDATE events SET seq = 3002 WHERE seq = 3000", 3000},
		{"UPDATE events SET kind = 'early' WHERE seq = 1", 1},
		{"INSERT INTO snapshots VALUES (3001, 0, x'00', 0)", 3001},
	} {
		t.Run(damage.sql, func(t *testing.T) {
			path := copyLog(t, whole, t.TempDir())
			edit(t, path, damage.sql)
			_, err := Open(t.Context(), Options{Path: path})
			if damage.seq > facts-tail {
				requireBreak(t, damage.seq, err)
			} else {
				require.NoError(t, err)
			}
			shown, err := Open(t.Context(), Options{Path: path, ReadOnly: true})
			require.NoError(t, err)
			read := int64(0)
			for r, err := range shown.Records(t.Context(), 0) {
				if err != nil {
					requireBreak(t, damage.seq, err)
					break
				}
				read = r.Seq
			}
			require.Equal(t, damage.seq-1, read)
			require.NoError(t, shown.Close())
		})
	}
}

func requireBreak(t *testing.T, seq int64, err error) {
	t.Helper()
	var broken *ChainError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, seq, broken.Seq, err.Error())
}

// TestBreakSeenWhileWriting checks that a damaged old row is an error only for its readers.
func TestBreakSeenWhileWriting(t *testing.T) {
	path := closedLog(t, 3000)
	edit(t, path, "UPDATE events SET kind = 'early' WHERE seq = 17")
	l := mustOpen(t, Options{Path: path})
	for _, err := range l.Records(t.Context(), 0) {
		if err != nil {
			requireBreak(t, 17, err)
		}
	}
	require.NoError(t, l.Append(t.Context(), 3000, facts(3000, 3)))
	require.Len(t, all(t, l, 17), 2986, "what follows can be read from a place that is named")
	require.NoError(t, l.Close())
	require.Equal(t, int64(3003), mustOpen(t, Options{Path: path}).Last())
}

// TestBreakBehindAState checks that a log can be written although one of its newest facts is damaged, if a
// state that can be read includes that fact.
func TestBreakBehindAState(t *testing.T) {
	t.Parallel()
	const n = 900
	whole := closedLog(t, n)
	l, err := Open(t.Context(), Options{Path: whole, Durable: true})
	require.NoError(t, err)
	require.NoError(t, l.Keep(t.Context(), 700, bytes.NewReader([]byte("state"))))
	require.NoError(t, l.Close())
	for sql, broken := range map[string]int64{
		"UPDATE events SET kind = 'early' WHERE seq = 300":                                     0,
		"UPDATE events SET kind = 'early' WHERE seq = 700":                                     0,
		"DELETE FROM events WHERE seq = 300":                                                   0,
		"UPDATE events SET kind = 'early' WHERE seq = 701":                                     701,
		"UPDATE events SET kind = 'early' WHERE seq = 900":                                     900,
		"DELETE FROM events WHERE seq = 700":                                                   700, // the state does not continue the chain
		"UPDATE events SET kind = 'early' WHERE seq = 300; UPDATE snapshots SET state = x'00'": 300,
		"UPDATE events SET kind = 'early' WHERE seq IN (300, 800)":                             800,
	} {
		t.Run(sql, func(t *testing.T) {
			path := copyLog(t, whole, t.TempDir())
			edit(t, path, sql)
			l, err := Open(t.Context(), Options{Path: path, Durable: true})
			if broken > 0 {
				requireBreak(t, broken, err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, l.Append(t.Context(), n, facts(n, 3)))
			require.Len(t, all(t, l, 700), n+3-700)
			require.NoError(t, l.Close())
			_, lost, err := Salvage(t.Context(), path, filepath.Join(t.TempDir(), "new.db"), nil)
			require.NoError(t, err)
			require.Error(t, lost, "its readers get an error")
		})
	}
}

// TestFlippedBits checks that a flipped bit in the file never gives a wrong fact.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	const n = 800
	path := closedLog(t, n)
	want := numbered(0, facts(0, n))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Run("of a payload", func(t *testing.T) {
		for _, seq := range []int{1, 2, 400, n} {
			at := bytes.Index(content, fmt.Appendf(nil, `{"task":%d}`, seq))
			require.Positive(t, at)
			flipped := bytes.Clone(content)
			flipped[at+3] ^= 4
			file := filepath.Join(t.TempDir(), "events.db")
			require.NoError(t, os.WriteFile(file, flipped, 0o600))
			_, err := Open(t.Context(), Options{Path: file})
			requireBreak(t, int64(seq), err)
		}
	})
	t.Run("anywhere", func(t *testing.T) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		file := filepath.Join(t.TempDir(), "events.db")
		found, tries := 0, max(40, rounds(150))
		for range tries {
			bit := random.IntN(len(content) * 8)
			flipped := bytes.Clone(content)
			flipped[bit/8] ^= 1 << (bit % 8)
			require.NoError(t, os.WriteFile(file, flipped, 0o600))
			require.NoError(t, errors.Join(os.RemoveAll(file+"-wal"), os.RemoveAll(file+"-shm")))
			if !readsBeginning(t, file, want) {
				found++
			}
		}
		t.Logf("%d of %d do no harm", found, tries)
		require.Greater(t, found, tries/4, "seed %d", seed)
	})
}

// readsBeginning reads a log and requires that all facts up to the first error are right. It
// reports whether there was no error.
func readsBeginning(t *testing.T, path string, want []wire.Record) bool {
	l, err := Open(t.Context(), Options{Path: path, ReadOnly: true})
	if err != nil {
		return false
	}
	defer l.Close()
	for r, err := range l.Records(t.Context(), 0) {
		if err != nil {
			return false
		}
		require.Equal(t, want[r.Seq-1], r)
	}
	return l.Last() == int64(len(want))
}

// TestHalf checks that a file that was cut is reported as damaged, so that the user hears of store check and salvage.
func TestHalf(t *testing.T) {
	t.Parallel()
	path := closedLog(t, 3000)
	require.NoError(t, os.RemoveAll(path+"-wal"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()/2/4096*4096))
	_, err = Open(t.Context(), Options{Path: path})
	chain := new(ChainError)
	require.True(t, errors.Is(err, ErrDamaged) || errors.As(err, &chain), "%v", err)
}

// TestDamagedState checks that a damaged state is replaced by the one before it, or by none.
func TestDamagedState(t *testing.T) {
	path := closedLog(t, 10)
	l := mustOpen(t, Options{Path: path})
	for seq := int64(1); seq <= 4; seq++ {
		require.NoError(t, l.Keep(t.Context(), seq, bytes.NewReader(fmt.Append(nil, seq))))
	}
	for _, step := range []struct {
		sql string
		seq int64
	}{
		{"UPDATE snapshots SET seq = 6 WHERE seq = 3", 4},
		{"UPDATE snapshots SET seq = 3 WHERE seq = 6", 4},
		{"UPDATE snapshots SET state = x'00' WHERE seq = 4", 3},
		{"INSERT INTO snapshots SELECT 3, 1, x'', crc FROM snapshots WHERE seq = 3", 0},
		{"DELETE FROM snapshots WHERE part = 1", 3},
		{"UPDATE snapshots SET part = 1 WHERE seq = 3", 0},
		{"UPDATE snapshots SET part = 0 WHERE seq = 3", 3},
		{"UPDATE snapshots SET crc = crc + 1 WHERE seq = 3", 0},
	} {
		edit(t, path, step.sql)
		seq, state, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.seq, seq, step.sql)
		if seq > 0 {
			require.Equal(t, fmt.Sprint(seq), string(state))
		}
	}
}

// TestUnfinishedState checks that a partly written state is not used, and that the next state
// removes it.
func TestUnfinishedState(t *testing.T) {
	path := closedLog(t, 10)
	l := mustOpen(t, Options{Path: path})
	require.NoError(t, l.Keep(t.Context(), 1, bytes.NewReader([]byte("one"))))
	require.NoError(t, l.Keep(t.Context(), 2, bytes.NewReader([]byte("two"))))
	large := bytes.Repeat([]byte("x"), 3*partBytes)
	require.ErrorIs(t, l.Keep(&endsAfter{Context: t.Context(), parts: 2}, 5, bytes.NewReader(large)), context.Canceled)
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, "2 two", fmt.Sprint(seq, " ", string(state)))

	require.NoError(t, l.Keep(t.Context(), 6, bytes.NewReader(large)))
	seq, state, err = l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(6), seq)
	require.Equal(t, large, state)
	edit(t, path, "DELETE FROM snapshots WHERE seq = 6")
	seq, _, err = l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), seq, "the older state that is whole was kept, not the unfinished one")
}

// endsAfter is a context that ends after some parts of a state.
type endsAfter struct {
	context.Context
	parts int
}

func (c *endsAfter) Err() error {
	if c.parts--; c.parts < 0 {
		return context.Canceled
	}
	return nil
}

// TestRefusals checks files that this version must not write.
func TestRefusals(t *testing.T) {
	for _, refusal := range []struct{ sql, says string }{
		{"PRAGMA user_version = 5", "written by a newer version: its schema is 5, and this program reads up to 4"},
		{"PRAGMA user_version = 0", "its schema is 0, and this program reads 1 to 4"},
		{"PRAGMA user_version = -1", "its schema is -1, and this program reads 1 to 4"},
		{"PRAGMA application_id = 7", "not an event log"},
	} {
		path := closedLog(t, 3)
		edit(t, path, refusal.sql)
		for _, readOnly := range []bool{false, true} {
			_, err := Open(t.Context(), Options{Path: path, ReadOnly: readOnly})
			require.ErrorContains(t, err, refusal.says)
			require.ErrorContains(t, err, path)
		}
	}
	folder := t.TempDir()
	_, err := Open(t.Context(), Options{Path: filepath.Join(folder, "none.db"), ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, filepath.Join(folder, "none.db"))
	_, err = Open(t.Context(), Options{Path: filepath.Join(folder, "none", "events.db")})
	require.ErrorIs(t, err, os.ErrNotExist)
	text := filepath.Join(folder, "text.db")
	require.NoError(t, os.WriteFile(text, bytes.Repeat([]byte("not a database "), 1000), 0o600))
	_, err = Open(t.Context(), Options{Path: text})
	require.ErrorContains(t, err, "not a database")
}

// TestReadOnly checks that a log opened for reading follows a writer, and cannot write.
func TestReadOnly(t *testing.T) {
	path := closedLog(t, 3)
	reader := mustOpen(t, Options{Path: path, ReadOnly: true})
	require.ErrorIs(t, reader.Append(t.Context(), 3, facts(3, 1)), ErrReadOnly)
	require.ErrorIs(t, reader.Keep(t.Context(), 3, bytes.NewReader(nil)), ErrReadOnly)
	writer := mustOpen(t, Options{Path: path})
	require.NoError(t, writer.Append(t.Context(), 3, facts(3, 4)))
	require.Len(t, all(t, reader, 0), 7)
	require.Equal(t, int64(7), reader.Last())
}

// A row has only a number.
type row struct {
	statement
	number int64
}

func (r row) next() (bool, error) { return true, nil }

func (r row) integer(int) int64 { return r.number }

// TestWrongNumber checks the error of a row with a damaged number.
func TestWrongNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]string{0: "a row with the number 0 is in its place", 750: "the next one is 750"} {
		err := (&page{after: 747, end: 1000}).read(row{number: number}, nil)
		require.EqualError(t, err, "the chain is broken at fact 748: it is missing; "+want)
	}
}
