package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// soundEvery is how often the recorder checks an idle record. soundAfter is how long a batch
// relies on the last check.
const (
	soundEvery = time.Second
	soundAfter = 100 * time.Millisecond
)

// Run commits batches until Close is called and the last batch is committed. With a record, it must run in a separate
// goroutine.
func (d *Dispatcher) Run() {
	defer close(d.done)
	var b batch
	var look <-chan time.Time
	if d.options.Check != nil {
		ticker := time.NewTicker(soundEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for d.next(&b, look) {
		d.write(&b)
		b.clear()
	}
}

// next waits for a batch and swaps it for the empty one. While it waits, it checks the record
// whenever look fires.
func (d *Dispatcher) next(empty *batch, look <-chan time.Time) bool {
	for {
		d.gather()
		d.mu.Lock()
		if !d.filling.empty() {
			*empty, d.filling = d.filling, *empty
			d.recording = true
			if d.taken != nil {
				close(d.taken)
				d.taken = nil
			}
			d.takeSnapshot(false)
			d.mu.Unlock()
			return true
		}
		d.recording = false
		if d.closing {
			d.takeSnapshot(true)
			d.broken = cmp.Or(d.broken, ErrOver) // later requests are refused: the HTTP server still runs
			d.mu.Unlock()
			return false
		}
		d.mu.Unlock()
		select {
		case <-d.wake:
		case <-look:
			if err := d.inPlace(0); err != nil {
				d.leave(err)
			}
		}
	}
}

// maxGathered is the number of records that makes a batch large enough to be committed at once.
const maxGathered = 64

// gather lets other goroutines that are ready add to the batch, as long as it grows. Each caller over HTTP has its own
// goroutine, and a commit of a few records costs nearly as much as one of many. No time passes if no goroutine is
// ready.
func (d *Dispatcher) gather() {
	for last := 0; ; runtime.Gosched() {
		d.mu.Lock()
		n := len(d.filling.records)
		d.mu.Unlock()
		if n <= last || n >= maxGathered {
			return
		}
		last = n
	}
}

// inPlace returns an error if the record was moved or deleted. It does not check again while
// the last check is younger than relies.
func (d *Dispatcher) inPlace(relies time.Duration) error {
	now := time.Now()
	if d.options.Check == nil || now.Sub(d.looked) < relies {
		return nil
	}
	d.looked = now
	return d.options.Check.Sound()
}

// leave handles the loss of a record while no batch was being committed.
func (d *Dispatcher) leave(cause error) {
	if !d.intact() {
		return
	}
	var b batch
	d.breakOff(cause, &b)
	d.deliver(b.letters, &d.room)
	d.options.Owner.RecordBroke(fmt.Errorf("the record cannot be written: %w", cause))
}

// write commits a batch and then delivers its letters.
func (d *Dispatcher) write(b *batch) {
	var broke error
	if len(b.records) > 0 && d.intact() {
		if broke = d.append(b); broke != nil {
			d.breakOff(broke, b)
		} else {
			d.last.Add(int64(len(b.records)))
			d.notifier.notify(b.records)
			d.mail.notify(b.records)
		}
	}
	d.deliver(b.letters, &d.room) // without the answers that overdue has sent
	if len(b.records) > 0 {
		d.options.Audience.Publish(b.records)
		d.reportClosed(b.records)
	}
	for _, settled := range b.settled {
		close(settled)
	}
	if broke != nil { // after the delivery, because the stop ends the waiting callers
		d.options.Owner.RecordBroke(fmt.Errorf("the record cannot be written: %w", broke))
	}
	d.keepSnapshot()
}

// append makes the records of a batch durable. No overdue error is sent after it returns, so
// that a request gets only one answer.
func (d *Dispatcher) append(b *batch) error {
	if err := d.inPlace(soundAfter); err != nil {
		return err
	}
	overdue := time.AfterFunc(d.limit, func() {
		for {
			d.overdue(b)
			select {
			case <-d.appended:
				return
			case <-time.After(d.limit): // for later callers
			}
		}
	})
	began := time.Now()
	d.appending.Store(began.UnixNano())
	err := d.record.Append(context.Background(), d.last.Load(), b.records)
	d.appending.Store(0)
	took := time.Since(began)
	if took > slowCommit {
		d.blocked.Store(time.Now().UnixNano())
	}
	if !overdue.Stop() {
		d.appended <- struct{}{}
	}
	if err == nil && d.options.Watch.Meter != nil {
		d.options.Watch.Meter.Recorded(b.records, began, took)
	}
	return err
}

func (d *Dispatcher) intact() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken == nil
}

// breakOff handles a failed commit. Decisions that are not durable are not delivered: their
// requests are refused, their notices are dropped, and the orchestrator stops.
func (d *Dispatcher) breakOff(cause error, b *batch) {
	d.log.Error("the record cannot be written: all requests are refused, and everything is stopped in order", "error", cause)
	d.mu.Lock()
	if d.options.Check != nil {
		d.broken = d.options.Check.Deposed(cause)
	}
	if d.broken == nil {
		d.broken = &wire.Error{
			Code:    wire.CodeInternal,
			Message: "the record cannot be written, and the orchestrator is stopping; your request may not have been carried out",
		}
	}
	refused := appendRefusals(b.letters[:0], b.letters, d.broken)
	b.letters = appendRefusals(refused, d.filling.letters, d.broken)
	d.filling.letters = d.filling.letters[:0]
	b.records = appendHappenings(b.records[:0], b.records)
	d.filling.records = appendHappenings(d.filling.records[:0], d.filling.records)
	d.mu.Unlock()
}

// appendHappenings appends the records of events that have already happened. They are still
// shown, without a number. Decisions that were not committed are dropped.
func appendHappenings(some, records []wire.Record) []wire.Record {
	for _, r := range records {
		if state.Happening(r.Kind) {
			r.Seq = 0
			some = append(some, r)
		}
	}
	return some
}

// appendRefusals appends a refusal for each answer among letters.
func appendRefusals(some, letters []handlers.Letter, why *wire.Error) []handlers.Letter {
	for _, l := range letters {
		if isAnswer(l) {
			some = append(some, handlers.Letter{To: l.To, Request: l.Request, Form: l.Form, Refusal: why})
		}
	}
	return some
}

// overdue sends an error to callers that wait for a blocked commit. The commit may still
// succeed, and then their requests are granted. A repeated request gets the real result.
func (d *Dispatcher) overdue(b *batch) {
	why := d.slow()
	d.mu.Lock()
	late := appendRefusals(nil, b.letters, why)
	late = appendRefusals(late, d.filling.letters, why)
	b.letters, d.filling.letters = slices.DeleteFunc(b.letters, isAnswer), slices.DeleteFunc(d.filling.letters, isAnswer)
	d.mu.Unlock()
	if len(late) == 0 {
		return
	}
	d.log.Error("callers that wait for a commit get an error", "waiting_for", d.limit.String(), "error", why.Message)
	d.deliver(late, new([]byte))
}

// slow returns the error for callers that wait for a commit too long.
func (d *Dispatcher) slow() *wire.Error {
	if stalled := d.stall.reason(); stalled != nil {
		return unrecorded(stalled)
	}
	by := "the disk has not taken the record"
	if d.options.Warm != nil {
		by = "the other hubs, or the server of the record, have not confirmed it"
	}
	return &wire.Error{Code: wire.CodeTimeout, Message: fmt.Sprintf("%s for %s; your request may still be carried out", by, d.limit)}
}

// isAnswer reports whether a letter answers a request. A DeliveryError has no request.
func isAnswer(l handlers.Letter) bool {
	_, unasked := l.Payload.(*session.DeliveryError)
	return l.Notice == "" && !isLine(&l) && !unasked
}

// Close commits and delivers everything that was decided, and waits for the end of Run. Later
// inputs are refused.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closing = true
	d.timer.Stop()
	d.mu.Unlock()
	if d.record != nil {
		d.rouse()
		<-d.done
		d.snapshots.cancel()
		d.keepSnapshot()
		d.keeping.Store(0)
	}
	d.mail.close()
	d.audit.close()
}

// reportClosed tells the Owner about closed sessions. It runs after the letters are delivered, so
// an agent gets its last message before it is stopped. Restored facts are not reported.
func (d *Dispatcher) reportClosed(records []wire.Record) {
	for i := range records {
		if records[i].Kind == events.SessionClosed {
			d.options.Owner.SessionClosed(&records[i])
		}
	}
}
