package telemetry

import (
	"context"
	"math"
	"time"

	"orchestrator/wire"
)

const (
	// maxItems is the number of items that may wait in the queue, and maxBytes the size of
	// their facts.
	maxItems = 1024
	maxBytes = 16 << 20
)

// follow starts the goroutine that follows the record.
func (t *Telemetry) follow() {
	t.began.Do(func() {
		ctx, giveUp := context.WithCancel(context.Background())
		t.giveUp = giveUp
		t.follows.Store(true)
		go t.run(ctx) // Close waits for it
	})
}

// pass queues a batch without blocking. A batch that does not fit is read from the record
// later.
func (t *Telemetry) pass(facts []wire.Record, b batch) {
	b.first, b.last = facts[0].Seq, facts[len(facts)-1].Seq
	held := 0
	for i := range facts {
		if matters(facts[i].Kind) {
			b.telling = append(b.telling, facts[i])
			held += len(facts[i].Payload)
		}
	}
	if t.held.Add(int64(held)) <= maxBytes && t.put(item{batch: &b}) {
		return
	}
	t.held.Add(-int64(held))
	t.look()
}

// look makes the goroutine that follows the record look at it, without blocking.
func (t *Telemetry) look() {
	select {
	case t.missed <- struct{}{}:
	default:
	}
}

// put queues an item without blocking, and reports whether there was room.
func (t *Telemetry) put(i item) bool {
	select {
	case t.queue <- i:
		return true
	default:
		t.tracing.drop(1)
		return false
	}
}

// run handles items until the end, including items that are queued then.
func (t *Telemetry) run(ctx context.Context) {
	defer close(t.ended)
	var first item
	if t.tracing != nil { // open work is unknown until the first record
		first, _ = t.next()
	}
	t.lookBack(ctx)
	for i, ok := first, true; ok; i, ok = t.next() {
		t.take(ctx, i)
	}
	t.work.settled(func(*unsettled) bool { return true })
}

// next waits for the next item, which is empty if a batch was missed. It returns false if there
// will be no more.
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

// lookBack reads the open work from the record.
func (t *Telemetry) lookBack(ctx context.Context) {
	since := int64(math.MaxInt64) // ended work is needed only for spans
	if t.tracing != nil {
		since = t.work.past
	}
	behind, sessions, err := t.options.Team.ResumePoint(ctx, since)
	if err != nil {
		t.options.Warn("earlier tasks and sessions cannot be found: they have no spans and no metrics", "error", err)
		behind = min(since, behind)
	}
	t.work.begin(behind, sessions)
	t.readOn(ctx, 0)
	t.work.goLive()
}

// take handles one item.
func (t *Telemetry) take(ctx context.Context, i item) {
	t.tracing.complain()
	now := time.Now()
	t.work.settled(func(u *unsettled) bool { return !u.until.After(now) })
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
	case i.mark != nil:
		select {
		case <-t.missed: // a batch before the mark may have been missed
			t.readOn(ctx, 0)
		default:
		}
		close(i.mark)
	default:
		t.readOn(ctx, 0)
	}
}

func (t *Telemetry) takeBatch(ctx context.Context, b *batch) {
	if b.first > t.work.last+1 { // an earlier batch did not fit
		t.readOn(ctx, b.first-1)
	}
	for k := range b.telling {
		if b.last <= t.work.last { // the batch was read from the record already
			t.work.partWith(&b.telling[k])
		}
		t.work.learn(&b.telling[k])
	}
	t.work.last = max(t.work.last, b.last)
	t.work.spans.batch(b)
}

// readOn reads the record up to a number, or to its end if until is 0.
func (t *Telemetry) readOn(ctx context.Context, until int64) {
	for r, err := range t.options.Team.Records(ctx, t.work.last) {
		if err != nil {
			if ctx.Err() == nil {
				t.options.Warn("the record cannot be read: some spans and metrics are wrong now", "error", err)
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

// Asked begins the span of a request. If the sender has no room, the span is only counted as
// dropped, because there may be hundreds of thousands of requests a second.
func (t *Telemetry) Asked(a Asked) {
	switch {
	case !t.follows.Load():
	case t.tracing.full():
		t.tracing.drop(1)
	default:
		t.put(item{asked: &a})
	}
}

// Answered ends the span of a request.
func (t *Telemetry) Answered(a Answered) {
	if t.follows.Load() {
		t.put(item{answered: &a})
	}
}
