package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestPlans checks that no query makes SQLite sort or scan the table, and that a query of an
// index reads no row.
func TestPlans(t *testing.T) {
	const (
		mailbox = "SEARCH events USING INDEX mail (actor_to=? AND seq>? AND seq<?)"
		letters = "SEARCH events USING INDEX letters (seq>? AND seq<?)"
	)
	path := closedLog(t, 10)
	for name, library := range map[string]library{"ncruces": ncruces, "modernc": modernc} {
		c, err := library(path, true)
		require.NoError(t, err)
		for _, q := range []struct{ sql, plan string }{
			{selectMail, mailbox},
			{selectMailBack, mailbox},
			{selectLetters, letters},
			{selectLettersBack, letters},
			{selectAddressee, "SEARCH events USING INDEX mail (actor_to>?)"},
			{selectTaker, "SEARCH events USING COVERING INDEX once (actor_from=? AND idempotency_key=?)"},
			{selectSum, "SEARCH events USING INTEGER PRIMARY KEY (rowid=?)"},
			{selectEvents, "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		} {
			var steps []string
			explain(t, c, "EXPLAIN QUERY PLAN "+q.sql, func(row statement) { steps = append(steps, string(row.text(3))) })
			require.Equal(t, []string{q.plan}, steps, "%s: %s", name, q.sql)
			if strings.Contains(q.plan, "PRIMARY KEY") {
				continue
			}
			explain(t, c, "EXPLAIN "+q.sql, func(row statement) {
				const table = 0 // the first cursor
				reads := string(row.text(1)) == "Column" && row.integer(2) == table
				require.False(t, reads, "%s: %s", name, q.sql)
			})
		}
		require.NoError(t, c.close())
	}
}

// explain shows the plan of SQLite, step by step.
func explain(t *testing.T, c connection, sql string, see func(row statement)) {
	stmt, err := c.prepare(sql)
	require.NoError(t, err)
	var args []value
	for n := int64(1); strings.Contains(sql, fmt.Sprint("?", n)); n++ {
		args = append(args, ofInt(n))
	}
	require.NoError(t, stmt.query(args))
	for {
		more, err := stmt.next()
		require.NoError(t, err)
		if !more {
			break
		}
		see(stmt)
	}
	require.NoError(t, errors.Join(stmt.done(), stmt.close()))
}

// mailLog makes a log of n facts, one in three of them mail to one of five agents. It returns
// its file and its facts.
func mailLog(t *testing.T, n int) (path string, kept []wire.Record) {
	path = filepath.Join(t.TempDir(), "events.db")
	l, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	batch := facts(0, n)
	for i := 2; i < n; i += 3 {
		batch[i] = letter(i+1, fmt.Sprint("agent-", i%5))
		batch[i].Key = fmt.Sprint(i + 1)
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	require.NoError(t, l.Close())
	return path, numbered(0, batch)
}

// counting is a statement that counts its rows.
type counting struct {
	statement
	rows int
}

func (c *counting) next() (bool, error) {
	more, err := c.statement.next()
	if more {
		c.rows++
	}
	return more, err
}

// TestFindLittle checks that finding one letter reads one row and a few numbers, and that SQLite
// plans no query twice.
func TestFindLittle(t *testing.T) {
	path, kept := mailLog(t, 9000)
	l := mustOpen(t, Options{Path: path})
	rows := &counting{statement: l.events}
	l.events = rows
	for at, s := range map[*statement]wire.Search{
		&l.mail:        {To: []string{"agent-1"}},
		&l.mailBack:    {To: []string{"agent-1"}, Backward: true},
		&l.letters:     {},
		&l.lettersBack: {Backward: true},
	} {
		planned := (*at).(ncrucesStmt)
		numbers := &counting{statement: *at}
		*at, rows.rows = numbers, 0
		for s.After = range int64(5) {
			for r, err := range l.Find(t.Context(), s) {
				require.NoError(t, err)
				require.Equal(t, sift(kept, s)[0], r)
				break
			}
		}
		require.Equal(t, 5, rows.rows)
		require.Equal(t, 5*firstNumbers, numbers.rows)
		require.Zero(t, planned.Status(sqlite3.STMTSTATUS_REPREPARE, false))
	}
}

// hooked is a statement with a hook before or after it.
type hooked struct {
	statement
	before, after func()
}

func (h hooked) run(args []value) error {
	if h.before != nil {
		h.before()
	}
	err := h.statement.run(args)
	if h.after != nil {
		h.after()
	}
	return err
}

// TestFindNothingEarly checks that no search finds a fact before its append has returned.
func TestFindNothingEarly(t *testing.T) {
	l := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "events.db")})
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{letter(1, "a")}))
	asked := 0
	l.commit = hooked{statement: l.commit, after: func() {
		end, err := l.newest()
		require.NoError(t, err)
		require.Equal(t, int64(3), end, "it is in the file")
		for _, s := range []wire.Search{{}, {Backward: true}, {To: []string{"a"}}, {To: []string{"a"}, Backward: true}, {Until: 3}} {
			require.Equal(t, []int64{1}, seqs(found(t, l, s)), "%+v", s)
		}
		require.Empty(t, found(t, l, wire.Search{From: "sender", Key: "k"}))
		asked++
	}}
	last := letter(3, "a")
	last.From, last.Key = "sender", "k"
	require.NoError(t, l.Append(t.Context(), 1, []wire.Record{letter(2, "a"), last}))
	require.Equal(t, 1, asked)
	require.Equal(t, []int64{3, 2, 1}, seqs(found(t, l, wire.Search{Backward: true})))
	require.Len(t, found(t, l, wire.Search{From: "sender", Key: "k"}), 1)
}

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

// failing is a statement with rows that SQLite cannot read.
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

// TestIndexOutOfOrder checks that numbers out of order end a search. Otherwise it could last
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
