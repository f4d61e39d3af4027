package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"orchestrator/supervisor/eventlog"
)

// A row is an entry in the form that the server stores.
type row struct {
	n    int64
	id   []byte // of the attempt to add it
	text []byte
}

// Put implements eventlog.Engine.
func (e *Engine) Put(at int64, entry eventlog.Entry) (int64, error) {
	r := row{n: at + 1, id: make([]byte, 16), text: entry.Append(nil)}
	_, _ = rand.Read(r.id) // it never fails
	limit := putPatience
	for wait := pause; ; wait = min(2*wait, longestWait) {
		stored, err := e.insert(r, limit)
		if err == nil && !stored {
			stored, err = e.ours(r, limit)
		}
		switch {
		case stored:
			e.put.Store(r.n)
			return r.n, nil
		case err != nil && !errors.Is(err, eventlog.ErrUnanswered):
			return 0, err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			limit = min(2*limit, longestPut)
		}
		if err := e.rest(context.Background(), wait); err != nil {
			return 0, err
		}
	}
}

// insert adds a row if the log ends before it. It returns false if the server has not, and if it warns: then
// the row may be there without being as durable as it must be.
func (e *Engine) insert(r row, limit time.Duration) (stored bool, err error) {
	err = e.ask(context.Background(), "to add an entry", limit, func(ctx context.Context, c *pgxpool.Conn) error {
		marks := c.Conn().PgConn().CustomData()
		delete(marks, warned)
		done, err := c.Exec(ctx, `INSERT INTO orchestrator_entries (log, n, id, entry) SELECT $1, $2, $3, $4
			WHERE (SELECT coalesce(max(n), 0) FROM orchestrator_entries WHERE log = $1) = $2::bigint - 1`, e.options.Log, r.n, r.id, r.text)
		if codeOf(err) == uniqueViolation {
			return nil // another row has come first
		}
		stored = err == nil && done.RowsAffected() == 1 && marks[warned] == nil
		return err
	})
	return stored, err
}

// uniqueViolation is the code of a refusal because the primary key exists.
const uniqueViolation = "23505"

// ours reports whether a row that was not added is stored already, from an attempt that lost its answer. It returns
// ErrBehind if another row has its place. The message in the server's own log is committed after the row, and waits for
// the disk, and for a replica if the server has one.
func (e *Engine) ours(r row, limit time.Duration) (bool, error) {
	var holder []byte
	var end int64
	err := e.ask(context.Background(), "which entry is there", limit, func(ctx context.Context, c *pgxpool.Conn) error {
		var written *string
		return c.QueryRow(ctx, `SELECT ends.n, there.id, there.written
			FROM (SELECT coalesce(max(n), 0) AS n FROM orchestrator_entries WHERE log = $1) AS ends
			LEFT JOIN LATERAL (SELECT id, pg_logical_emit_message(true, 'orchestrator', ''::text)::text AS written
				FROM orchestrator_entries WHERE log = $1 AND n = $2) AS there ON true`, e.options.Log, r.n).Scan(&end, &holder, &written)
	})
	switch {
	case err != nil:
		return false, err
	case bytes.Equal(holder, r.id):
		return true, nil
	case holder != nil:
		return false, eventlog.ErrBehind
	case end < r.n-1:
		return false, fmt.Errorf("the shared log ends at entry %d, and entry %d was read from it", end, r.n-1)
	}
	return false, nil
}
