package telemetry

import (
	"context"
	"math"
	"time"

	"orchestrator/wire"
)

const (
	// mostItems is how much may wait for who follows, and mostBytes how large the
	// facts of it may be.
	mostItems = 1024
	mostBytes = 16 << 20
)

// item is one thing that happened: a batch, the beginning of a request, or the end
// of one. An empty one says that the record is ahead.
type item struct {
	batch    *batch
	asked    *Asked
	answered *Answered
}

// batch is what was recorded together.
type batch struct {
	first, last int64
	facts       int
	bytes       int
	telling     []wire.Record // those of the facts that matter here
	began       time.Time
	took        time.Duration
}

// follow begins to follow the record.
func (t *Telemetry) follow() {
	t.began.Do(func() {
		ctx, giveUp := context.WithCancel(context.Background())
		t.giveUp = giveUp
		t.follows.Store(true)
		go t.run(ctx) // Close waits for it
	})
}

// pass hands a batch to who follows. It never waits: one that is too much is read
// again in the record.
func (t *Telemetry) pass(facts []wire.Record, b batch) {
	b.first, b.last = facts[0].Seq, facts[len(facts)-1].Seq
	held := 0
	for i := range facts {
		if matters(facts[i].Kind) {
			b.telling = append(b.telling, facts[i])
			held += len(facts[i].Payload)
		}
	}
	if t.held.Add(int64(held)) <= mostBytes && t.put(item{batch: &b}) {
		return
	}
	t.held.Add(-int64(held))
	select {
	case t.missed <- struct{}{}:
	default:
	}
}

// put never waits.
func (t *Telemetry) put(i item) bool {
	select {
	case t.queue <- i:
		return true
	default:
		t.tracing.drop(1)
		return false
	}
}

// run follows until the end. What is there then is still looked at.
func (t *Telemetry) run(ctx context.Context) {
	defer close(t.ended)
	var first item
	if t.tracing != nil { // before something is recorded the orchestrator cannot say what is open
		first, _ = t.next()
	}
	t.lookBack(ctx)
	for i, ok := first, true; ok; i, ok = t.next() {
		t.take(ctx, i)
	}
}

// next waits for the next item, which is empty when one is missing; false when there
// will be none.
func (t *Telemetry) next() (i item, ok bool) {
	select {
	case i = <-t.queue:
		return i, true
	case <-t.missed:
		return item{}, true
	case <-t.enough:
	}
	select {
	case i = <-t.queue:
		return i, true
	case <-t.missed:
		return item{}, true
	default:
		return item{}, false
	}
}

// lookBack learns what is open.
func (t *Telemetry) lookBack(ctx context.Context) {
	since := int64(math.MaxInt64) // what has ended matters only to spans
	if t.tracing != nil {
		since = t.work.past
	}
	behind, sessions, err := t.options.Hindsight(ctx, since)
	if err != nil {
		t.options.Warn("the tasks and sessions of earlier cannot be found: there are no spans and no figures of them", "error", err)
		behind = min(since, behind)
	}
	t.work.begin(behind, sessions)
	t.readOn(ctx, 0)
	t.work.goLive()
	close(t.caught)
}

// take looks at one item.
func (t *Telemetry) take(ctx context.Context, i item) {
	t.tracing.complain()
	switch {
	case i.batch != nil:
		for k := range i.batch.telling {
			t.held.Add(-int64(len(i.batch.telling[k].Payload)))
		}
		t.takeBatch(ctx, i.batch)
	case i.asked != nil:
		t.work.asked(i.asked)
	case i.answered != nil:
		t.work.answered(i.answered)
	default:
		t.readOn(ctx, 0)
	}
}

func (t *Telemetry) takeBatch(ctx context.Context, b *batch) {
	if b.first > t.work.last+1 { // one before it found no room
		t.readOn(ctx, b.first-1)
	}
	for k := range b.telling {
		if b.last <= t.work.last { // it was read ahead, and requests have come since
			t.work.partWith(&b.telling[k])
		}
		t.work.learn(&b.telling[k])
	}
	t.work.last = max(t.work.last, b.last)
	t.work.spans.batch(b)
}

// readOn reads the record up to a number; 0: to its end.
func (t *Telemetry) readOn(ctx context.Context, until int64) {
	for r, err := range t.options.Records(ctx, t.work.last) {
		if err != nil {
			if ctx.Err() == nil {
				t.options.Warn("the record cannot be read: there are spans and figures that are wrong now", "error", err)
			}
			break
		}
		if until > 0 && r.Seq > until {
			break
		}
		t.work.learn(&r)
		t.work.last = r.Seq
	}
	t.work.last = max(t.work.last, until)
}

// Asked notes that something is asked for. While more is told than can be sent
// it is only counted: there may be hundreds of thousands a second.
func (t *Telemetry) Asked(a Asked) {
	switch {
	case !t.follows.Load():
	case t.tracing.full():
		t.tracing.drop(1)
	default:
		t.put(item{asked: &a})
	}
}

// Answered notes an answer.
func (t *Telemetry) Answered(a Answered) {
	if t.follows.Load() {
		t.put(item{answered: &a})
	}
}
