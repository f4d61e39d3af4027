package supervisor

import (
	"fmt"
	"math/rand/v2"
	"time"

	"orchestrator/wire"
)

const (
	// stormSize is how many agents must end within a second to be one event
	// with one cause, most likely something that they share.
	stormSize = 10
	// stormShare is what each of them adds to the time over which their
	// restarts are spread, so that what they share is not run over again.
	stormShare = 50 * time.Millisecond
)

// storm counts ends that come together.
type storm struct {
	ends   []time.Time // within the last second
	raging bool        // said so
}

// spread is how much longer the restart of an agent that ended at now waits
// because others ended with it.
func (s *Supervisor) spread(now time.Time) time.Duration {
	t := &s.storm
	old := 0
	for old < len(t.ends) && now.Sub(t.ends[old]) > time.Second {
		old++
	}
	t.ends = append(t.ends[old:], now)
	if len(t.ends) < stormSize {
		t.raging = false
		return 0
	}
	over := time.Duration(len(t.ends)) * stormShare
	if !t.raging {
		t.raging = true
		s.event(nil, wire.Event{
			Kind:  wire.EventStorm,
			Text:  fmt.Sprintf("%d agents ended within a second: something they share? Their restarts are spread", len(t.ends)),
			Facts: wire.Facts{Count: int64(len(t.ends))},
		})
	}
	return time.Duration(rand.Int64N(int64(over)))
}
