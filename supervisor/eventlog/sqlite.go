package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"orchestrator/wire"
)

// Options select the file of a log and its durability.
type Options struct {
	Path string // the file; SQLite creates -wal and -shm beside it

	// Durable makes Append wait until the batch is on the disk. Without it, a power failure may
	// lose the newest batches, but a crash of the process does not. The log stays intact either
	// way.
	Durable bool

	// ReadOnly opens an existing log, even a broken one, without changing it.
	ReadOnly bool

	// VFS is the name under which package vfs of the SQLite library knows a file system. It is the
	// operating system's if it is empty. A simulation uses one that fails.
	VFS string

	library library                // nil: ncruces, on VFS
	sync    func(dir string) error // nil: syncFolder
}

// SQLite is a log in a file. It has one connection for appending and one for reading, each with
// its own lock.
type SQLite struct {
	path  string
	files map[string]os.FileInfo // the files that were opened; nil when reading only
	tip   *tip                   // nil unless the log is durable

	last atomic.Int64 // the newest fact of the appends that have returned

	keeping   sync.Mutex // held by Keep, because its parts are several transactions
	appending sync.Mutex
	writer    connection // nil when reading only
	begin     statement
	insert    statement
	taker     statement
	commit    statement
	rollback  statement
	sum       uint32 // of the newest fact
	chain     chain
	at        []byte    // reused: a time as text
	args      [11]value // reused: a row

	reading  sync.Mutex
	reader   connection
	events   statement
	sumOf    statement
	end      statement
	keyed    statement
	checking chain

	mail, mailBack       statement
	letters, lettersBack statement // nil in a file of version 1
	addressed            statement
	archive, archived    statement // nil in a file of version 1 or 2, which has no archived tasks
	refs, base           statement // nil in a file of an older version

	open []statement // all that are to be closed

	fate sync.Mutex // locked after the other mutexes
	over error      // the error of every further append, or nil
}

// Last returns the number of the newest fact: the last one appended, or the last one found when the log was opened. It
// returns 0 for an empty log.
func (l *SQLite) Last() int64 { return l.last.Load() }

// Append implements Log.
func (l *SQLite) Append(ctx context.Context, last int64, batch []wire.Record) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.mayWrite(ctx); err != nil {
		return err
	}
	if end := l.last.Load(); end != last {
		return moved(end, last)
	}
	if err := examine(last, batch); err != nil || len(batch) == 0 {
		return err
	}
	err := l.transact("appending", func() error { return l.put(last, batch) }, func() {
		l.last.Store(last + int64(len(batch)))
		l.tip.put(l.last.Load(), l.sum)
	})
	if errors.Is(err, ErrMoved) {
		return l.catchUp(ctx, err)
	}
	return err
}

// catchUp reads the appends of another process, so that the next Append can use the right end. cause is the error that
// revealed it.
func (l *SQLite) catchUp(ctx context.Context, cause error) error {
	end, err := l.newest()
	if err == nil {
		l.sum, err = l.verify(ctx, l.last.Load(), end)
	}
	if err != nil {
		return l.fail("reading what another process appended", err)
	}
	l.last.Store(end)
	return cause
}

// mayWrite returns an error if writing is not possible.
func (l *SQLite) mayWrite(ctx context.Context) error {
	l.fate.Lock()
	defer l.fate.Unlock()
	if l.over != nil {
		return l.over
	}
	return ctx.Err()
}

// fail makes every further append fail. The first reason is kept.
func (l *SQLite) fail(doing string, cause error) error {
	l.fate.Lock()
	defer l.fate.Unlock()
	if l.over == nil {
		l.over = fmt.Errorf("%w: %s: %w", ErrBroken, doing, cause)
	}
	return l.over
}

// transact calls write in a transaction, and calls kept when that is durable. If write returns ErrTaken or ErrMoved,
// the transaction is rolled back. Any other failure breaks the log, including a panic, because SQLite in Go reports a
// lack of memory by panicking. ErrBusy does not break it, because no write was tried.
func (l *SQLite) transact(doing string, write func() error, kept func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = l.fail(doing, fmt.Errorf("panic: %v", p))
		}
	}()
	if err := l.begin.run(nil); err != nil {
		if codeOf(err)&0xff == codeBusy {
			return fmt.Errorf("%s: %w: %w", doing, ErrBusy, err)
		}
		return l.fail(doing, err)
	}
	sum := l.sum
	if err = write(); err == nil {
		err = l.commit.run(nil)
	}
	if err == nil {
		kept()
		return nil
	}
	l.sum = sum
	undone := l.rollback.run(nil)
	if codeOf(undone)&0xff == codeError {
		undone = nil // SQLite has undone it already
	}
	if refusal := errors.Is(err, ErrTaken) || errors.Is(err, ErrMoved); refusal && undone == nil {
		return err
	}
	return l.fail(doing, l.why(errors.Join(err, undone)))
}

// put writes the rows of a batch and moves the chain on.
func (l *SQLite) put(last int64, batch []wire.Record) error {
	for i := range batch {
		if err := l.row(last+int64(i)+1, batch[i]); err != nil {
			switch codeOf(err) {
			case codeUnique:
				return l.whoHas(last, i, &batch[i], err)
			case codePrimaryKey, codeRowID:
				return fmt.Errorf("%w: fact %d is there already", ErrMoved, last+int64(i)+1)
			}
			return err
		}
	}
	return nil
}

// row writes one fact.
func (l *SQLite) row(seq int64, r wire.Record) error {
	r.Seq = seq
	l.at = appendAt(l.at[:0], r.At)
	sum := l.chain.next(l.sum, l.at, &r)
	a := &l.args
	a[0] = ofInt(seq)
	a[1] = value{kind: bytesText, bytes: l.at}
	a[2] = ofText(r.From)
	a[3] = textOrNull(r.To)
	a[4] = textOrNull(r.Topic)
	a[5] = ofText(r.Kind)
	a[6] = value{}
	if len(r.Payload) > 0 {
		a[6] = value{kind: bytesText, bytes: r.Payload}
	}
	a[7] = orNull(r.ReplyTo)
	a[8] = textOrNull(r.Key)
	a[9] = textOrNull(r.Correlation)
	a[10] = ofInt(int64(sum))
	if err := l.insert.run(a[:]); err != nil {
		return err
	}
	l.sum = sum
	return nil
}

// whoHas finds the fact that has the key of the fact at index i.
func (l *SQLite) whoHas(last int64, i int, r *wire.Record, cause error) error {
	seq, found, err := firstInt(l.taker, ofText(r.From), ofText(r.Key))
	switch {
	case err != nil:
		return err
	case !found:
		return cause
	case seq > last:
		seq = 0
	}
	return &TakenError{Index: i, From: r.From, Key: r.Key, Seq: seq}
}

// Close closes the log. Everything appended is stored already, so an error of Close loses no
// data.
func (l *SQLite) Close() error {
	l.appending.Lock()
	defer l.appending.Unlock()
	l.reading.Lock()
	defer l.reading.Unlock()
	l.fate.Lock()
	inOrder := l.over == nil
	l.over = fs.ErrClosed
	l.fate.Unlock()
	if inOrder {
		// A copy that is put in the place of the database must not meet pages of another one. After
		// an error the write-ahead log keeps them, as after a crash.
		_ = l.writer.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return l.release()
}

// release closes the connections. The writer is last, so that it can keep the write-ahead log.
func (l *SQLite) release() error {
	var all []error
	for _, s := range l.open {
		all = append(all, s.close())
	}
	for _, c := range []connection{l.reader, l.writer} {
		if c != nil {
			all = append(all, c.close())
		}
	}
	all = append(all, l.tip.close())
	l.open, l.reader, l.writer, l.tip = nil, nil, nil, nil
	return errors.Join(all...)
}
