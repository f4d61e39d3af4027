package eventlog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestFoundBreaks checks that damage far from the end is found when any search meets the row,
// and breaks a log that is open for writing.
func TestFoundBreaks(t *testing.T) {
	t.Parallel()
	whole, kept := mailLog(t, 3000)
	letter := kept[299]
	for _, damage := range []struct {
		sql string
		seq int64
	}{
		{"UPDATE events SET payload = '{\"task\":301}' WHERE seq = 300", 300},
		{"UPDATE events SET at = 'yesterday' WHERE seq = 300", 300},
		{"UPDATE events SET crc = crc + 4294967296 WHERE seq = 300", 300},
		{"UPDATE events SET crc = crc + 1 WHERE seq = 299", 300},
		{"DELETE FROM events WHERE seq = 299", 299},
	} {
		for _, s := range []wire.Search{
			{To: []string{letter.To}, After: 250, Until: 350},
			{After: 299},
			{Until: 300, Backward: true},
			{From: letter.From, Key: letter.Key},
		} {
			path := copyLog(t, whole, t.TempDir())
			edit(t, path, damage.sql)
			l := mustOpen(t, Options{Path: path})
			require.NotEmpty(t, found(t, l, wire.Search{After: 2990}), "elsewhere nothing is wrong")
			requireFoundBreak(t, l, s, damage.seq)
			require.NoError(t, l.Append(t.Context(), 3000, facts(3000, 1)))
		}
	}
}

// requireFoundBreak requires that a search ends with a broken fact.
func requireFoundBreak(t *testing.T, l Log, s wire.Search, seq int64) {
	t.Helper()
	var last error
	for r, err := range l.Find(t.Context(), s) {
		require.NoError(t, last, "nothing comes behind an error")
		require.NotEqual(t, seq, r.Seq)
		last = err
	}
	requireBreak(t, seq, last)
}

// TestFlippedLetter checks a flipped bit of a letter in the file.
func TestFlippedLetter(t *testing.T) {
	path, kept := mailLog(t, 3000)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(content, kept[299].Payload)
	require.Positive(t, at)
	content[at+3] ^= 4
	path = filepath.Join(t.TempDir(), "events.db") // the write-ahead log would have the right page
	require.NoError(t, os.WriteFile(path, content, 0o600))
	for _, s := range []wire.Search{{}, {To: []string{"nobody", kept[299].To}}, {Backward: true}, {From: kept[299].From, Key: "300"}} {
		l := mustOpen(t, Options{Path: path, ReadOnly: true})
		requireFoundBreak(t, l, s, 300)
		require.ErrorIs(t, l.Append(t.Context(), 3000, nil), ErrReadOnly)
	}
}

// TestFlippedIndex checks a bit flipped anywhere, also in an index. A search never shows a wrong
// row or one that does not match, and always ends.
func TestFlippedIndex(t *testing.T) {
	t.Parallel()
	path, kept := mailLog(t, 1500)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	file := filepath.Join(t.TempDir(), "events.db")
	noticed, silent, tries := 0, 0, rounds(160)
	for range tries {
		flipped := bytes.Clone(content)
		bit := random.IntN(len(content) * 8)
		flipped[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(file, flipped, 0o600))
		require.NoError(t, errors.Join(os.RemoveAll(file+"-wal"), os.RemoveAll(file+"-shm")))
		l, err := Open(t.Context(), Options{Path: file, ReadOnly: true})
		if err != nil {
			noticed++
			continue
		}
		for _, s := range []wire.Search{
			{}, {Backward: true}, {To: []string{"agent-1", "agent-3"}}, {To: []string{"agent-2"}, Backward: true},
			{From: kept[299].From, Key: "300"},
		} {
			left, said := requireSome(t, l, s, sift(kept, s))
			if said != nil {
				noticed++
			} else if left > 0 {
				silent++
			}
		}
		require.NoError(t, l.Close())
	}
	t.Logf("of %d files and %d searches %d failed, and %d left something out", tries, 5*tries, noticed, silent)
}

// requireSome requires that a search shows only matching facts, in order. It returns the error
// that ended the search, and how many letters were left out.
func requireSome(t *testing.T, l Log, s wire.Search, want []wire.Record) (left int, said error) {
	left = len(want)
	for r, err := range l.Find(t.Context(), s) {
		if err != nil {
			return left, err
		}
		at := slices.IndexFunc(want, func(w wire.Record) bool { return w.Seq == r.Seq })
		require.GreaterOrEqual(t, at, 0, "%+v shows fact %d, or not in its turn", s, r.Seq)
		require.Equal(t, want[at], r)
		want, left = want[at+1:], left-1
	}
	return left, nil
}

// failing is a statement whose rows SQLite cannot read.
type failing struct {
	statement
	err error
}

func (f failing) next() (bool, error) { return false, f.err }

// TestIndexFails checks that a malformed index is a broken chain, and that a disk error is not.
func TestIndexFails(t *testing.T) {
	for code, broken := range map[int]bool{codeCorrupt | 1<<8: true, codeNotADB: true, codeIO: false} {
		path, kept := mailLog(t, 30)
		l := mustOpen(t, Options{Path: path})
		searches := map[*statement]wire.Search{
			&l.mail: {To: []string{"agent-1"}}, &l.mailBack: {To: []string{"agent-1"}, Backward: true},
			&l.letters: {}, &l.lettersBack: {Backward: true}, &l.keyed: {From: kept[2].From, Key: "3"},
		}
		for at, s := range searches {
			sound := *at
			*at = failing{sound, &sqlError{code: code, cause: errors.New("no good")}}
			for _, err := range l.Find(t.Context(), s) {
				var chain *ChainError
				require.ErrorContains(t, err, "no good")
				require.Equal(t, broken, errors.As(err, &chain), "%v", err)
			}
			*at = sound
		}
		require.NoError(t, l.Append(t.Context(), 30, facts(30, 1)))
	}
}

// TestIndexAstray checks an index that leads to a sound row that does not match.
func TestIndexAstray(t *testing.T) {
	path, kept := mailLog(t, 30)
	for _, c := range []struct {
		at     func(l *SQLite) *statement
		sql    string
		search wire.Search
		want   int64
	}{
		{func(l *SQLite) *statement { return &l.mail }, `SELECT 4 WHERE ?1 < ?2 AND ?3 > 0 AND ?4 <> ''`, wire.Search{To: []string{kept[2].To}}, 4},
		{func(l *SQLite) *statement { return &l.mail }, `SELECT 3 WHERE ?1 < ?2 AND ?3 > 0 AND ?4 <> ''`, wire.Search{To: []string{"somebody"}}, 3},
		{func(l *SQLite) *statement { return &l.letters }, `SELECT 4 WHERE ?1 < ?2 AND ?3 > 0`, wire.Search{}, 4},
		{func(l *SQLite) *statement { return &l.keyed }, `SELECT 4 WHERE ?1 <> ?2`, wire.Search{From: kept[2].From, Key: "3"}, 4},
	} {
		l := mustOpen(t, Options{Path: path})
		require.NoError(t, l.prepare(l.reader, map[string]*statement{c.sql: c.at(l)}))
		for _, err := range l.Find(t.Context(), c.search) {
			require.ErrorContains(t, err, "an index leads to it and should not")
			requireBreak(t, c.want, err)
		}
		require.NoError(t, l.Append(t.Context(), 30, nil))
	}
}

// TestIndexOutOfOrder checks that numbers out of order end a search. Otherwise it could go on
// forever.
func TestIndexOutOfOrder(t *testing.T) {
	path, _ := mailLog(t, 30)
	for _, c := range []struct {
		sql      string
		backward bool
		seq      int64
	}{
		{`SELECT value FROM (SELECT 6 AS value UNION ALL SELECT 3) WHERE ?1 < ?2 AND ?3 > 0`, false, 7},
		{`SELECT value FROM (SELECT 6 AS value UNION ALL SELECT 6) WHERE ?1 < ?2 AND ?3 > 0`, false, 7},
		{`SELECT value FROM (SELECT 6 AS value UNION ALL SELECT 9) WHERE ?1 < ?2 AND ?3 > 0`, true, 5},
		{`SELECT 31 WHERE ?1 < ?2 AND ?3 > 0`, false, 1},
	} {
		l := mustOpen(t, Options{Path: path})
		require.NoError(t, l.prepare(l.reader, map[string]*statement{c.sql: &l.letters}))
		l.lettersBack = l.letters
		for _, err := range l.Find(t.Context(), wire.Search{Backward: c.backward}) {
			require.ErrorContains(t, err, "out of order")
			requireBreak(t, c.seq, err)
		}
	}
}
