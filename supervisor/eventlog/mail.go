package eventlog

import (
	"cmp"
	"context"
	"slices"

	"orchestrator/wire"
)

// firstNumbers is how many numbers of a mailbox are fetched to begin with. Each
// further page has twice as many, up to pageRows: who wants one letter pays for
// few, who wants all is not asked to come too often.
const firstNumbers = 16

// mail is the mailboxes of several addressees as one, in the order of a search.
// It has numbers only: they take 8 bytes where a letter may take megabytes, so
// that many mailboxes can be merged. A letter is read when it is its turn.
type mail struct {
	fetch    func(to string, s span, n int) ([]int64, error) // at most n, in order
	backward bool
	idle     []*mailbox // whose next number is not known yet
	turns    []*mailbox // whose next number is; the last of them has the next turn
}

// mailbox is the letters of one addressee.
type mailbox struct {
	to    string  // "": for all in common
	ahead []int64 // fetched, and in the order of the search
	left  span    // not fetched
	page  int     // how many to fetch
}

// span is the numbers behind after up to until, in one of two directions.
type span struct {
	after, until int64
	backward     bool
}

// openMail begins a search that ends at number end.
func openMail(s wire.Search, end int64, fetch func(to string, s span, n int) ([]int64, error)) *mail {
	left := span{after: max(s.After, 0), until: end, backward: s.Backward}
	if s.Until != 0 {
		left.until = min(end, s.Until)
	}
	to := slices.Compact(slices.Sorted(slices.Values(s.To))) // a name given twice is one mailbox
	if len(to) == 0 {
		to = []string{""}
	} else if to[0] == "" {
		to = to[1:] // mail without an addressee is not for all
	}
	m := &mail{fetch: fetch, backward: s.Backward}
	for _, name := range to {
		m.idle = append(m.idle, &mailbox{to: name, left: left, page: firstNumbers})
	}
	return m
}

// next returns the number of the next letter and the mailbox that it is from; 0
// when there is none.
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

// enter gives a mailbox its turn, or drops it when it is at its end.
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

// holds tells whether a number lies in the span.
func (s span) holds(seq int64) bool { return seq > s.after && seq <= s.until }

// behind is what is left when everything up to a number has been seen.
func (s span) behind(seq int64) span {
	if s.backward {
		s.until = seq - 1
	} else {
		s.after = seq
	}
	return s
}
