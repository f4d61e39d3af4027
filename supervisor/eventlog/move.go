package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"orchestrator/wire"
)

// A record can be moved from the local log of one machine into a shared log, and back. Its facts keep their
// numbers, times and sums.
//
// While it is moved, each entry names the owner: the hub that has the facts which follow. No hub can append then. So a
// hub that stands by does not take its turn on a part of the record, and a move that was interrupted can go on. The
// last entry of a move has no facts and no owner. It is added once all entries were read back and compared. The entry
// that moves a record out has no facts, and an owner.

// An ElsewhereError reports that a hub has a record that is being moved into the shared log, or that was moved
// out of it. It is an ErrMoved.
type ElsewhereError struct {
	Owner string // the hub
	Last  int64  // the last fact in the shared log
	Out   bool   // it was moved out
}

func (e *ElsewhereError) Error() string {
	if e.Out {
		return fmt.Sprintf("the record was moved out of the shared log, to %s, after fact %d", e.Owner, e.Last)
	}
	return fmt.Sprintf("the record is being moved into the shared log by %s, and has come to fact %d", e.Owner, e.Last)
}

// Unwrap returns ErrMoved.
func (e *ElsewhereError) Unwrap() error { return ErrMoved }

// An OtherRecordError reports that a shared log has facts that the local log lacks.
type OtherRecordError struct {
	Last  int64     // the last fact of the shared log
	Began time.Time // the time of its first fact
	Same  bool      // the facts of the local log are the same
}

func (e *OtherRecordError) Error() string {
	if e.Same {
		return fmt.Sprintf("the shared log has facts up to %d, which the record here lacks", e.Last)
	}
	return fmt.Sprintf("the shared log is not empty: it has the %d facts of another record, which began at %s", e.Last, e.Began.Format(time.RFC3339))
}

// Elsewhere returns an *ElsewhereError if the record is being moved, or was moved out, as far as Follow has read.
func (s *Shared) Elsewhere() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elsewhere()
}

func (s *Shared) elsewhere() error {
	if a := s.assembly; a.owner != "" {
		return &ElsewhereError{Owner: a.owner, Last: s.Last(), Out: a.out}
	}
	return nil
}

// orElsewhere returns an *ElsewhereError in place of a *ShorterError, if the log is shorter because the record is
// being moved, or was moved out.
func (s *Shared) orElsewhere(ctx context.Context, err error) error {
	if _, shorter := errors.AsType[*ShorterError](err); !shorter {
		return err
	}
	end, failed := s.engine.End(ctx)
	if failed != nil || end == 0 {
		return errors.Join(err, failed)
	}
	last, failed := s.entries(ctx, end-1, 1)
	if failed != nil || last[0].Owner == "" {
		return errors.Join(err, failed)
	}
	e := last[0]
	away := &ElsewhereError{Owner: e.Owner, Last: e.First - 1, Out: e.Count == 0}
	if e.Part == e.Of {
		away.Last += int64(e.Count)
	}
	return away
}

// MoveOut reads the log to its end and makes this hub the owner of the record, so that no hub can append.
// Then the copy has the whole record.
func (s *Shared) MoveOut(ctx context.Context, owner string) error {
	defer closeWith(ctx, s.engine)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.mayWrite(ctx); err != nil {
			return err
		}
		if err := answered(ctx, func() error { return s.follow(ctx, nil) }); err != nil {
			return err
		}
		if a := s.assembly; a.owner == owner && a.out {
			return nil
		}
		if err := s.elsewhere(); err != nil {
			return err
		}
		at, err := s.engine.Put(s.at, Entry{First: s.Last() + 1, Part: 1, Of: 1, Before: s.lastSum(), Owner: owner})
		switch {
		case err == nil:
			s.at, s.assembly = at, assembly{owner: owner, out: true}
			return nil
		case !errors.Is(err, ErrBehind): // otherwise a hub at work has added an entry, and is deposed later
			return err
		}
	}
}

// answered calls ask again as long as the engine does not answer. If ctx ends before, the error wraps the error of ctx
// and ErrUnanswered.
func answered(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, ErrUnanswered) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// closeWith closes an engine when ctx ends, because a Put that waits for other hubs would not end. The
// returned function stops that.
func closeWith(ctx context.Context, engine Engine) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = engine.Close() })
}

// A Move moves the record of a local log into a shared log.
type Move struct {
	From   *SQLite // which nobody appends to
	Engine Engine
	Owner  string // the name of this hub

	// Progress is called after each batch; may be nil.
	Progress func(doing string, done, all int64)

	// BeforeUse is called when all facts are in the shared log, and before hubs can use it; may be nil. If it fails, the
	// move is not complete.
	BeforeUse func(ctx context.Context) error

	end   assembly
	at    int64  // the last entry of the shared log
	last  int64  // its last fact
	sum   uint32 // the sum of the chain at that fact
	began time.Time
	same  bool // as far as both logs have facts, they are the same
}

// In moves the record. It goes on where an earlier move was interrupted, and has no effect if all is moved. It returns
// an *OtherRecordError or an *ElsewhereError if the log has another record, a *wire.RemovedError if facts were removed
// from the local log, and ErrMoved if another hub has written during the move. If ctx ends, it closes the engine.
func (m *Move) In(ctx context.Context) error {
	defer closeWith(ctx, m.Engine)()
	err := m.in(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (m *Move) in(ctx context.Context) error {
	base, err := m.From.Base(ctx)
	if err != nil {
		return err
	}
	if base.Seq > 0 {
		return &wire.RemovedError{Base: base}
	}
	if err := m.read(ctx, "looking at the shared log"); err != nil {
		return err
	}
	all := m.From.Last()
	switch {
	case m.end.owner != "" && m.end.owner != m.Owner:
		return &ElsewhereError{Owner: m.end.owner, Last: m.last, Out: m.end.out}
	case !m.same, m.last > all && m.end.owner != "":
		return &OtherRecordError{Last: m.last, Began: m.began, Same: m.same}
	case m.last >= all && m.end.owner == "":
		return nil
	}
	if err := m.copy(ctx); err != nil {
		return err
	}
	if err := m.read(ctx, "reading it back"); err != nil {
		return err
	}
	if m.last != all || !m.same {
		return fmt.Errorf("the shared log ends at fact %d with the sum %08x, and the record here ends at fact %d with another one", m.last, m.sum, all)
	}
	if m.BeforeUse != nil {
		if err := m.BeforeUse(ctx); err != nil {
			return err
		}
	}
	_, err = m.put(Entry{First: m.last + 1, Before: m.sum}, nil)
	return err
}

// progress calls Progress.
func (m *Move) progress(doing string) {
	if m.Progress != nil {
		m.Progress(doing, m.last, m.From.Last())
	}
}

// read reads the shared log to its end, and compares it with the local one. Equal sums mean equal facts.
func (m *Move) read(ctx context.Context, doing string) error {
	m.end, m.at, m.last, m.sum, m.same = assembly{}, 0, 0, 0, true
	all := m.From.Last()
	mine, err := m.From.ChainSum(all)
	if err != nil {
		return err
	}
	see := func(n int64, e Entry) error {
		if n != m.at+1 {
			return fmt.Errorf("the shared log has no entry %d", m.at+1)
		}
		end, batch, err := m.end.next(e, m.last, m.sum)
		if err != nil {
			return fmt.Errorf("entry %d of the shared log: %w", n, err)
		}
		m.at, m.end = n, end
		if batch != nil {
			m.compare(batch, all, mine)
			m.progress(doing)
		}
		return nil
	}
	err = answered(ctx, func() error { return m.Engine.Get(ctx, m.at, see) })
	if err == nil && m.last < all {
		mine, err = m.From.ChainSum(m.last)
		m.same = mine == m.sum
	}
	return err
}

// compare counts a batch that was read from the shared log, and compares the sums where the local log ends: at fact
// all, with the sum mine.
func (m *Move) compare(batch []wire.Record, all int64, mine uint32) {
	if m.last == 0 {
		m.began = batch[0].At
	}
	if rest := all - m.last; rest > 0 && rest <= int64(len(batch)) {
		m.same = sumOf(m.sum, batch[:rest]) == mine
	}
	m.sum = sumOf(m.sum, batch)
	m.last += int64(len(batch))
}

// moveFacts and moveBytes are the largest batch of a move, unless a fact is larger.
const (
	moveFacts = 1024
	moveBytes = 1 << 20
)

// copy appends the facts that the shared log lacks.
func (m *Move) copy(ctx context.Context) error {
	var batch []wire.Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		e := Entry{First: m.last + 1, Count: len(batch), Before: m.sum, Owner: m.Owner}
		at, err := m.put(e, appendBatch(nil, batch))
		if err != nil {
			return err
		}
		m.at, m.sum = at, sumOf(m.sum, batch)
		m.last += int64(len(batch))
		batch, size = batch[:0], 0
		m.progress("copying")
		return nil
	}
	for r, err := range m.From.Records(ctx, m.last) {
		if err != nil {
			return err
		}
		if size += len(r.Payload); len(batch) == moveFacts || len(batch) > 0 && size > moveBytes {
			if err := flush(); err != nil {
				return err
			}
			size = len(r.Payload)
		}
		batch = append(batch, r)
	}
	return flush()
}

// put adds a batch after the last entry.
func (m *Move) put(e Entry, text []byte) (int64, error) {
	at, err := put(m.Engine, m.at, e, text)
	if errors.Is(err, ErrBehind) {
		return at, fmt.Errorf("%w: another hub has written to it after fact %d", ErrMoved, m.last)
	}
	return at, err
}

// ChainSum returns the sum of the chain of a log at a fact. Logs with equal sums have equal facts up to it.
func (l *SQLite) ChainSum(seq int64) (uint32, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, fs.ErrClosed
	}
	sum, found, _, err := l.sumAt(seq)
	if err == nil && !found {
		err = &ChainError{Seq: seq, What: "it is missing"}
	}
	return sum, err
}
