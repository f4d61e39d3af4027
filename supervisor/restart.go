package supervisor

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A verdict is the decision after the end of a run.
type verdict struct {
	again   bool
	delay   time.Duration
	attempt int    // number of this restart within the window
	why     string // the reason for no restart; "" if the agent ended well
}

// restartHistory holds the past restarts of an agent. Its times are monotonic, so changes of the clock
// have no effect.
type restartHistory struct {
	streak   int         // restarts since the agent was last up long enough
	restarts []time.Time // within the window, oldest first
	endings  []string    // the exits before those restarts
}

// after decides about a restart of an agent that ended at now with the given uptime. chance is in [0, 1).
func (h *restartHistory) after(r settings.Restart, code int, cause string, up time.Duration, now time.Time, chance float64) verdict {
	failed := code != 0
	switch {
	case failed && slices.Contains(r.Permanent, code):
		return verdict{why: cause + " is permanent: another try would not fix it"}
	case r.Policy == settings.Never && failed:
		return verdict{why: cause + ", and its restart policy is never"}
	case r.Policy == settings.Never, r.Policy == settings.OnFailure && !failed:
		return verdict{}
	}
	return h.again(r, cause, up, now, chance)
}

// again decides for an end that leads to a restart, unless there were too many.
func (h *restartHistory) again(r settings.Restart, cause string, up time.Duration, now time.Time, chance float64) verdict {
	if up >= r.ResetAfter {
		h.streak = 0
	}
	old := 0
	for old < len(h.restarts) && now.Sub(h.restarts[old]) > r.Window {
		old++
	}
	h.restarts, h.endings = h.restarts[old:], h.endings[old:]
	h.endings = append(h.endings, cause)
	if len(h.restarts) >= r.Burst {
		return verdict{why: gaveUp(h.endings, r)}
	}
	h.restarts = append(h.restarts, now)
	wait := delay(r, h.streak, chance)
	h.streak++
	return verdict{again: true, delay: wait, attempt: len(h.restarts)}
}

// delay returns min(max, base·factorⁿ), randomly changed by up to jitter in both directions.
func delay(r settings.Restart, n int, chance float64) time.Duration {
	delay := math.Min(float64(r.Delay)*math.Pow(r.Factor, float64(n)), float64(r.MaxDelay))
	return time.Duration(delay * (1 + r.Jitter*(2*chance-1)))
}

// forget clears the history, because a person asked for the start.
func (h *restartHistory) forget() { *h = restartHistory{} }

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

// spread returns an extra delay for the restart of an agent that ended at now, if many agents ended with it.
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
			Text:    fmt.Sprintf("%d agents ended within a second, perhaps for a common reason: their restarts are spread out", len(t.ends)),
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
