package output

import (
	"path"
	"slices"
	"sync"

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
	count  bool  // number the events here, because nothing is recorded
	grown  chan struct{}
	closed bool
}

// NewRecentEvents returns an empty list. If count is true, it numbers the events.
func NewRecentEvents(count bool) *RecentEvents {
	return &RecentEvents{count: count, grown: make(chan struct{})}
}

// add adds events and drops the oldest.
func (j *RecentEvents) add(found []*Notice) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range found {
		if j.count {
			n.Record.Seq = j.last + 1
		}
		if n.Record.Seq != 0 { // an event that could not be recorded has no number
			j.last = n.Record.Seq
		}
		j.events = append(j.events, n)
		j.bytes += len(n.Record.Payload)
	}
	drop := 0
	for len(j.events)-drop > remembered || j.bytes > rememberedBytes && drop < len(j.events)-1 {
		j.bytes -= len(j.events[drop].Record.Payload)
		j.events[drop] = nil
		drop++
	}
	j.events = j.events[drop:]
	close(j.grown)
	j.grown = make(chan struct{})
}

// Begin sets the number of the last fact before the first event.
func (j *RecentEvents) Begin(last int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = last
}

// After returns the events after number seq that are in memory, and the number after which they
// begin. It also returns a channel that is closed when there are more, or nil if there will be
// none.
func (j *RecentEvents) After(seq int64) (found []*Notice, from int64, grown <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from = j.last
	if len(j.events) > 0 && j.events[0].Record.Seq != 0 {
		from = j.events[0].Record.Seq - 1
	}
	start := len(j.events)
	for start > 0 && (j.events[start-1].Record.Seq > seq || j.events[start-1].Record.Seq == 0) {
		start--
	}
	found = slices.Clone(j.events[start:])
	if !j.closed {
		grown = j.grown
	}
	return found, from, grown
}

// Close marks the list as complete.
func (j *RecentEvents) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.closed = true
		close(j.grown)
	}
}

// Latest returns the number of the latest event.
func (j *RecentEvents) Latest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
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
