package supervisor

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// Record is where facts are kept. Append adds them behind the last one, all or
// none, and returns when they will not be lost any more.
type Record interface {
	Append(ctx context.Context, last int64, batch []wire.Record) error
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)
	Keep(ctx context.Context, seq int64, state []byte) error
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]
}

// A dispatcher serializes inputs through the State, commits the resulting records and then
// delivers the letters. The goroutine that has inputs takes the lock,
// has the State decide about them and leaves; the facts are recorded by one
// goroutine, a batch at a time, while the next batch is being decided; and only
// then the letters of the batch leave. One sync of the disk serves all who
// waited for it.
//
// The lock is a lock and not a goroutine with an inbox because a hand-over
// costs more than most decisions: the goroutine that has read a request decides
// about it, and, when nothing is to be recorded before, answers it too.
type dispatcher struct {
	record     Record // nil: nothing is kept, and nothing waits for it
	log        hclog.Logger
	alarm      alarm
	audit      *audit
	watch      Hooks
	show       func([]wire.Record) // tells people what became true
	closed     func(*wire.Record)  // hears of each session that is over
	broke      func(error)         // the record takes nothing any more
	recipients recipients
	doors      atomic.Int64 // how many have asked at a door
	bells      notifier
	mail       postman
	artifacts  *artifacts    // nil: there is nowhere to put them
	limit      time.Duration // how long the record may take before those who wait are told
	sound      func() error  // why what is recorded would be lost; nil: nothing is asked

	mu        sync.Mutex // guards what follows
	state     *handlers.State
	filling   batch         // decided and not yet being recorded
	taken     chan struct{} // closed when the filling batch is taken; nil while nothing waits for that
	recording bool          // a batch is being recorded, or its letters are leaving
	broken    *wire.Error
	closing   bool
	timer     *time.Timer // for the next deadline
	due       time.Time

	wake chan struct{} // there is something to record
	done chan struct{} // closed when the recorder has ended

	last atomic.Int64 // the last fact that was recorded

	reads bool // the record is only read: nothing falls due, and no snapshot is kept

	appending atomic.Int64 // when the batch came to the record that it is taking, in nanoseconds; 0: none
	blocked   atomic.Int64 // when the record last took a batch for which it needed long

	// Of the recorder alone.
	kept     int64     // the last fact of the newest snapshot
	looked   time.Time // when sound was asked
	room     []byte    // for spelling
	snapshot struct {
		seq   int64
		state []byte
		tasks int // that it has; of the newest one that was kept, too
	}
	every   int          // snapshotEvery
	keeping atomic.Int64 // facts of the last snapshot, while it is made
}

// batch is what was decided together.
type batch struct {
	records []wire.Record
	letters []handlers.Letter
	settled []chan struct{} // closed when all of it is recorded and told
	bytes   int             // of the records
}

func (b *batch) empty() bool { return len(b.records)+len(b.letters)+len(b.settled) == 0 }

func (b *batch) clear() {
	clear(b.records)
	clear(b.letters)
	clear(b.settled)
	b.records, b.letters, b.settled, b.bytes = b.records[:0], b.letters[:0], b.settled[:0], 0
}

func newDispatcher(o Options) *dispatcher {
	d := &dispatcher{
		reads: o.ReadOnly, record: o.Record, log: o.Log, watch: o.Watch, limit: o.Rules.RequestTimeout, sound: o.Sound, every: snapshotEvery,
		state: handlers.New(o.Rules), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if d.limit == 0 {
		d.limit = 30 * time.Second
	}
	d.mail.dispatcher, d.alarm.log = d, o.Log
	d.timer = time.AfterFunc(time.Hour, d.expire)
	d.timer.Stop()
	if o.StateDir != "" {
		d.audit = newAudit(o.StateDir, o.Log)
		d.artifacts = newArtifacts(o.StateDir, &d.alarm)
	}
	return d
}

// restore makes the State of what was recorded in earlier lives.
func (d *dispatcher) restore(ctx context.Context, rules handlers.Rules) error {
	if d.record == nil {
		return nil
	}
	seq, text, err := d.record.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("reading the kept state: %w", err)
	}
	if state, ok := handlers.Restore(rules, text); seq > 0 && ok && state.Seq() == seq {
		d.state, d.kept, d.snapshot.tasks = state, seq, state.Tasks()
	}
	for r, err := range d.record.Records(ctx, d.state.Seq()) {
		if err == nil {
			err = d.state.Apply(r)
		}
		if err != nil {
			return err
		}
	}
	d.last.Store(d.state.Seq())
	return nil
}

// submit has inputs decided about. The verdicts on them are for the audit: one
// an input, nil when it was granted. What is to be told at once is told here.
func (d *dispatcher) submit(inputs []handlers.Input, w *work) {
	w.verdicts, w.letters, w.records, w.waiting = w.verdicts[:0], w.letters[:0], w.records[:0], 0
	d.watch.asked(inputs)
	for next := 0; next < len(inputs); {
		d.lookUp(inputs[next:])
		d.mu.Lock()
		for next < len(inputs) && d.decide(&inputs[next], w) {
			next++
		}
		d.rearm()
		d.mu.Unlock()
		if next < len(inputs) { // so much is being recorded: a look sees more when it is
			d.settle()
		}
	}
	d.audit.requests(inputs, w)
	d.watch.judged(inputs, w.verdicts)
	if len(w.records) > 0 {
		d.show(w.records)
	}
	d.deliver(w.letters, &w.room)
	d.heed(w.records)
	clear(w.letters)
}

// work is what a goroutine that submits keeps from one time to the next.
type work struct {
	verdicts []*wire.Error
	waiting  int // requests that are not answered now: something that is to come answers them, or nothing does
	letters  []handlers.Letter
	records  []wire.Record
	room     []byte // for spelling
	trail    []byte // for the audit
}

// decide is the turn of one input. d.mu must be held. It says false when what was
// looked up for the input is too old: that, and those behind it, come again.
func (d *dispatcher) decide(in *handlers.Input, w *work) bool {
	if d.broken != nil && d.refuse(in, w) {
		return true
	}
	if saying(in) {
		in.Took = time.Since(in.At)
	}
	out := d.state.Handle(*in)
	if out.Again {
		return false
	}
	if r, ok := in.Message.(*wire.Request); ok && quiet(r.Form) && out.Refused == nil {
		out.Waits = true // for an answer that it never gets
		if len(out.Records) > 0 {
			out.Letters = append(out.Letters, unspoken(in, r))
		}
	}
	d.take(out, w)
	return true
}

// take queues the records and letters of an outcome. d.mu must be held.
func (d *dispatcher) take(out handlers.Outcome, w *work) {
	if out.Fault != nil {
		d.log.Error("a decision failed, which is a fault of the orchestrator", "error", out.Fault)
	}
	w.verdicts = append(w.verdicts, out.Refused)
	if out.Waits {
		w.waiting++
	}
	switch {
	case d.broken != nil: // people see what happens; what was decided did not become true
		w.records = appendHappenings(w.records, out.Records)
		w.letters = appendRefusals(w.letters, out.Letters, d.broken)
		return
	case d.record == nil:
		w.records = append(w.records, out.Records...)
		w.letters = append(w.letters, out.Letters...)
		return
	}
	if len(out.Records) == 0 && !d.recording && d.filling.empty() {
		w.letters = append(w.letters, out.Letters...)
		return
	}
	d.filling.letters = append(d.filling.letters, w.letters...) // none overtakes those before it
	clear(w.letters)
	w.letters = w.letters[:0]
	d.filling.add(out)
	d.rouse()
}

// add puts an outcome into a batch.
func (b *batch) add(out handlers.Outcome) {
	b.records = append(b.records, out.Records...)
	b.letters = append(b.letters, out.Letters...)
	for i := range out.Records {
		b.bytes += len(out.Records[i].Payload)
	}
}

const (
	// crowd is how many facts, and crowdBytes how much of them, may wait to be
	// recorded before those who bring more have to wait.
	crowd      = 4096
	crowdBytes = 4 << 20
)

// yield waits while too much waits to be recorded. It is for those who bring
// what agents say, and who may wait: the disk sets their pace. What the
// orchestrator itself has to note never waits.
func (d *dispatcher) yield() {
	d.mu.Lock()
	if len(d.filling.records) < crowd && d.filling.bytes < crowdBytes {
		d.mu.Unlock()
		return
	}
	if d.taken == nil {
		d.taken = make(chan struct{})
	}
	taken := d.taken
	d.mu.Unlock()
	<-taken
}

// refuse answers a request that comes after the record has broken: nothing can
// become true any more. What the supervisor sees is decided about all the same,
// so that people are told; it is not recorded.
func (d *dispatcher) refuse(in *handlers.Input, w *work) bool {
	if in.From.Kind == handlers.Orchestrator {
		return false
	}
	w.verdicts = append(w.verdicts, d.broken)
	if r, ok := in.Message.(*wire.Request); ok {
		w.letters = append(w.letters, handlers.Letter{To: in.From, Request: r.ID, Form: r.Form, Refusal: d.broken})
	}
	return true
}

func (d *dispatcher) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// rearm sets the timer for the next deadline. d.mu must be held.
func (d *dispatcher) rearm() {
	if d.reads {
		return
	}
	due, some := d.state.Due()
	switch {
	case !some:
		due = time.Time{}
		if !d.due.IsZero() {
			d.timer.Stop()
		}
	case !due.Equal(d.due) && !d.closing:
		d.timer.Reset(time.Until(due))
	}
	d.due = due
}

// tardy is how late a deadline is noticed when the orchestrator has stood still
// before: it was stopped, or its machine slept.
const tardy = 10 * time.Second

// long is how long a batch takes when the disk is blocked, and how long what it held back needs
// to leave afterwards.
const long = time.Second

// expire is what the timer does.
func (d *dispatcher) expire() {
	now := time.Now()
	d.mu.Lock()
	late := !d.due.IsZero() && now.Round(0).Sub(d.due) > tardy
	d.due = time.Time{} // so that it is set again
	d.mu.Unlock()
	began := d.appending.Load()
	blocked := began != 0 && now.Sub(time.Unix(0, began)) > long || now.Sub(time.Unix(0, d.blocked.Load())) < long
	d.submit([]handlers.Input{{At: now, Message: wire.Tick{Late: late, Blocked: blocked}}}, new(work))
}

// refused notes that something was refused, or answered, before a decision
// about it. The id is given as it stood, or nil.
func (d *dispatcher) refused(at time.Time, from handlers.Actor, kind string, id []byte, verdict *wire.Error) {
	d.watch.refused(from, kind, verdict)
	d.audit.note(at, from, kind, id, verdict)
}

// note has something decided about that the orchestrator itself says.
func (d *dispatcher) note(m wire.Message) {
	d.submit([]handlers.Input{{At: time.Now(), Message: m}}, new(work))
}

// settle waits until everything that was decided so far is recorded and told.
func (d *dispatcher) settle() {
	d.mu.Lock()
	if !d.recording && d.filling.empty() || d.broken != nil {
		d.mu.Unlock()
		return
	}
	settled := make(chan struct{})
	d.filling.settled = append(d.filling.settled, settled)
	d.rouse()
	d.mu.Unlock()
	<-settled
}

// look reads the State. What it sees may not be recorded yet: a caller that shows it
// calls settle first.
func (d *dispatcher) look(see func(*handlers.State)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	see(d.state)
}

// chance draws what ids and keys are made of.
func chance() (bytes [16]byte) {
	_, _ = rand.Read(bytes[:]) // it does not fail
	return bytes
}
