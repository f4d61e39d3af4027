package eventlog

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"

	"orchestrator/wire"
)

// A page ends after this many rows or bytes, whichever comes first. It limits the memory used
// at once, and how long the reading connection is busy.
const (
	pageRows  = 512
	pageBytes = 1 << 20
)

// Records implements Log.
func (l *SQLite) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		err := l.each(ctx, max(after, 0), func(r wire.Record) bool { return yield(r, nil) })
		if err != nil {
			yield(wire.Record{}, err)
		}
	}
}

// each calls show for the facts after number after, until show returns false.
func (l *SQLite) each(ctx context.Context, after int64, show func(wire.Record) bool) error {
	end, err := l.visible()
	if err != nil || after >= end {
		return err
	}
	_, err = l.read(ctx, after, end, show)
	return err
}

// visible returns the last fact to show: the last one of the Appends that have returned. A log opened for reading shows
// everything in the file.
func (l *SQLite) visible() (int64, error) {
	l.reading.Lock()
	alone := l.writer != nil
	l.reading.Unlock()
	if alone {
		return l.last.Load(), nil
	}
	end, err := l.newest()
	if err == nil {
		l.last.Store(end)
	}
	return end, err
}

// read calls show for the facts after number after, up to end, until show returns false. It
// returns the sum of the last fact read.
func (l *SQLite) read(ctx context.Context, after, end int64, show func(wire.Record) bool) (uint32, error) {
	p := &page{after: after, end: end, names: make(map[string]string)}
	err := l.locate(p)
	for err == nil && p.after < p.end {
		if err = ctx.Err(); err != nil {
			break
		}
		if err = l.fill(p); err != nil {
			err = l.removedSince(p.after, err)
		}
		for _, r := range p.facts {
			if !show(r) {
				return p.sum, nil
			}
		}
	}
	return p.sum, err
}

// locate sets the sum where the page begins.
func (l *SQLite) locate(p *page) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return fs.ErrClosed
	}
	sum, found, base, err := l.sumAt(p.after)
	switch {
	case damaged(err):
		return &ChainError{Seq: p.after, What: "it cannot be read", Cause: err}
	case err != nil:
		return fmt.Errorf("reading fact %d: %w", p.after, err)
	case !found && p.after < base.Seq:
		return &wire.RemovedError{Base: base}
	case !found:
		return &ChainError{Seq: p.after, What: "it is missing"}
	}
	p.sum = sum
	return nil
}

// sumAt returns the checksum of a fact, which may be the last one that was removed. The sum of
// fact 0 is 0. If it is not found, sumAt returns the base. l.reading must be held.
func (l *SQLite) sumAt(seq int64) (sum uint32, found bool, base wire.Base, err error) {
	if seq > 0 {
		kept, found, err := firstInt(l.sumOf, ofInt(seq))
		if err != nil || found {
			return uint32(kept), found, base, err
		}
	}
	f, err := frontOf(l.base)
	return f.sum, err == nil && seq == f.Seq, f.Base, err
}

// newest reads the number of the last fact from the file.
func (l *SQLite) newest() (int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, fs.ErrClosed
	}
	end, _, err := firstInt(l.end)
	if damaged(err) {
		return 0, &ChainError{Seq: 1, What: "the end of the log cannot be found", Cause: err}
	}
	return end, err
}

// fill reads the next page. After an error the page has the facts read before it.
func (l *SQLite) fill(p *page) error {
	p.facts = p.facts[:0]
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return fs.ErrClosed
	}
	if err := l.events.query([]value{ofInt(p.after), ofInt(p.end), ofInt(pageRows)}); err != nil {
		return p.failed(err)
	}
	err := p.read(l.events, &l.checking)
	if doneErr := l.events.done(); err == nil && doneErr != nil {
		err = p.failed(doneErr)
	}
	return err
}

// verify reads the facts after number after, up to end, and returns the sum of the last one.
func (l *SQLite) verify(ctx context.Context, after, end int64) (uint32, error) {
	return l.read(ctx, after, end, func(wire.Record) bool { return true })
}

// partBytes is the size of every part of a state except the last. As one value, a large state
// would need several times its size in the memory of SQLite, which is never released.
const partBytes = 1 << 20

// Snapshot implements Log. It returns the newest state that continues the chain.
func (l *SQLite) Snapshot(ctx context.Context) (seq int64, state []byte, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, nil, fs.ErrClosed
	}
	for before := int64(math.MaxInt64); ; before = seq {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		intact := false
		seq, err = ask(l.reader, selectBefore, ofInt(before))
		if err == nil && seq > 0 {
			state, intact, err = l.load(seq)
		}
		switch {
		case intact:
			return seq, state, nil
		case err != nil && !damaged(err):
			return 0, nil, fmt.Errorf("reading a state: %w", err)
		case seq == 0:
			return 0, nil, nil
		}
	}
}

// load returns a state, and reports whether all its parts are stored and intact.
func (l *SQLite) load(seq int64) (state []byte, intact bool, err error) {
	start, found, _, err := l.sumAt(seq)
	if err != nil || !found {
		return nil, false, err
	}
	count, err := ask(l.reader, countParts, ofInt(seq))
	if err != nil {
		return nil, false, err
	}
	parts, err := l.reader.prepare(selectParts)
	if err != nil {
		return nil, false, err
	}
	defer parts.close()
	if err := parts.query([]value{ofInt(seq)}); err != nil {
		return nil, false, err
	}
	state, size, sum := make([]byte, 0, count*partBytes), partBytes, start // growing copies, and touches fresh memory again
	for part := int64(0); ; part++ {
		more, err := parts.next()
		if err != nil || !more {
			return state, size < partBytes, err // the last part is short
		}
		body := parts.text(1)
		sum = follow(sum, body)
		if size < partBytes || parts.integer(0) != part || parts.integer(2) != int64(sum) {
			return nil, false, nil
		}
		size = len(body)
		state = append(state, body...)
	}
}

// Keep implements Log. Each part is a transaction, so a large state delays a batch by one part only. A state without
// its last part is not used; the next Keep removes it.
func (l *SQLite) Keep(ctx context.Context, seq int64, state io.Reader) error {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	var sum uint32
	body := make([]byte, partBytes)
	for part := int64(0); ; part++ {
		n, err := io.ReadFull(state, body)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		if err == nil {
			err = l.keepPart(ctx, seq, part, &sum, body[:n])
		}
		if err != nil || n < partBytes {
			return err
		}
	}
}

// keepPart writes a part of a state, and moves its sum on. The first part replaces a state with
// the same number; the last, which is short, ends the third newest.
func (l *SQLite) keepPart(ctx context.Context, seq, part int64, sum *uint32, body []byte) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.mayWrite(ctx); err != nil {
		return err
	}
	if last := l.last.Load(); seq < 1 || seq > last {
		return outside(seq, last)
	}
	return l.transact("keeping a state", func() error {
		if part == 0 {
			start, err := ask(l.writer, selectSum, ofInt(seq))
			if err != nil {
				return err
			}
			*sum = uint32(start)
			if _, err := ask(l.writer, forgetState, ofInt(seq)); err != nil {
				return err
			}
			if err := l.writer.exec(forgetUnfinished); err != nil {
				return err
			}
		}
		put, err := l.writer.prepare(insertPart)
		if err != nil {
			return err
		}
		defer put.close()
		*sum = follow(*sum, body)
		if err := put.run([]value{ofInt(seq), ofInt(part), {kind: blob, bytes: body}, ofInt(int64(*sum))}); err != nil || len(body) == partBytes {
			return err
		}
		return l.writer.exec(forgetStates)
	}, func() {})
}
