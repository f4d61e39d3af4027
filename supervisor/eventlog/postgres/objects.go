package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"orchestrator/supervisor/eventlog"
)

var _ eventlog.Objects = (*Engine)(nil)

// PutObject implements eventlog.Objects.
func (e *Engine) PutObject(ctx context.Context, hash string, content []byte) error {
	limit := openPatience
	for wait := pause; ; wait = min(2*wait, longestWait) {
		stored := false
		err := e.ask(ctx, "to store an object", limit, func(ctx context.Context, c *pgxpool.Conn) (err error) {
			stored, err = e.insertObject(ctx, c, hash, content)
			return err
		})
		if stored || err != nil && !errors.Is(err, eventlog.ErrUnanswered) {
			return err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			limit = min(2*limit, longestPut)
		}
		if err := e.rest(ctx, wait); err != nil {
			return err
		}
	}
}

// insertObject adds a row unless it exists. It returns false if the server warns: then the row may exist without being
// as durable as it must be. A row from before may be in the same state, so a message in the server's own log is
// committed after it: see ours.
func (e *Engine) insertObject(ctx context.Context, c *pgxpool.Conn, hash string, content []byte) (stored bool, err error) {
	marks := c.Conn().PgConn().CustomData()
	delete(marks, warned)
	done, err := c.Exec(ctx, `INSERT INTO orchestrator_objects (log, hash, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, e.options.Log, hash, content)
	if err == nil && done.RowsAffected() == 0 {
		_, err = c.Exec(ctx, `SELECT pg_logical_emit_message(true, 'orchestrator', ''::text)`)
	}
	return err == nil && marks[warned] == nil, err
}

// GetObject implements eventlog.Objects.
func (e *Engine) GetObject(ctx context.Context, hash string) (content []byte, err error) {
	limit := openPatience
	for wait := pause; ; wait = min(2*wait, longestWait) {
		there := true
		err := e.ask(ctx, "for an object", limit, func(ctx context.Context, c *pgxpool.Conn) error {
			err := c.QueryRow(ctx, `SELECT content FROM orchestrator_objects WHERE log = $1 AND hash = $2`, e.options.Log, hash).Scan(&content)
			if errors.Is(err, pgx.ErrNoRows) {
				there = false
				return nil
			}
			return err
		})
		switch {
		case err == nil && !there:
			return nil, fmt.Errorf("the shared log has no object %s: %w", hash, fs.ErrNotExist)
		case !errors.Is(err, eventlog.ErrUnanswered):
			return content, err
		case errors.Is(err, context.DeadlineExceeded):
			limit = min(2*limit, longestPut)
		}
		if err := e.rest(ctx, wait); err != nil {
			return nil, err
		}
	}
}
