package eventlog

import (
	"context"
	"fmt"
	"io/fs"
	"iter"

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

// visible returns the last fact to show: the last whose Append has returned. A log opened for
// reading shows everything in the file.
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
		err = l.fill(p)
		for _, r := range p.facts {
			if !show(r) {
				return p.sum, nil
			}
		}
	}
	return p.sum, err
}

// locate sets the sum at which the page begins.
func (l *SQLite) locate(p *page) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return fs.ErrClosed
	}
	if p.after == 0 {
		return nil
	}
	sum, found, err := firstInt(l.sumOf, ofInt(p.after))
	switch {
	case damaged(err):
		return &ChainError{Seq: p.after, What: "it cannot be read", Cause: err}
	case err != nil:
		return fmt.Errorf("reading fact %d: %w", p.after, err)
	case !found:
		return &ChainError{Seq: p.after, What: "it is missing"}
	}
	p.sum = uint32(sum)
	return nil
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
