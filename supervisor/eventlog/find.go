package eventlog

import (
	"context"
	"fmt"
	"io/fs"
	"iter"

	"orchestrator/wire"
)

// Find implements Log. It gets the numbers from an index and reads each row when it is needed,
// so only one row is in memory. It checks that the index and the row agree.
func (l *SQLite) Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		err := l.find(ctx, s, func(r wire.Record) bool { return yield(r, nil) })
		if err != nil {
			yield(wire.Record{}, err)
		}
	}
}

// find calls show for the facts of a search until show returns false.
func (l *SQLite) find(ctx context.Context, s wire.Search, show func(wire.Record) bool) error {
	end, err := l.visible()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if s.Key != "" {
		return l.findKey(s.From, s.Key, end, show)
	}
	if len(s.To) == 0 && l.letters == nil {
		if s.To, err = l.addressees(ctx); err != nil || len(s.To) == 0 {
			return err
		}
	}
	return l.findMail(ctx, openMail(s, end, l.numbers), show)
}

func (l *SQLite) findKey(from, key string, end int64, show func(wire.Record) bool) error {
	seq, err := l.whoseKey(from, key)
	if err != nil || seq == 0 || seq > end {
		return err
	}
	r, err := l.fact(&page{names: make(map[string]string)}, seq)
	switch {
	case err != nil:
		return err
	case r.From != from || r.Key != key:
		return astray(seq)
	}
	show(r)
	return nil
}

func (l *SQLite) findMail(ctx context.Context, m *mail, show func(wire.Record) bool) error {
	p := &page{names: make(map[string]string)}
	for {
		seq, to, err := m.next(ctx)
		if err != nil || seq == 0 {
			return err
		}
		r, err := l.fact(p, seq)
		switch {
		case err != nil:
			return err
		case r.Topic == "" || r.To == "" || to != "" && r.To != to:
			return astray(seq)
		case !show(r):
			return nil
		}
	}
}

// fact reads one fact and verifies it by the sum of the fact before.
func (l *SQLite) fact(p *page, seq int64) (wire.Record, error) {
	p.after, p.sum, p.end = seq-1, 0, seq
	if err := l.locate(p); err != nil {
		return wire.Record{}, err
	}
	if err := l.fill(p); err != nil {
		return wire.Record{}, err
	}
	return p.facts[0], nil
}

// numbers returns up to n numbers of the letters of a recipient, or of all letters, in a span.
// It checks their order: an index has no checksums, and a damaged one could repeat numbers
// without end.
func (l *SQLite) numbers(to string, s span, n int) ([]int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return nil, fs.ErrClosed
	}
	index := l.index(to, s.backward)
	args := []value{ofInt(s.after), ofInt(s.until), ofInt(int64(n))}
	if to != "" {
		args = append(args, ofText(to))
	}
	if err := index.query(args); err != nil {
		return nil, s.failed(err)
	}
	found, err := s.read(index, n)
	if doneErr := index.done(); err == nil && doneErr != nil {
		err = s.failed(doneErr)
	}
	return found, err
}

// index returns the statement that reads the letters of a recipient, or all mail.
func (l *SQLite) index(to string, backward bool) statement {
	switch {
	case to != "" && backward:
		return l.mailBack
	case to != "":
		return l.mail
	case backward:
		return l.lettersBack
	}
	return l.letters
}

// read reads up to n numbers from an index for a span.
func (s span) read(index statement, n int) ([]int64, error) {
	found := make([]int64, 0, n)
	for {
		more, err := index.next()
		if err != nil {
			return nil, s.failed(err)
		}
		if !more {
			return found, nil
		}
		seq := index.integer(0)
		if !s.holds(seq) {
			return nil, s.broken("the index of mail is out of order", nil)
		}
		found = append(found, seq)
		s = s.behind(seq)
	}
}

// whoseKey returns the number of the fact with a sender's key, or 0.
func (l *SQLite) whoseKey(from, key string) (int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, fs.ErrClosed
	}
	seq, _, err := firstInt(l.keyed, ofText(from), ofText(key))
	if damaged(err) {
		return 0, &ChainError{Seq: 1, What: "the index of keys cannot be read", Cause: err}
	}
	if err != nil {
		return 0, fmt.Errorf("looking for the fact with key %q of %s: %w", key, from, err)
	}
	return seq, nil
}

// failed returns the error for a failure of SQLite in an index; page.failed is its counterpart
// for rows.
func (s span) failed(err error) error {
	if damaged(err) {
		return s.broken("the index of mail cannot be read", err)
	}
	return fmt.Errorf("looking for mail behind fact %d up to %d: %w", s.after, s.until, err)
}

// broken returns a ChainError for the first fact, in the direction of the search, that may be
// missing.
func (s span) broken(what string, cause error) error {
	seq := s.after + 1
	if s.backward {
		seq = s.until
	}
	return &ChainError{Seq: seq, What: what, Cause: cause}
}

// astray returns the error for an intact row to which an index leads by mistake.
func astray(seq int64) error {
	return &ChainError{Seq: seq, What: "an index leads to it and should not"}
}
