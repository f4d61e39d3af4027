package supervisor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

const (
	// remembered is how many events are kept in memory, and rememberedBytes how
	// much of what they carry: the rest is in the record.
	remembered      = 10_000
	rememberedBytes = 16 << 20
)

// recentEvents is the latest of what became true, in order, for those who ask and
// those who follow.
type recentEvents struct {
	mu     sync.Mutex
	events []*notice // oldest first
	bytes  int
	last   int64 // number of the latest
	count  bool  // it gives the numbers: nothing is recorded
	grown  chan struct{}
	closed bool
}

func newJournal(count bool) *recentEvents {
	return &recentEvents{count: count, grown: make(chan struct{})}
}

// add keeps events, and lets go of the oldest.
func (j *recentEvents) add(events []*notice) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range events {
		if j.count {
			n.record.Seq = j.last + 1
		}
		if n.record.Seq != 0 { // one that could not be recorded has no place behind which to go on
			j.last = n.record.Seq
		}
		j.events = append(j.events, n)
		j.bytes += len(n.record.Payload)
	}
	drop := 0
	for len(j.events)-drop > remembered || j.bytes > rememberedBytes && drop < len(j.events)-1 {
		j.bytes -= len(j.events[drop].record.Payload)
		j.events[drop] = nil
		drop++
	}
	j.events = j.events[drop:]
	close(j.grown)
	j.grown = make(chan struct{})
}

// begin says that what comes next follows fact number last.
func (j *recentEvents) begin(last int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = last
}

// after returns the events behind number seq that are in memory, the number
// behind which they begin, and a channel that is closed when there are more;
// nil when there will be none.
func (j *recentEvents) after(seq int64) (events []*notice, from int64, grown <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from = j.last
	if len(j.events) > 0 && j.events[0].record.Seq != 0 {
		from = j.events[0].record.Seq - 1
	}
	start := len(j.events)
	for start > 0 && (j.events[start-1].record.Seq > seq || j.events[start-1].record.Seq == 0) {
		start--
	}
	events = slices.Clone(j.events[start:])
	if !j.closed {
		grown = j.grown
	}
	return events, from, grown
}

// close says that nothing more will happen.
func (j *recentEvents) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.closed = true
		close(j.grown)
	}
}

func (j *recentEvents) latest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Seq is the number of the latest event.
func (s *Supervisor) Seq() int64 { return s.audience.journal.latest() }

// Events sends events as they are and, if asked, as they come, until send
// fails or ctx is over. Those that are no longer in memory come from the
// record; where nothing is recorded, the first one says how many are gone.
func (s *Supervisor) Events(ctx context.Context, q EventQuery, send func(wire.Event) error) error {
	seq := q.Since
	pass := func(e *wire.Event) error {
		seq = max(seq, e.Seq)
		if !q.wants(e) {
			return nil
		}
		return send(*e)
	}
	for {
		events, from, grown := s.audience.journal.after(seq)
		if seq < from {
			if err := s.older(ctx, seq, from, pass); err != nil {
				return err
			}
		}
		for _, n := range events {
			if err := pass(n.Event()); err != nil {
				return err
			}
		}
		if !q.Follow || grown == nil {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// older sends what lies behind seq up to last and is not in memory.
func (s *Supervisor) older(ctx context.Context, seq, last int64, send func(*wire.Event) error) error {
	if s.options.Record == nil {
		return send(&wire.Event{
			Seq:     last,
			At:      wire.Timestamp(s.began),
			Kind:    wire.EventGap,
			Text:    fmt.Sprintf("events %d to %d are no longer in memory", seq+1, last),
			Figures: wire.Figures{Gap: last - seq},
		})
	}
	for r, err := range s.options.Record.Records(ctx, seq) {
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		if r.Seq > last {
			return nil
		}
		e := handlers.Tell(r)
		if err := send(&e); err != nil {
			return err
		}
	}
	return nil
}

// EventQuery chooses events.
type EventQuery struct {
	Since  int64  // those behind this number
	After  string // those later than this time, spelled as theirs
	Kind   string // a glob; "": all
	Task   string
	Agents []string
	Follow bool
}

func (q *EventQuery) wants(e *wire.Event) bool {
	if e.Kind == wire.EventGap {
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
