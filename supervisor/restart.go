package supervisor

import (
	"math"
	"slices"
	"time"
)

// Policy says after which exits an agent starts again.
type Policy string

// The policies.
const (
	Always    Policy = "always"
	OnFailure Policy = "on-failure"
	Never     Policy = "never"
)

// Restart is how an agent is started again.
type Restart struct {
	Policy     Policy
	Delay      time.Duration // before the first restart
	Factor     float64       // what each further delay is longer by
	MaxDelay   time.Duration
	Jitter     float64       // part of the delay that chance may add or take
	ResetAfter time.Duration // up this long: the delay starts again
	Burst      int           // more restarts than this within Window: give up
	Window     time.Duration
	Permanent  []int // exit codes that another try cannot fix
}

// verdict is what follows from an end.
type verdict struct {
	again   bool
	delay   time.Duration
	attempt int    // of burst, within the window
	why     string // when not again: what a person should know; "" when all is well
}

// history remembers what the arithmetic needs. All its times are monotonic, so
// a clock that is set changes nothing.
type history struct {
	streak   int         // restarts since the agent was last up long enough
	restarts []time.Time // within the window, oldest first
	endings  []string    // how it ended before those restarts
}

// after decides what follows when an agent ended at now, having been up that
// long. chance is in [0, 1).
func (h *history) after(r Restart, code int, cause string, up time.Duration, now time.Time, chance float64) verdict {
	failed := code != 0
	switch {
	case failed && slices.Contains(r.Permanent, code):
		return verdict{why: cause + " is permanent: another try would not mend it"}
	case r.Policy == Never && failed:
		return verdict{why: cause + ", and its restart policy is never"}
	case r.Policy == Never, r.Policy == OnFailure && !failed:
		return verdict{}
	}
	return h.again(r, cause, up, now, chance)
}

// again is after for ends that are followed by a restart, if not by too many.
func (h *history) again(r Restart, cause string, up time.Duration, now time.Time, chance float64) verdict {
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
	delay := r.delay(h.streak, chance)
	h.streak++
	return verdict{again: true, delay: delay, attempt: len(h.restarts)}
}

// delay is min(max, base·factorⁿ), spread by jitter to both sides.
func (r Restart) delay(n int, chance float64) time.Duration {
	delay := math.Min(float64(r.Delay)*math.Pow(r.Factor, float64(n)), float64(r.MaxDelay))
	return time.Duration(delay * (1 + r.Jitter*(2*chance-1)))
}

// forget starts the arithmetic anew: a person asked for the start.
func (h *history) forget() { *h = history{} }
