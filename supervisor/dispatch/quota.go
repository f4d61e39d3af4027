package dispatch

import (
	"fmt"
	"math"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/line"
)

// defaultStored is the limit of an external actor, and of an agent without a setting, in bytes.
const defaultStored = 1 << 30

// drainTime is how long a full usage takes to drain. Without it, a team that runs for weeks would reach
// its limit for good.
const drainTime = 24 * time.Hour

// quotas limit additions of agents and external actors to the record. d.mu guards them.
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
	return storer{kind: from.Kind, name: from.Name}, from.Kind == handlers.Agent || from.Kind == handlers.External
}

// A usage is the amount that an actor has stored, less the amount that has become free again with time. It is lost at a
// restart of the orchestrator.
type usage struct {
	bytes float64
	at    time.Time
}

// maxUsages is the number of actors with a known usage. Actors with the smallest usage are forgotten first.
const maxUsages = 10_000

// SetStored sets how many bytes each agent may store within a day, by its name. 0 means any number.
func (d *Dispatcher) SetStored(limits map[string]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quotas.limits = limits
}

// limit returns how many bytes an actor may store; 0 means any number.
func (q *quotas) limit(of storer) int64 {
	if limit, set := q.limits[of.name]; set && of.kind == handlers.Agent {
		return limit
	}
	return defaultStored
}

// maxLastWord is the largest result that an actor may hand in when it has stored twice its limit, in bytes.
const maxLastWord = 4 << 10

// exceeded returns an error if the sender of an input has stored as much as it may, and the input adds more. The sender
// can always end its tasks, but with a short result beyond twice the limit.
func (q *quotas) exceeded(in *handlers.Input) *wire.Error {
	if adds(in.Message) {
		return q.beyond(&in.From, in.At, 1, "space is available again within a day")
	}
	if heft(in.Message) > maxLastWord {
		return q.beyond(&in.From, in.At, 2, "end the task with a result of at most "+line.FormatSize(maxLastWord))
	}
	return nil
}

// beyond returns an error if an actor has stored so many times its limit.
func (q *quotas) beyond(from *handlers.Actor, now time.Time, times int64, help string) *wire.Error {
	actor, limited := storerOf(from)
	if !limited {
		return nil
	}
	u, limit := q.used[actor], q.limit(actor)
	if u == nil || limit == 0 {
		return nil
	}
	u.pass(now, limit)
	over := u.bytes - float64(times*limit)
	if over < 0 {
		return nil
	}
	often := ""
	if times > 1 {
		often = "twice "
	}
	return &wire.Error{
		Code:    wire.CodeLimited,
		Message: fmt.Sprintf("%s has stored %slimits.stored = %s: %s", wire.Visible(from.Name), often, line.FormatSize(limit), help),
		Details: map[string]any{
			"reason": "stored", "limit": limit, "setting": "limits.stored",
			"retry_after_ms": 1 + int64(over/float64(limit)*float64(drainTime.Milliseconds())),
		},
	}
}

// heft returns the size of the result and artifacts in a message that ends a task.
func heft(m wire.Message) int64 {
	bytes := int64(len(resultOf(m)))
	switch m := m.(type) {
	case *wire.Request:
		switch body := m.Body.(type) {
		case *wire.CompleteTask:
			for i := range body.Artifacts {
				bytes += max(body.Artifacts[i].Size, int64(len(body.Artifacts[i].Content)))
			}
		case *wire.FailTask:
			bytes += int64(len(body.Error))
		}
	case *wire.AgentEvent:
		switch body := m.Body.(type) {
		case *delegation.Response:
			bytes += contents(body)
		case *activity.Trouble:
			bytes += int64(len(body.Error) + len(body.Stack))
		}
	}
	return bytes
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

// forget makes room for one more usage: the smallest goes.
func (q *quotas) forget(now time.Time) {
	if q.used == nil {
		q.used = make(map[storer]*usage)
	}
	if len(q.used) < maxUsages {
		return
	}
	var smallest storer
	least := math.MaxFloat64
	for actor, u := range q.used {
		if u.pass(now, q.limit(actor)); u.bytes < least {
			smallest, least = actor, u.bytes
		}
	}
	delete(q.used, smallest)
}

// pass subtracts the amount that has become free since the last call.
func (u *usage) pass(now time.Time, limit int64) {
	if past := now.Sub(u.at); past > 0 {
		u.bytes = max(0, u.bytes-float64(limit)*past.Seconds()/drainTime.Seconds())
		u.at = now
	}
}

// storedBy returns how many bytes of an outcome are stored for its input, with artifacts that are in files. The
// artifacts of a response are counted when it comes.
func storedBy(in *handlers.Input, out *handlers.Outcome) (bytes int64) {
	for i := range out.Records {
		bytes += int64(len(out.Records[i].Payload))
	}
	if r, ok := in.Message.(*wire.Request); ok && bytes > 0 {
		if c, ok := r.Body.(*wire.CompleteTask); ok {
			for i := range c.Artifacts {
				if delegation.IsArtifactRef(c.Artifacts[i].Ref) {
					bytes += c.Artifacts[i].Size
				}
			}
		}
	}
	return bytes
}

// detach takes the large artifacts of a response into files, and counts their bytes.
func (d *Dispatcher) detach(from *handlers.Actor, r *delegation.Response, now time.Time) *wire.Error {
	before := contents(r)
	if before > maxLastWord {
		d.mu.Lock()
		err := d.quotas.beyond(from, now, 2, "end the task without artifacts")
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if err := d.options.Artifacts.Detach(r); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quotas.add(from, before-contents(r), now)
	return nil
}

func contents(r *delegation.Response) (bytes int64) {
	for i := range r.Artifacts {
		bytes += int64(len(r.Artifacts[i].Content))
	}
	return bytes
}
