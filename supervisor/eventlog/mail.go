package eventlog

import (
	"cmp"
	"context"
	"slices"

	"orchestrator/wire"
)

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
	idle     []*mailbox // mailboxes whose next number is not known yet
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
