package eventlog

import (
	"errors"
	"fmt"
	"path/filepath"
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
