package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
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
	switch {
	case s.Archived && l.archive == nil:
		return nil
	case s.Archived:
		return l.findArchived(ctx, s, end, show)
	case s.Artifacts && l.refs == nil:
		return errors.New("the file is of an older version, and has no index of artifacts")
	case s.Artifacts:
		return l.findRefs(ctx, s, end, show)
	case s.Key != "":
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
	case isRemoved(err):
		return nil
	case err != nil:
		return err
	case r.From != from || r.Key != key:
		return astray(seq)
	}
	show(r)
	return nil
}

// findArchived calls show for the records of archived tasks until show returns false.
func (l *SQLite) findArchived(ctx context.Context, s wire.Search, end int64, show func(wire.Record) bool) error {
	if s.Until != 0 {
		end = min(end, s.Until)
	}
	if s.Task != "" {
		seq, err := l.lastArchived(s.Task, end)
		if err == nil && seq != 0 {
			_, err = l.showArchived(&page{names: make(map[string]string)}, seq, show)
		}
		return err
	}
	p := &page{names: make(map[string]string)}
	for after, n := s.After, firstNumbers; ; n = min(2*n, pageRows) {
		found, err := l.archivedAfter(after, end, n)
		if err != nil {
			return err
		}
		for _, at := range found {
			if err := ctx.Err(); err != nil {
				return err
			}
			if more, err := l.showArchived(p, at.seq, show); err != nil || !more {
				return err
			}
			after = at.created
		}
		if len(found) < n {
			return nil
		}
	}
}

// showArchived reads the record of an archived task and shows it.
func (l *SQLite) showArchived(p *page, seq int64, show func(wire.Record) bool) (more bool, err error) {
	r, err := l.fact(p, seq)
	if isRemoved(err) {
		return true, nil
	}
	if err == nil && (r.Kind != events.TaskArchived || r.Correlation == "") {
		err = astray(seq)
	}
	return err == nil && show(r), err
}

// lastArchived returns the number of the newest record of an archived task, or 0.
func (l *SQLite) lastArchived(task string, end int64) (int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return 0, fs.ErrClosed
	}
	seq, _, err := firstInt(l.archived, ofText(task), ofInt(end))
	return seq, archiveError(err)
}

// An archivedAt is a record of an archived task, and the first record of that task.
type archivedAt struct{ seq, created int64 }

// archivedAfter returns up to n records of tasks that were created after a record. Of a task
// that was archived more than once, it returns the newest. All records of one task are in one
// answer.
func (l *SQLite) archivedAfter(after, end int64, n int) (found []archivedAt, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return nil, fs.ErrClosed
	}
	if err := l.archive.query([]value{ofInt(after), ofInt(end)}); err != nil {
		return nil, archiveError(err)
	}
	for {
		more, err := l.archive.next()
		if err != nil || !more {
			return found, errors.Join(archiveError(err), l.archive.done())
		}
		at := archivedAt{seq: l.archive.integer(0), created: l.archive.integer(1)}
		last := len(found) - 1
		switch {
		case at.created <= after || last >= 0 && at.created < found[last].created:
			return nil, errors.Join(&ChainError{Seq: at.seq, What: "the index of archived tasks is out of order"}, l.archive.done())
		case last >= 0 && at.created == found[last].created:
			found[last] = at
		case len(found) == n:
			return found, l.archive.done()
		default:
			found = append(found, at)
		}
	}
}

// archiveError returns the error for a failure of SQLite in the indexes of archived tasks.
func archiveError(err error) error {
	switch {
	case err == nil:
		return nil
	case damaged(err):
		return &ChainError{Seq: 1, What: "the index of archived tasks cannot be read", Cause: err}
	}
	return fmt.Errorf("looking for archived tasks: %w", err)
}

// findRefs calls show for the records that may refer to artifacts until show returns false.
func (l *SQLite) findRefs(ctx context.Context, s wire.Search, end int64, show func(wire.Record) bool) error {
	p := &page{names: make(map[string]string)}
	found := openMail(wire.Search{After: s.After, Until: s.Until}, end, func(_ string, left span, n int) ([]int64, error) {
		return l.numbersIn(&l.refs, left, n)
	})
	for {
		seq, _, err := found.next(ctx)
		if err != nil || seq == 0 {
			return err
		}
		r, err := l.fact(p, seq)
		switch {
		case isRemoved(err): // since the index was read
			continue
		case err != nil:
			return err
		case !mayRefer(&r):
			return astray(seq)
		case !show(r):
			return nil
		}
	}
}

// mayRefer reports whether a record may refer to artifacts; see refers.
func mayRefer(r *wire.Record) bool {
	return strings.HasPrefix(r.Kind, "task.") && bytes.Contains(r.Payload, []byte(`"sha256:`))
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
		case isRemoved(err): // since the index was read
			continue
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
		return wire.Record{}, l.removedSince(seq-1, err)
	}
	return p.facts[0], nil
}

// numbers returns up to n numbers of the letters of a recipient, or of all letters, in a span.
// It checks their order: an index has no checksums, and a damaged one could repeat numbers
// without end.
func (l *SQLite) numbers(to string, s span, n int) ([]int64, error) {
	if to != "" {
		return l.numbersIn(l.index(to, s.backward), s, n, ofText(to))
	}
	return l.numbersIn(l.index(to, s.backward), s, n)
}

// numbersIn returns up to n numbers from an index. more are further arguments of its query.
func (l *SQLite) numbersIn(in *statement, s span, n int, more ...value) ([]int64, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return nil, fs.ErrClosed
	}
	index, args := *in, append([]value{ofInt(s.after), ofInt(s.until), ofInt(int64(n))}, more...)
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
func (l *SQLite) index(to string, backward bool) *statement {
	switch {
	case to != "" && backward:
		return &l.mailBack
	case to != "":
		return &l.mail
	case backward:
		return &l.lettersBack
	}
	return &l.letters
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

// astray returns the error for an intact row that an index leads to by mistake.
func astray(seq int64) error {
	return &ChainError{Seq: seq, What: "an index leads to it and should not"}
}

// A page is a position in the log, and the facts read before it.
type page struct {
	after int64  // the last fact read
	sum   uint32 // its checksum
	end   int64  // the last fact to read
	facts []wire.Record
	names map[string]string // shared copies of texts that many rows have
}

// manyNames is the most texts that names holds.
const manyNames = 4096

// read reads and verifies rows until the page is full.
func (p *page) read(rows statement, c *chain) error {
	for size := 0; p.after < p.end && len(p.facts) < pageRows && size < pageBytes; {
		more, err := rows.next()
		if err != nil {
			return p.failed(err)
		}
		if !more {
			return p.broken("it is missing")
		}
		if seq := rows.integer(0); seq <= p.after {
			return p.broken(fmt.Sprintf("it is missing; a row with the number %d is in its place", seq))
		} else if seq != p.after+1 {
			return p.broken(fmt.Sprintf("it is missing; the next one is %d", seq))
		}
		r, ok := p.decode(rows)
		if !ok {
			return p.broken("its time is not RFC 3339 in UTC with milliseconds")
		}
		sum := c.next(p.sum, rows.text(1), &r)
		if kept := rows.integer(10); int64(sum) != kept {
			return p.broken(fmt.Sprintf("its checksum is %08x and should be %08x", kept, sum))
		}
		p.after, p.sum = r.Seq, sum
		p.facts = append(p.facts, r)
		size += len(r.Payload)
	}
	return nil
}

// decode converts a row to a fact. The columns come from selectEvents.
func (p *page) decode(rows statement) (r wire.Record, ok bool) {
	r.Seq = rows.integer(0)
	r.At, ok = parseAt(rows.text(1))
	r.From = p.name(rows.text(2))
	r.To = p.name(rows.text(3))
	r.Topic = p.name(rows.text(4))
	r.Kind = p.name(rows.text(5))
	if payload := rows.text(6); len(payload) > 0 {
		r.Payload = append(make([]byte, 0, len(payload)), payload...)
	}
	r.ReplyTo = rows.integer(7)
	r.Key = string(rows.text(8))
	r.Correlation = string(rows.text(9))
	return r, ok
}

// name returns a shared string for a text that many rows have.
func (p *page) name(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if s, ok := p.names[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(p.names) < manyNames {
		p.names[s] = s
	}
	return s
}

func (p *page) broken(what string) error {
	return &ChainError{Seq: p.after + 1, What: what}
}

// failed returns the error for a failure of SQLite after the last fact read. A malformed file
// is a broken chain; a read error of the disk is not.
func (p *page) failed(err error) error {
	if damaged(err) {
		return &ChainError{Seq: p.after + 1, What: "it cannot be read", Cause: err}
	}
	return fmt.Errorf("reading behind fact %d: %w", p.after, err)
}

// firstNumbers is the number of entries of a mailbox that are fetched first. Each further page
// has twice as many, up to pageRows. So one letter costs little, and many letters need few
// pages.
const firstNumbers = 16

// mail merges the mailboxes of several recipients in the order of a search. It holds only
// numbers of 8 bytes, so that many mailboxes can be merged although a letter may have
// megabytes. A letter is read when it is the next one.
type mail struct {
	fetch    func(to string, s span, n int) ([]int64, error) // at most n, in order
	backward bool
	idle     []*mailbox // mailboxes without a known next number
	turns    []*mailbox // mailboxes sorted by their next number; the last one is next
}

// A mailbox is the letters of one recipient.
type mailbox struct {
	to    string  // "": all letters
	ahead []int64 // numbers fetched, in the order of the search
	left  span    // not fetched
	page  int     // how many to fetch
}

// A span is the numbers above after, up to until, in one of two directions.
type span struct {
	after, until int64
	backward     bool
}

// openMail begins a search of the facts up to end.
func openMail(s wire.Search, end int64, fetch func(to string, s span, n int) ([]int64, error)) *mail {
	left := span{after: max(s.After, 0), until: end, backward: s.Backward}
	if s.Until != 0 {
		left.until = min(end, s.Until)
	}
	to := slices.Compact(slices.Sorted(slices.Values(s.To))) // a name given twice is one mailbox
	if len(to) == 0 {
		to = []string{""}
	} else if to[0] == "" {
		to = to[1:] // an empty name would select all mail
	}
	m := &mail{fetch: fetch, backward: s.Backward}
	for _, name := range to {
		m.idle = append(m.idle, &mailbox{to: name, left: left, page: firstNumbers})
	}
	return m
}

// next returns the number of the next letter and the recipient of its mailbox, or 0 at the end.
func (m *mail) next(ctx context.Context) (seq int64, to string, err error) {
	for _, box := range m.idle {
		if err := ctx.Err(); err != nil {
			return 0, "", err
		}
		if err := m.enter(box); err != nil {
			return 0, "", err
		}
	}
	m.idle = m.idle[:0]
	last := len(m.turns) - 1
	if last < 0 {
		return 0, "", nil
	}
	box := m.turns[last]
	m.turns = m.turns[:last]
	m.idle = append(m.idle, box)
	seq, box.ahead = box.ahead[0], box.ahead[1:]
	return seq, box.to, nil
}

// enter sorts a mailbox into turns, or drops it at its end.
func (m *mail) enter(box *mailbox) error {
	if len(box.ahead) == 0 {
		if err := m.refill(box); err != nil || len(box.ahead) == 0 {
			return err
		}
	}
	at, _ := slices.BinarySearchFunc(m.turns, box, func(a, b *mailbox) int {
		if m.backward {
			return cmp.Compare(a.ahead[0], b.ahead[0])
		}
		return cmp.Compare(b.ahead[0], a.ahead[0])
	})
	m.turns = slices.Insert(m.turns, at, box)
	return nil
}

// refill fetches the next page of a mailbox.
func (m *mail) refill(box *mailbox) (err error) {
	if box.left.after >= box.left.until {
		return nil
	}
	if box.ahead, err = m.fetch(box.to, box.left, box.page); err != nil {
		return err
	}
	if len(box.ahead) < box.page {
		box.left = span{}
		return nil
	}
	box.left = box.left.behind(box.ahead[len(box.ahead)-1])
	box.page = min(2*box.page, pageRows)
	return nil
}

// holds reports whether a number is in the span.
func (s span) holds(seq int64) bool { return seq > s.after && seq <= s.until }

// behind returns the rest of the span after a number.
func (s span) behind(seq int64) span {
	if s.backward {
		s.until = seq - 1
	} else {
		s.after = seq
	}
	return s
}
