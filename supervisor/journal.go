package supervisor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"orchestrator/wire"
)

// remembered is how many events are kept in memory.
const remembered = 10_000

// journal is what happened, in order, numbered from 1. It keeps the latest.
type journal struct {
	mu     sync.Mutex
	events []wire.Event // a ring once it is full
	last   int64        // number of the latest
	grown  chan struct{}
	closed bool
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

// add numbers an event and keeps it.
func (j *journal) add(e wire.Event, at time.Time) *wire.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e.Seq, e.At = j.last, stamp(at)
	if len(j.events) < remembered {
		j.events = append(j.events, e)
	} else {
		j.events[(j.last-1)%remembered] = e
	}
	close(j.grown)
	j.grown = make(chan struct{})
	return &e
}

// after returns the events behind number seq, and a channel that is closed
// when there are more; nil when there will be none. If some are gone, the
// first event says so.
func (j *journal) after(seq int64) ([]wire.Event, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []wire.Event
	first := max(j.last-int64(len(j.events)), 0)
	if seq < first {
		found = append(found, wire.Event{
			Seq:     first,
			At:      j.events[first%remembered].At,
			Kind:    wire.EventGap,
			Text:    fmt.Sprintf("events %d to %d are no longer in memory", seq+1, first),
			Figures: wire.Figures{Gap: first - seq},
		})
		seq = first
	}
	for n := seq; n < j.last; n++ {
		found = append(found, j.events[n%remembered])
	}
	if j.closed {
		return found, nil
	}
	return found, j.grown
}

// close says that nothing more will happen.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.closed = true
		close(j.grown)
	}
}

func (j *journal) latest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Seq is the number of the latest event.
func (s *Supervisor) Seq() int64 { return s.journal.latest() }

// Events sends events as they are and, if asked, as they come, until send
// fails or ctx is over.
func (s *Supervisor) Events(ctx context.Context, q EventQuery, send func(wire.Event) error) error {
	seq := q.Since
	for {
		events, grown := s.journal.after(seq)
		for i := range events {
			seq = events[i].Seq
			if !q.wants(&events[i]) {
				continue
			}
			if err := send(events[i]); err != nil {
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

// EventQuery chooses events.
type EventQuery struct {
	Since  int64  // those behind this number
	After  string // those later than this time, spelled as theirs
	Kind   string // a glob; "": all
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
	return (q.After == "" || e.At > q.After) && (len(q.Agents) == 0 || slices.Contains(q.Agents, e.Agent))
}
