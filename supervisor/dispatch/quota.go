package dispatch

import (
	"fmt"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// DefaultStored is how many bytes an agent without a setting may store within storedTime, and an
// external actor.
const DefaultStored = 1 << 30

// storedTime is the time within which what an agent stores is limited. Without an end of that time, a
// team that runs for weeks would come to a halt.
const storedTime = 24 * time.Hour

// quotas limit what agents and external actors add to the record. d.mu guards them.
type quotas struct {
	limits map[string]int64 // of agents, by their names; 0: no limit
	used   map[storer]*usage
}

// A storer is an agent or an external actor.
type storer struct {
	kind handlers.ActorKind
	name string
}

func storerOf(from *handlers.Actor) (s storer, limited bool) {
	return storer{from.Kind, from.Name}, from.Kind == handlers.Agent || from.Kind == handlers.External
}

// A usage is what an actor has stored, less what it may have stored again since. It is lost at a
// restart of the orchestrator.
type usage struct {
	bytes float64
	at    time.Time
}

// maxUsages is the number of actors of which the usage is known. Those that have used nothing are
// forgotten first.
const maxUsages = 10_000

// SetStored sets how many bytes each agent may store within a day, by its name. 0 means any number.
func SetStored(d *Dispatcher, limits map[string]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quotas.limits = limits
}

// limit returns how many bytes an actor may store; 0 means any number.
func (q *quotas) limit(of storer) int64 {
	if limit, set := q.limits[of.name]; set && of.kind == handlers.Agent {
		return limit
	}
	return DefaultStored
}

// exceeded returns an error if the sender of an input has stored as much as it may, and the input adds
// more. What it has begun it can always end.
func (q *quotas) exceeded(in *handlers.Input) *wire.Error {
	actor, limited := storerOf(&in.From)
	if len(q.used) == 0 || !limited || !adds(in.Message) {
		return nil
	}
	u, limit := q.used[actor], q.limit(actor)
	if u == nil || limit == 0 {
		return nil
	}
	u.pass(in.At, limit)
	if u.bytes < float64(limit) {
		return nil
	}
	return &wire.Error{
		Code:    wire.CodeLimited,
		Message: fmt.Sprintf("%s has stored %d bytes within a day, which is the limit: more is taken little by little", wire.Visible(in.From.Name), limit),
		Details: map[string]any{"reason": "stored", "limit": limit},
	}
}

// add counts bytes that an actor has stored.
func (q *quotas) add(from *handlers.Actor, bytes int64, now time.Time) {
	actor, limited := storerOf(from)
	limit := q.limit(actor)
	if bytes == 0 || limit == 0 || !limited {
		return
	}
	u := q.used[actor]
	if u == nil {
		q.forget(now)
		u = &usage{at: now}
		q.used[actor] = u
	}
	u.pass(now, limit)
	u.bytes += float64(bytes)
}

// forget makes room for one more usage.
func (q *quotas) forget(now time.Time) {
	if q.used == nil {
		q.used = make(map[storer]*usage)
	}
	for actor, u := range q.used {
		if len(q.used) < maxUsages {
			return
		}
		if u.pass(now, q.limit(actor)); u.bytes == 0 {
			delete(q.used, actor)
		}
	}
	for actor := range q.used {
		if len(q.used) < maxUsages {
			return
		}
		delete(q.used, actor)
	}
}

// pass takes off what may be stored again.
func (u *usage) pass(now time.Time, limit int64) {
	if past := now.Sub(u.at); past > 0 {
		u.bytes = max(0, u.bytes-float64(limit)*past.Seconds()/storedTime.Seconds())
		u.at = now
	}
}

// storedBy returns how many bytes of an outcome are stored for its input, with the artifacts that it
// refers to.
func storedBy(in *handlers.Input, out *handlers.Outcome) (bytes int64) {
	for i := range out.Records {
		bytes += int64(len(out.Records[i].Payload))
	}
	if r, ok := in.Message.(*wire.Request); ok && bytes > 0 {
		if c, ok := r.Body.(*wire.CompleteTask); ok {
			for i := range c.Artifacts {
				bytes += c.Artifacts[i].Size
			}
		}
	}
	return bytes
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
	if past := now.Sub(b.at); past > 0 && !b.at.IsZero() { // clocks may be set back
		b.spent = max(0, b.spent-past.Seconds()*b.rate)
	}
	b.at = now
	if b.spent+1 > b.burst {
		return false
	}
	b.spent++
	return true
}

// takeMore takes n more messages out, also beyond the limit, so that later ones have to wait.
func (b *bucket) takeMore(n int) { b.spent += float64(n) }
