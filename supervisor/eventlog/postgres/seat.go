package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"orchestrator/supervisor/eventlog"
)

// Intervals of the seat. A hub raises its beat every beatEvery. It counts as silent when its beat has not moved
// for silence. A seat is vacant when it was free for freeFor. A beat may take beatPatience, so that a server that
// is slow for a moment does not end the session of a hub.
const (
	beatEvery    = 500 * time.Millisecond
	beatPatience = 5 * time.Second
	silence      = time.Second
	freeFor      = 150 * time.Millisecond
	lockAgain    = 50 * time.Millisecond // after the loss of a session
)

// held is a condition on a row of orchestrator_logs: its hub holds the session lock $2.
const held = `(l.server = pg_postmaster_start_time() AND EXISTS (
	SELECT FROM pg_locks AS k WHERE k.pid = l.pid AND k.locktype = 'advisory' AND k.granted AND k.objsubid = 1
	AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND (k.classid::bigint << 32 | k.objid::bigint) = $2::bigint))`

// A seatView remembers the observations of an engine about the seat. It measures time by the clock of this machine
// only.
type seatView struct {
	mu    sync.Mutex
	beat  int64
	moved time.Time // when the beat was found to have moved
	end   int64     // the last entry
	free  time.Time // since when the seat is free and no entry has come; zero: it is not
}

// Ask implements eventlog.Engine.
func (e *Engine) Ask(ctx context.Context) ([]byte, error) {
	var row seatRow
	err := e.ask(ctx, "which hub is at work", patience, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, `SELECT l.beat, l.who, l.hub IS NOT NULL AND `+held+`,
				l.hub IS NOT NULL AND l.server <> pg_postmaster_start_time(),
				(SELECT coalesce(max(n), 0) FROM orchestrator_entries WHERE log = $1)
			FROM orchestrator_logs AS l WHERE log = $1`, e.options.Log, e.lock).Scan(&row.beat, &row.who, &row.held, &row.restarted, &row.end)
	})
	if err != nil {
		return nil, err
	}
	return e.seen.answer(row, time.Now())
}

// A seatRow is the state of the seat at one time, from the tables of the server.
type seatRow struct {
	beat      int64
	who       []byte
	held      bool  // the hub holds the lock
	restarted bool  // the server was started again since it did
	end       int64 // the last entry of the log
}

// answer compares a row with the rows that were read before it, and returns the answer of Ask.
func (s *seatView) answer(row seatRow, now time.Time) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved.IsZero() || row.beat != s.beat {
		s.beat, s.moved = row.beat, now
	}
	if row.held || row.restarted || row.end != s.end {
		s.free = time.Time{}
	}
	s.end = row.end
	switch {
	case row.held && now.Sub(s.moved) < silence:
		return row.who, nil
	case row.held || row.restarted:
		return nil, eventlog.ErrSilent
	case row.end == 0: // no hub has ever taken its turn
		return nil, eventlog.ErrVacant
	case s.free.IsZero():
		s.free = now
	case now.Sub(s.free) >= freeFor:
		return nil, eventlog.ErrVacant
	}
	return nil, eventlog.ErrSilent
}

// A seat is the background work of a hub that serves.
type seat struct {
	engine *Engine
	who    []byte
	at     int64         // the entry that began the turn of the hub
	conn   *pgxpool.Conn // the session that holds the lock; nil without one
}

// Serve implements eventlog.Engine. It does not wait for the server longer than for one question, and goes on
// in the background.
func (e *Engine) Serve(who []byte) (end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Err() != nil {
		return nil, fs.ErrClosed
	}
	s := &seat{engine: e, who: bytes.Clone(who), at: e.put.Load()}
	serving, stop := context.WithCancel(e.closed)
	s.beat(serving, patience)
	over := make(chan struct{})
	e.seats.Go(func() {
		defer close(over)
		s.keep(serving)
	})
	return func() {
		stop()
		<-over
	}, nil
}

// keep raises the beat until ctx ends. It opens another session when one is lost.
func (s *seat) keep(ctx context.Context) {
	defer s.leave()
	for {
		s.wait(ctx)
		if ctx.Err() != nil {
			return
		}
		s.beat(ctx, beatPatience)
	}
}

// wait waits until the next beat is due, or until the session ends.
func (s *seat) wait(ctx context.Context) {
	if s.conn == nil {
		_ = s.engine.rest(ctx, lockAgain)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	for ctx.Err() == nil && s.conn != nil {
		_, _ = s.conn.Conn().WaitForNotification(ctx) // no notification comes: it ends with ctx or with the session
		if s.conn.Conn().IsClosed() {
			s.drop()
		}
	}
}

// beat raises the beat. It opens a session before if the hub has none.
func (s *seat) beat(ctx context.Context, limit time.Duration) {
	err := s.engine.within(ctx, limit, func(ctx context.Context) error {
		if s.conn == nil {
			if err := s.takeLock(ctx); err != nil {
				return err
			}
		}
		_, err := s.conn.Exec(ctx, `UPDATE orchestrator_logs AS l
			SET beat = beat + 1, hub = $3, who = $4, at = $5, pid = pg_backend_pid(), server = pg_postmaster_start_time()
			WHERE log = $1 AND (hub IS NULL OR hub = $3 OR at < $5 OR NOT `+held+`)`,
			s.engine.options.Log, s.engine.lock, s.engine.id, s.who, s.at)
		return err
	})
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		s.engine.options.Logger.Debug("the hub at work has lost its seat", "error", err)
	}
	s.drop()
}

// takeLock opens a session that holds the lock. The session writes only hints, so it need not wait for the disk.
func (s *seat) takeLock(ctx context.Context) error {
	conn, err := s.engine.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	var got bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock_shared($1) FROM set_config('synchronous_commit', 'off', false)`, s.engine.lock).Scan(&got)
	if err == nil && !got {
		err = fmt.Errorf("another program holds the session lock %d", s.engine.lock)
	}
	return err
}

// drop ends the session.
func (s *seat) drop() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.conn.Conn().Close(ctx)
	s.conn.Release()
	s.conn = nil
}

// leave removes the hub from the row of the log and ends the session.
func (s *seat) leave() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = s.conn.Exec(ctx, `UPDATE orchestrator_logs SET beat = beat + 1, hub = NULL, who = NULL WHERE log = $1 AND hub = $2`,
		s.engine.options.Log, s.engine.id)
	s.drop()
}
