package dispatch

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// latestMail is the latest recorded mail, which is read and spelled once for all its readers. It
// never changes: new mail leads to another latestMail. The nil one has no mail.
type latestMail struct {
	after int64 // all mail after this number is in it
	mail  []history.Mail
	bytes int
}

// Limits of the latest mail.
const (
	maxLatest      = 256
	maxLatestBytes = 1 << 20
)

// with returns the latest mail when records, which are consecutive, were added.
func (l *latestMail) with(records []wire.Record) *latestMail {
	if !slices.ContainsFunc(records, func(r wire.Record) bool { return r.IsMail() }) {
		return l
	}
	more := &latestMail{after: records[0].Seq - 1}
	if l != nil {
		more.after, more.mail, more.bytes = l.after, slices.Clone(l.mail), l.bytes
	}
	for i := range records {
		if !records[i].IsMail() {
			continue
		}
		m := history.MailOf(&records[i])
		m.Spelled, _ = object.Encode(&m.Message) // without it, each reader spells the message and has the error
		more.mail = append(more.mail, m)
		more.bytes += weight(&m)
	}
	for len(more.mail) > maxLatest || more.bytes > maxLatestBytes {
		first := &more.mail[0]
		more.after, more.bytes = first.Seq, more.bytes-weight(first)
		more.mail = more.mail[1:]
	}
	return more
}

// weight is the memory that a message uses.
func weight(m *history.Mail) int { return len(m.Payload) + len(m.Spelled) }

// covers reports whether all mail that a search for recipients selects is in l.
func (l *latestMail) covers(s *wire.Search) bool { return l != nil && s.After >= l.after }

// find returns the mail that a search for recipients selects. l must cover the search.
func (l *latestMail) find(s wire.Search) iter.Seq2[history.Mail, error] {
	return func(yield func(history.Mail, error) bool) {
		first := sort.Search(len(l.mail), func(i int) bool { return l.mail[i].Seq > s.After })
		for i := first; i < len(l.mail); i++ {
			m := &l.mail[i]
			if s.Until != 0 && m.Seq > s.Until {
				return
			}
			if slices.Contains(s.To, m.To) && !yield(*m, nil) {
				return
			}
		}
	}
}

// A notifier wakes readers when mail is recorded, and holds the latest mail for all of them. Readers fetch older mail
// from the record, so a slow reader takes no memory.
type notifier struct {
	latest atomic.Pointer[latestMail]

	mu      sync.Mutex
	waiters map[string]map[*mailWaiter]bool // by the actor that gets the mail; "": all
}

// A mailWaiter receives the number of the first new message from ready. There may be more.
type mailWaiter struct{ ready chan int64 }

// add registers a waiter for the mail of an actor, or of all actors if actor is "". The
// returned func removes it.
func (n *notifier) add(actor string) (*mailWaiter, func()) {
	fresh := &mailWaiter{ready: make(chan int64, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiters == nil {
		n.waiters = make(map[string]map[*mailWaiter]bool)
	}
	if n.waiters[actor] == nil {
		n.waiters[actor] = make(map[*mailWaiter]bool)
	}
	n.waiters[actor][fresh] = true
	return fresh, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.waiters[actor], fresh); len(n.waiters[actor]) == 0 {
			delete(n.waiters, actor)
		}
	}
}

// find returns the search for mail that is in memory, or else in the record.
func (n *notifier) find(record history.Archive) history.FindMail {
	return func(s wire.Search) iter.Seq2[history.Mail, error] {
		if latest := n.latest.Load(); latest.covers(&s) {
			return latest.find(s)
		}
		return history.MailIn(record)(s)
	}
}

// notify wakes the waiters for the mail among records. Only the recorder calls it.
func (n *notifier) notify(records []wire.Record) {
	n.latest.Store(n.latest.Load().with(records))
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiters) == 0 {
		return
	}
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == mail.Broadcast:
			for actor := range n.waiters {
				n.notifyActor(actor, r.Seq)
			}
		default:
			n.notifyActor(r.To, r.Seq)
			n.notifyActor("", r.Seq)
		}
	}
}

// notifyActor wakes the waiters of one actor. n.mu must be held.
func (n *notifier) notifyActor(actor string, seq int64) {
	for one := range n.waiters[actor] {
		select {
		case one.ready <- seq:
		default: // already signalled
		}
	}
}
