package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"orchestrator/supervisor/eventlog"
)

// batchEntries and batchBytes are how much is asked for at once.
const (
	batchEntries = 256
	batchBytes   = 8 << 20
)

// End implements eventlog.Engine.
func (e *Engine) End(ctx context.Context) (end int64, err error) {
	err = e.ask(ctx, "where the shared log ends", patience, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, `SELECT coalesce(max(n), 0) FROM orchestrator_entries WHERE log = $1`, e.options.Log).Scan(&end)
	})
	return end, err
}

// First implements eventlog.Engine.
func (e *Engine) First(ctx context.Context, n int64) (int64, error) {
	var text []byte
	err := e.ask(ctx, "for an entry", patience, func(ctx context.Context, c *pgxpool.Conn) error {
		err := c.QueryRow(ctx, `SELECT entry FROM orchestrator_entries WHERE log = $1 AND n = $2`, e.options.Log, n).Scan(&text)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case text == nil:
		return 0, fmt.Errorf("the shared log has no entry %d", n)
	}
	entry, err := eventlog.ReadEntry(text)
	if err != nil {
		return 0, fmt.Errorf("entry %d of the shared log: %w", n, err)
	}
	return entry.First, nil
}

// Get implements eventlog.Engine.
func (e *Engine) Get(ctx context.Context, at int64, see func(int64, eventlog.Entry) error) error {
	end, err := e.End(ctx)
	for err == nil && at < end {
		at, err = e.batch(ctx, at, see)
	}
	return err
}

// batch calls see for some entries after entry at, and returns the last of them. The server has the patience
// of a question for each entry. The time that see takes does not count.
func (e *Engine) batch(ctx context.Context, at int64, see func(int64, eventlog.Entry) error) (int64, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.closed, cancel)()
	limit := time.AfterFunc(patience, cancel)
	defer limit.Stop()
	rows, err := e.pool.Query(asking, `SELECT n, entry FROM (
			SELECT n, entry, sum(octet_length(entry)) OVER (ORDER BY n) AS size FROM (
				SELECT n, entry FROM orchestrator_entries WHERE log = $1 AND n > $2 ORDER BY n LIMIT $3) AS first) AS sized
		WHERE size <= $4 OR n = $2 + 1 ORDER BY n`, e.options.Log, at, batchEntries, batchBytes)
	if err != nil {
		return at, e.judge(ctx, "for entries", err)
	}
	defer rows.Close()
	before := at
	for rows.Next() {
		limit.Stop()
		if err := e.pass(rows, at, see); err != nil {
			limit.Reset(patience) // for the rest of the answer, which Close reads
			return at, err
		}
		at++
		limit.Reset(patience)
	}
	if err := e.judge(ctx, "for entries", rows.Err()); err != nil {
		return at, err
	}
	if at == before {
		return at, fmt.Errorf("the shared log has lost entry %d", at+1)
	}
	return at, nil
}

// pass passes the entry after entry at on to see.
func (e *Engine) pass(rows pgx.Rows, at int64, see func(int64, eventlog.Entry) error) error {
	var n int64
	var text pgtype.DriverBytes // which is valid until the next row
	if err := rows.Scan(&n, &text); err != nil {
		return fmt.Errorf("reading an entry: %w", err)
	}
	if n != at+1 {
		return fmt.Errorf("the shared log has lost entry %d: entry %d follows entry %d", at+1, n, at)
	}
	entry, err := eventlog.ReadEntry(text)
	if err != nil {
		return fmt.Errorf("entry %d of the shared log: %w", n, err)
	}
	if e.closed.Err() != nil {
		return fs.ErrClosed
	}
	return see(n, entry)
}
