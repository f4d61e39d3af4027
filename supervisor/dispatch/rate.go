package dispatch

import (
	"fmt"
	"math"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/line"
)

// rates limit the messages of a run, by their number and by their bytes.
type rates struct {
	messages, bytes bucket
	vital           bucket    // of events that must not be lost, beyond the other two
	paced           time.Time // the end of the last wait
}

const (
	// maxPace is the longest wait of a message. At the default rate a message waits for 10 ms at most, and
	// one after two lines of the maximum length for two seconds.
	maxPace = 2 * time.Second

	vitalRate  = 10 // a second
	vitalBurst = 50
)

// isVital reports whether an event must not be lost: it ends a task, or counts against a budget.
func isVital(event string) bool { return event == "error" || event == "usage" }

// rates returns the limits of a run, without one for bytes.
func (p Protocol) rates() rates {
	return rates{messages: bucket{rate: float64(p.Rate), burst: float64(p.Burst)}, vital: bucket{rate: vitalRate, burst: vitalBurst}}
}

// pace waits until the limits allow a message, for maxPace at most.
func (r *rates) pace(now time.Time) {
	wait := r.messages.wait(now, 1)
	if r.bytes.rate > 0 {
		wait = max(wait, r.bytes.wait(now, 0))
	}
	if wait <= 0 {
		return
	}
	time.Sleep(min(wait, maxPace))
	r.paced = time.Now()
	r.messages.drain(r.paced)
	r.bytes.drain(r.paced)
}

// count counts a message without a look at the limits.
func (r *rates) count(size int) {
	r.messages.spend(1)
	r.bytes.spend(float64(size))
}

// admit counts a message, or returns an error if a limit is exceeded. A message that begins within the limit
// of bytes is taken, however long it is.
func (r *rates) admit(now time.Time, size int, vital bool) *wire.Error {
	if now.Before(r.paced) { // the chunk came before the wait
		now = r.paced
	}
	var err *wire.Error
	if wait := r.messages.wait(now, 1); wait > 0 {
		err = tooFast("protocol.rate", fmt.Sprintf("%.0f", r.messages.rate), "messages", wait)
		err.Details["rate"], err.Details["burst"] = r.messages.rate, r.messages.burst
	} else if r.bytes.rate > 0 && r.bytes.wait(now, 0) > 0 {
		err = tooFast("limits.rate_bytes", line.FormatSize(int64(r.bytes.rate)), "bytes", r.bytes.wait(now, 0))
		err.Details["rate_bytes"] = r.bytes.rate
	}
	if err != nil && !(vital && r.vital.take(now)) {
		return err
	}
	r.count(size)
	return nil
}

// tooFast returns the refusal of a message that exceeds a limit by time. The sender may send it again after
// the wait.
func tooFast(setting, limit, what string, wait time.Duration) *wire.Error {
	after := int64(math.Ceil(float64(wait) / float64(time.Millisecond)))
	return &wire.Error{
		Code:    wire.CodeLimited,
		Message: fmt.Sprintf("too many %s: %s = %s a second. Wait %d ms", what, setting, limit, after),
		Details: map[string]any{"setting": setting, "retry_after_ms": after},
	}
}

// A bucket limits how many messages an actor may send: burst at once, and then rate a second. A
// new bucket with both fields set is full.
type bucket struct {
	rate, burst float64

	spent float64
	at    time.Time
}

// take takes one message out. It reports false if the limit is reached.
func (b *bucket) take(now time.Time) bool {
	if b.wait(now, 1) > 0 {
		return false
	}
	b.spend(1)
	return true
}

// wait returns how long it takes until n more can be taken out.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	b.drain(now)
	over := b.spent + n - b.burst
	if over <= 0 {
		return 0
	}
	return max(time.Duration(math.Ceil(over/b.rate*float64(time.Second))), 1)
}

// drain subtracts the amount that has become free since the last call.
func (b *bucket) drain(now time.Time) {
	if past := now.Sub(b.at); past > 0 && !b.at.IsZero() { // clocks may be set back
		b.spent = max(0, b.spent-past.Seconds()*b.rate)
	}
	b.at = now
}

// spend takes n more messages out, also beyond the limit, so that later ones have to wait. A large debt is
// not kept: it would refuse later messages for long.
func (b *bucket) spend(n float64) { b.spent = min(b.spent+n, max(2*b.burst, n)) }
