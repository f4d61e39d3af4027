package output

import (
	"path"
	"slices"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

const (
	// remembered is the number of events in memory, and rememberedBytes the size of their
	// contents. Older events are in the record.
	remembered      = 10_000
	rememberedBytes = 16 << 20
)

// RecentEvents holds the latest events in order.
type RecentEvents struct {
	mu     sync.Mutex
	events []*Notice // oldest first
	bytes  int
	last   int64 // number of the latest
	count  bool  // number the events here, because no record does
	grown  chan struct{}
	closed bool
}

// NewRecentEvents returns an empty list. If count is true, it numbers the events.
func NewRecentEvents(count bool) *RecentEvents {
	return &RecentEvents{count: count, grown: make(chan struct{})}
}

// add adds events and drops the oldest. After Close, followers do not get them.
func (r *RecentEvents) add(found []*Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range found {
		if r.count {
			n.Record.Seq = r.last + 1
		}
		if n.Record.Seq != 0 { // an event that could not be recorded has no number
			r.last = n.Record.Seq
		}
		r.events = append(r.events, n)
		r.bytes += len(n.Record.Payload)
	}
	drop := 0
	for len(r.events)-drop > remembered || r.bytes > rememberedBytes && drop < len(r.events)-1 {
		r.bytes -= len(r.events[drop].Record.Payload)
		r.events[drop] = nil
		drop++
	}
	r.events = r.events[drop:]
	if !r.closed {
		close(r.grown)
		r.grown = make(chan struct{})
	}
}

// Begin sets the number of the last fact before the first event.
func (r *RecentEvents) Begin(last int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = last
}

// After returns the events after number seq that are in memory, and the number after which they
// begin. It also returns a channel that is closed when there are more, or nil if there will be
// none.
func (r *RecentEvents) After(seq int64) (found []*Notice, from int64, grown <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from = r.last
	if len(r.events) > 0 && r.events[0].Record.Seq != 0 {
		from = r.events[0].Record.Seq - 1
	}
	start := len(r.events)
	for start > 0 && (r.events[start-1].Record.Seq > seq || r.events[start-1].Record.Seq == 0) {
		start--
	}
	found = slices.Clone(r.events[start:])
	if !r.closed {
		grown = r.grown
	}
	return found, from, grown
}

// Close marks the list as complete.
func (r *RecentEvents) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.grown)
	}
}

// Latest returns the number of the latest event.
func (r *RecentEvents) Latest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// An EventQuery selects events.
type EventQuery struct {
	Since  int64  // events after this number
	After  string // events later than this time, in the format of Event.At
	Kind   string // a glob; "": all
	Task   string
	Agents []string
	Follow bool
}

// Wants reports whether the query chooses an event.
func (q *EventQuery) Wants(e *wire.Event) bool {
	if e.Kind == events.OrchestratorGap {
		return true
	}
	if q.Kind != "" {
		if ok, err := path.Match(q.Kind, e.Kind); err != nil || !ok {
			return false
		}
	}
	return (q.After == "" || e.At > q.After) && (q.Task == "" || e.Task == q.Task) &&
		(len(q.Agents) == 0 || slices.Contains(q.Agents, e.Agent))
}

// A page holds lines in one buffer, with two allocations for any number of lines.
type page struct {
	text  []byte
	lines []mark
	borne int    // bytes that its notices keep in memory
	front []byte // the beginning of its lines in a log file; empty until there is a line
}

// A mark is one line of a page.
type mark struct {
	at         time.Time
	start, end int // in the page's text
	stream     string
	missed     int64   // lines dropped before this one
	news       *Notice // the notice, for a line of the orchestrator
}

// add copies a line onto the page.
func (p *page) add(m mark, text ...[]byte) {
	m.start = len(p.text)
	for _, part := range text {
		p.text = append(p.text, part...)
	}
	m.end = len(p.text)
	p.lines = append(p.lines, m)
	if m.news != nil {
		p.borne += len(m.news.Record.Payload)
	}
}

// weight returns the memory that a page uses.
func (p *page) weight() int { return len(p.text) + len(p.lines)*markWeight + p.borne }

// markWeight is the approximate memory that a mark uses.
const markWeight = 64

// line returns the text of line i, which is valid as long as the page.
func (p *page) line(i int) []byte { return p.text[p.lines[i].start:p.lines[i].end] }

func (p *page) clear() {
	clear(p.lines) // release events
	p.text, p.lines, p.borne, p.front = p.text[:0], p.lines[:0], 0, p.front[:0]
}
