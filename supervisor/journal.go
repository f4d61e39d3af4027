package supervisor

import (
	"fmt"
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
			Seq:   first,
			At:    j.events[first%remembered].At,
			Kind:  wire.EventGap,
			Text:  fmt.Sprintf("events %d to %d are no longer in memory", seq+1, first),
			Facts: wire.Facts{Gap: first - seq},
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
