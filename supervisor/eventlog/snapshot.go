package eventlog

import (
	"context"
	"fmt"
	"io/fs"
	"math"
)

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

// load returns a state, and reports whether all its parts are there and intact.
func (l *SQLite) load(seq int64) (state []byte, intact bool, err error) {
	start, found, err := firstInt(l.sumOf, ofInt(seq))
	if err != nil || !found {
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
	state, size, sum := []byte{}, partBytes, uint32(start)
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

// Keep implements Log. It is one transaction and waits for running appends, so a large state
// delays the next batch.
func (l *SQLite) Keep(ctx context.Context, seq int64, state []byte) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.mayWrite(ctx); err != nil {
		return err
	}
	if last := l.last.Load(); seq < 1 || seq > last {
		return outside(seq, last)
	}
	return l.transact("keeping a state", func() error { return l.store(seq, state) }, func() {})
}

// store writes the parts of a state, replacing a state with the same number.
func (l *SQLite) store(seq int64, state []byte) error {
	start, err := ask(l.writer, selectSum, ofInt(seq))
	if err != nil {
		return err
	}
	if _, err := ask(l.writer, forgetState, ofInt(seq)); err != nil {
		return err
	}
	put, err := l.writer.prepare(insertPart)
	if err != nil {
		return err
	}
	defer put.close()
	sum, size := uint32(start), partBytes
	for part := int64(0); size == partBytes; part++ {
		size = min(len(state), partBytes)
		sum = follow(sum, state[:size])
		if err := put.run([]value{ofInt(seq), ofInt(part), {kind: blob, bytes: state[:size]}, ofInt(int64(sum))}); err != nil {
			return err
		}
		state = state[size:]
	}
	return l.writer.exec(forgetStates)
}
