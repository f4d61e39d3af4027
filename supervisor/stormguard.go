package supervisor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

const (
	// stormSize is how many agents must end within a second to be reported as one event, which
	// probably has one cause.
	stormSize = 10
	// stormShare is multiplied by their number. Their restarts are spread over that time, so
	// that a shared resource is not overloaded again.
	stormShare = 50 * time.Millisecond
)

// A stormGuard counts the agents that end together. An agent that ends repeatedly counts once.
type stormGuard struct {
	ends   map[*agent]time.Time // within the last second
	raging bool                 // the event was recorded
}

// spread returns an extra delay for the restart of an agent that ended at now, if many others
// ended with it.
func (l *lifecycle) spread(a *agent, now time.Time) time.Duration {
	t := &l.storm
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
		l.event(nil, wire.Event{
			Kind:    events.OrchestratorStorm,
			Text:    fmt.Sprintf("%d agents ended within a second: something they share? Their restarts are spread", len(t.ends)),
			Figures: wire.Figures{Count: int64(len(t.ends))},
		})
	}
	return time.Duration(rand.Int64N(int64(over)))
}

// An alarm logs errors. It logs the same text at most once a second, because an agent may be
// able to cause the error at will.
type alarm struct {
	log hclog.Logger

	mu   sync.Mutex
	told map[string]time.Time
}

func (a *alarm) raise(text string, args ...any) {
	now := time.Now()
	a.mu.Lock()
	due := now.Sub(a.told[text]) >= time.Second
	if due {
		if a.told == nil {
			a.told = make(map[string]time.Time)
		}
		a.told[text] = now
	}
	a.mu.Unlock()
	if due {
		a.log.Error(text, args...)
	}
}
