package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"orchestrator/wire"
)

// trimRows is the number of facts that one call of Trim removes. An append that waits for it waits
// some milliseconds.
const trimRows = 256

// freedPages is the number of pages that one call of Trim returns to the file system. It is more
// than the removed facts had, so that the file shrinks to its content.
const freedPages = 256

const (
	selectBase  = `SELECT seq, crc, at, removed, began FROM base`
	replaceBase = `INSERT OR REPLACE INTO base (one, seq, crc, at, removed, began) VALUES (1, ?1, ?2, ?3, ?4, ?5)`
	removeFront = `DELETE FROM events WHERE seq <= ?1`
	selectOlder = `SELECT min(seq) FROM snapshots WHERE length(state) < 1048576 AND (SELECT count(*) FROM snapshots WHERE length(state) < 1048576) > 1`
	selectSize  = `SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`
)

// A front is the base of a log, and the sum that the first fact continues.
type front struct {
	wire.Base
	sum uint32
}

// frontOf reads the base. The statement is nil in a file of an older version, which has none.
func frontOf(base statement) (f front, err error) {
	if base == nil {
		return f, nil
	}
	valid := true
	_, err = first(base, nil, func(row statement) {
		f.Seq, f.sum = row.integer(0), uint32(row.integer(1))
		for i, at := range []*time.Time{&f.At, &f.Removed, &f.Began} {
			var ok bool
			*at, ok = parseAt(row.text(2 + i))
			valid = valid && ok
		}
	})
	if damaged(err) || err == nil && !valid {
		return f, &ChainError{Seq: 1, What: "the end of the removed part cannot be read", Cause: err}
	}
	return f, err
}

// Base implements Log.
func (l *SQLite) Base(ctx context.Context) (wire.Base, error) {
	f, err := l.lockedFront()
	return f.Base, errors.Join(ctx.Err(), err)
}

func (l *SQLite) lockedFront() (front, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return front{}, fs.ErrClosed
	}
	return frontOf(l.base)
}

// removedSince returns a *wire.RemovedError instead of an error that was found after fact number
// after, if the next fact was removed in the meantime.
func (l *SQLite) removedSince(after int64, err error) error {
	if _, broken := errors.AsType[*ChainError](err); !broken {
		return err
	}
	if f, frontErr := l.lockedFront(); frontErr == nil && f.Seq > after {
		return &wire.RemovedError{Base: f.Base}
	}
	return err
}

// isRemoved reports whether an error is a *wire.RemovedError.
func isRemoved(err error) bool {
	_, removed := errors.AsType[*wire.RemovedError](err)
	return removed
}

// Trim implements Log. It verifies the facts before it removes them, so that damage is reported
// and not removed. Removing them and moving the base is one transaction.
func (l *SQLite) Trim(ctx context.Context, upTo int64, at time.Time) (wire.Base, error) {
	f, err := l.lockedFront()
	if err != nil {
		return f.Base, err
	}
	older, err := l.number(selectOlder)
	if err != nil {
		return f.Base, err
	}
	next := front{Base: wire.Base{Seq: min(upTo, older, l.last.Load()-1, f.Seq+trimRows), Removed: at, Began: f.Began}}
	if next.Seq <= f.Seq {
		return f.Base, nil
	}
	next.sum, err = l.read(ctx, f.Seq, next.Seq, func(r wire.Record) bool {
		next.At = r.At
		if r.Seq == 1 {
			next.Began = r.At
		}
		return true
	})
	if err == nil {
		err = l.cut(ctx, next)
	}
	if err != nil {
		return f.Base, fmt.Errorf("removing facts %d to %d: %w", f.Seq+1, next.Seq, err)
	}
	return next.Base, nil
}

// number returns the number that a query finds.
func (l *SQLite) number(sql string) (int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, fs.ErrClosed
	}
	return ask(l.reader, sql)
}

// cut removes the facts up to a new front, and then returns free pages to the file system.
func (l *SQLite) cut(ctx context.Context, next front) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.mayWrite(ctx); err != nil {
		return err
	}
	err := l.transact("removing old facts", func() error {
		if _, err := ask(l.writer, removeFront, ofInt(next.Seq)); err != nil {
			return err
		}
		return setFront(l.writer, next)
	}, func() {})
	if err != nil {
		return err
	}
	return l.transact("freeing pages", func() error {
		return l.writer.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", freedPages))
	}, func() {})
}

// setFront writes the base.
func setFront(c connection, f front) error {
	text := func(at time.Time) value { return value{kind: bytesText, bytes: appendAt(nil, at)} }
	_, err := ask(c, replaceBase, ofInt(f.Seq), ofInt(int64(f.sum)), text(f.At), text(f.Removed), text(f.Began))
	return err
}

// Size implements Log.
func (l *SQLite) Size(context.Context) (int64, error) { return l.number(selectSize) }

// Base implements Log.
func (m *Memory) Base(ctx context.Context) (wire.Base, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.base, m.usable(ctx)
}

// Trim implements Log.
func (m *Memory) Trim(ctx context.Context, upTo int64, at time.Time) (wire.Base, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil || len(m.kept) < 2 {
		return m.base, err
	}
	end := min(upTo, m.kept[0].seq, m.last()-1, m.base.Seq+trimRows)
	if end <= m.base.Seq {
		return m.base, nil
	}
	if m.base.Seq == 0 {
		m.base.Began = m.facts[0].At
	}
	gone := m.facts[:end-m.base.Seq]
	for _, r := range gone {
		delete(m.taken, sender{from: r.From, key: r.Key})
		if r.Topic != "" && r.To != "" {
			m.dropLetter(r.To)
			m.dropLetter("")
		}
	}
	m.facts = append([]wire.Record(nil), m.facts[len(gone):]...)
	m.base.Seq, m.base.At, m.base.Removed = end, gone[len(gone)-1].At, at.UTC().Truncate(time.Millisecond)
	return m.base, nil
}

// dropLetter removes the first number of a mailbox.
func (m *Memory) dropLetter(to string) {
	if m.letters[to] = m.letters[to][1:]; len(m.letters[to]) == 0 {
		delete(m.letters, to)
	}
}

// Size implements Log.
func (m *Memory) Size(ctx context.Context) (size int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.facts {
		size += int64(len(m.facts[i].Payload))
	}
	return size, m.usable(ctx)
}
