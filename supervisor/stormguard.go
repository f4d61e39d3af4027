package supervisor

import (
	"fmt"
	"maps"
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

// stormGuard counts agents that end together. One that ends again and again is one.
type stormGuard struct {
	ends   map[*agent]time.Time // within the last second
	raging bool                 // said so
}

// spread is how much longer the restart of an agent that ended at now waits
// because others ended with it.
func (s *Supervisor) spread(a *agent, now time.Time) time.Duration {
	t := &s.storm
	maps.DeleteFunc(t.ends, func(_ *agent, at time.Time) bool { return now.Sub(at) > time.Second })
	if t.ends == nil {
		t.ends = make(map[*agent]time.Time)
	}
	t.ends[a] = now
	if len(t.ends) < stormSize {
		t.raging = false
		return 0
	}
	over := time.Duration(len(t.ends)) * stormShare
	if !t.raging {
		t.raging = true
		s.event(nil, wire.Event{
			Kind:    wire.EventStorm,
			Text:    fmt.Sprintf("%d agents ended within a second: something they share? Their restarts are spread", len(t.ends)),
			Figures: wire.Figures{Count: int64(len(t.ends))},
		})
	}
	return time.Duration(rand.Int64N(int64(over)))
}
