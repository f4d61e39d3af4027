package dispatch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A Dispatcher serializes inputs through the State, commits the resulting records and then
// delivers the letters. The goroutine that has inputs takes the lock, lets the State decide
// about them and leaves. One goroutine commits the records, a batch at a time, while the next
// batch is being decided. The letters of a batch leave after its commit. One sync of the disk
// serves all inputs of a batch.
//
// The Dispatcher is a lock and not a goroutine with an inbox, because a hand-over costs more
// than most decisions. The goroutine that has read a request decides about it. If no record
// must be committed first, it also delivers the answer.
type Dispatcher struct {
	options    Options
	record     Record
	log        hclog.Logger
	audit      *audit
	recipients recipients
	callers    atomic.Int64 // number of requests over HTTP so far
	notifier   notifier
	mail       postman
	limit      time.Duration // how long a commit may take before waiting callers get an error

	mu        sync.Mutex // guards the fields below
	state     *handlers.State
	version   uint64 // grows when state changes
	quotas    quotas
	filling   batch         // decided, but not yet being committed
	taken     chan struct{} // closed when the filling batch is taken; nil while no goroutine waits
	recording bool          // a batch is being committed or delivered
	broken    *wire.Error
	full      atomic.Pointer[wire.Error] // why additions are refused; nil if they are not
	closing   bool
	timer     *time.Timer // for the next deadline
	due       time.Time
	clock     clock

	wake     chan struct{} // signals the recorder
	done     chan struct{} // closed when the recorder has ended
	appended chan struct{} // ends the errors of overdue callers

	last  atomic.Int64 // number of the last committed fact
	stall stall

	appending atomic.Int64 // when the running Append began, in Unix nanoseconds; 0: none runs
	blocked   atomic.Int64 // when the last slow Append ended, in Unix nanoseconds

	// Used only by the recorder.
	looked    time.Time // when sound was last called
	room      []byte    // for spelling
	snapshots *snapshots
	keeping   atomic.Int64 // facts of the last snapshot, while it is made
}

// A batch holds records and letters that are committed together.
type batch struct {
	records []wire.Record
	letters []handlers.Letter
	settled []chan struct{} // closed when the whole batch is committed and delivered
	bytes   int             // size of the records
}

func (b *batch) empty() bool { return len(b.records)+len(b.letters)+len(b.settled) == 0 }

func (b *batch) clear() {
	clear(b.records)
	clear(b.letters)
	clear(b.settled)
	b.records, b.letters, b.settled, b.bytes = b.records[:0], b.letters[:0], b.settled[:0], 0
}

// New returns a Dispatcher with an empty State. Restore fills it from the record, and Run
// commits its records.
func New(o Options) *Dispatcher {
	o = o.complete()
	d := &Dispatcher{
		options: o, record: o.Record, log: o.Log, limit: o.Rules.RequestTimeout, snapshots: newSnapshots(),
		state: handlers.New(o.Rules), wake: make(chan struct{}, 1), done: make(chan struct{}), appended: make(chan struct{}), stall: stall{begun: make(chan struct{})},
		clock: newClock(o.Clock, time.Now()),
	}
	if d.limit == 0 {
		d.limit = 30 * time.Second
	}
	d.mail.dispatcher = d
	d.timer = time.AfterFunc(time.Hour, d.Tick)
	d.timer.Stop()
	if o.Audit != nil {
		d.audit = newAudit(o.Audit(auditGap), o.Log)
	}
	return d
}

// complete returns options with the defaults.
func (o Options) complete() Options {
	o.Protocol = o.Protocol.orDefault()
	o.Rules.Depth = o.Protocol.Depth
	if o.Artifacts == nil {
		o.Artifacts = noArtifacts{}
	}
	if o.Audience == nil {
		o.Audience = nobody{}
	}
	if o.Owner == nil {
		o.Owner = nobody{}
	}
	if o.Alarm == nil {
		o.Alarm = o.Log.Error
	}
	o.Rules.Archive = o.Record != nil
	return o
}

// submit lets the State decide about inputs. Afterwards w.verdicts has one entry for each
// input, nil if it was granted. Letters that wait for no commit are delivered here.
func (d *Dispatcher) submit(inputs []handlers.Input, w *work) {
	w.verdicts, w.letters, w.records, w.waiting = w.verdicts[:0], w.letters[:0], w.records[:0], 0
	d.options.Watch.asked(inputs)
	for next := 0; next < len(inputs); {
		d.lookUp(inputs[next:])
		d.mu.Lock()
		d.heedClock(w)
		for next < len(inputs) && d.decide(&inputs[next], w) {
			next++
		}
		d.rearm()
		d.mu.Unlock()
		if next < len(inputs) { // look again after the pending records are committed
			if err := d.settleFor(&inputs[next]); err != nil {
				w.refuse(&inputs[next], err)
				next++
				continue
			}
			d.findArchived(&inputs[next], w.missing)
			w.missing = w.missing[:0]
		}
	}
	for i := range inputs {
		if refs := artifactsOf(inputs[i].Message); len(refs) > 0 {
			d.options.Artifacts.Release(refs, w.verdicts[i] == nil)
		}
	}
	d.audit.requests(inputs, w)
	d.options.Watch.judged(inputs, w.verdicts)
	if len(w.records) > 0 {
		d.options.Audience.Publish(w.records)
	}
	d.deliver(w.letters, &w.room)
	d.reportClosed(w.records)
	clear(w.letters)
}

// work holds the results and buffers of submit. A goroutine reuses it for its next inputs.
type work struct {
	verdicts []*wire.Error
	waiting  int // requests without an answer now: they get it later, or never
	letters  []handlers.Letter
	records  []wire.Record
	room     []byte // for spelling
	trail    []byte // for the audit

	kept    [1]handlers.Letter // a kept answer
	missing []string           // tasks of the next input that may be archived
}

// decide handles one input. It returns false when the data that was looked up for the input is
// too old; the caller then looks it up again. d.mu must be held.
func (d *Dispatcher) decide(in *handlers.Input, w *work) bool {
	if d.broken != nil && in.From.Kind != handlers.Orchestrator { // its inputs are still shown as events
		w.refuse(in, d.broken)
		return true
	}
	if err := d.tooMuch(in); err != nil {
		if _, isRequest := in.Message.(*wire.Request); !isRequest {
			w.refuse(in, err)
			return true
		}
		if in.Refusal == nil {
			in.Refusal = err // unless it repeats one that was granted
		}
	}
	if saying(in) {
		in.Took = time.Since(in.At)
	}
	if answer, ok := keptAnswer(in, d.version); ok {
		w.kept[0] = answer
		d.take(handlers.Outcome{Letters: w.kept[:]}, w)
		return true
	}
	out := d.state.Handle(*in)
	if out.Again {
		w.missing = append(w.missing[:0], out.Missing...)
		return false
	}
	if !keepAnswer(in, &out, d.version) {
		d.version++
	}
	d.explainRemoved(in, out.Refused)
	if len(out.Records) > 0 {
		d.quotas.add(&in.From, storedBy(in, &out), in.At)
	}
	if r, ok := in.Message.(*wire.Request); ok && quiet(r.Form) && out.Refused == nil {
		out.Waits = true // no answer follows a granted one
		if len(out.Records) > 0 {
			out.Letters = append(out.Letters, unspoken(in, r))
		}
	}
	d.take(out, w)
	return true
}

// take queues the records and letters of an outcome. d.mu must be held.
func (d *Dispatcher) take(out handlers.Outcome, w *work) {
	if out.Fault != nil {
		d.log.Error("a decision failed: this is a bug in the orchestrator", "error", out.Fault)
	}
	w.verdicts = append(w.verdicts, out.Refused)
	if out.Waits {
		w.waiting++
	}
	switch {
	case d.broken != nil: // events are still shown; decisions are discarded
		w.records = appendHappenings(w.records, out.Records)
		w.letters = appendRefusals(w.letters, out.Letters, d.broken)
		return
	case d.record == nil:
		w.records = append(w.records, out.Records...)
		w.letters = append(w.letters, out.Letters...)
		return
	}
	if d.options.ReadOnly || len(out.Records) == 0 && !d.recording && d.filling.empty() {
		w.letters = append(w.letters, out.Letters...)
		return
	}
	d.filling.letters = append(d.filling.letters, w.letters...) // keeps the order of the letters
	clear(w.letters)
	w.letters = w.letters[:0]
	d.filling.add(out)
	d.rouse()
}

// add appends an outcome to the batch.
func (b *batch) add(out handlers.Outcome) {
	b.records = append(b.records, out.Records...)
	b.letters = append(b.letters, out.Letters...)
	for i := range out.Records {
		b.bytes += len(out.Records[i].Payload)
	}
}

const (
	// maxWaitingFacts and maxWaitingBytes are the number and the size of facts that may wait
	// for a commit before yield blocks.
	maxWaitingFacts = 4096
	maxWaitingBytes = 4 << 20
)

// yield blocks while too many facts wait for a commit. The goroutines that read the output of
// agents call it, so the disk sets their pace. Inputs of the orchestrator itself never wait.
func (d *Dispatcher) yield() {
	d.mu.Lock()
	if len(d.filling.records) < maxWaitingFacts && d.filling.bytes < maxWaitingBytes {
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

// refuse refuses an input without a decision.
func (w *work) refuse(in *handlers.Input, err *wire.Error) {
	w.verdicts = append(w.verdicts, err)
	if r, ok := in.Message.(*wire.Request); ok {
		w.letters = append(w.letters, handlers.Letter{To: in.From, Request: r.ID, Form: r.Form, Refusal: err})
	}
}

func (d *Dispatcher) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// rearm sets the timer for the next deadline. d.mu must be held.
func (d *Dispatcher) rearm() {
	if d.options.ReadOnly {
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

// suspendedAfter is how late a deadline must be noticed to show that the process was suspended,
// or that its machine slept.
const suspendedAfter = 10 * time.Second

// slowCommit is the least duration of a commit that counts as blocked by the disk. The letters that it held back may
// need as long to leave afterwards.
const slowCommit = time.Second

// Tick handles the deadlines that have passed. The timer calls it. A call at any other time finds out
// whether the clock was set.
func (d *Dispatcher) Tick() {
	now := time.Now()
	d.mu.Lock()
	late := !d.due.IsZero() && now.Round(0).Sub(d.due)-d.clock.jump(now) > suspendedAfter
	d.due = time.Time{} // makes rearm set the timer again
	d.mu.Unlock()
	began := d.appending.Load()
	blocked := began != 0 && now.Sub(time.Unix(0, began)) > slowCommit || now.Sub(time.Unix(0, d.blocked.Load())) < slowCommit
	d.submit([]handlers.Input{{At: now, Message: wire.Tick{Late: late, Blocked: blocked}}}, new(work))
}

// refused reports a message that was refused or answered before a decision to the hooks and to
// the audit. The id is its JSON text, or nil.
func (d *Dispatcher) refused(at time.Time, from handlers.Actor, kind string, id []byte, verdict *wire.Error) {
	d.options.Watch.refused(from, kind, verdict)
	d.audit.note(at, from, kind, id, verdict)
}

// Note submits a message of the orchestrator itself.
func (d *Dispatcher) Note(m wire.Message) {
	d.submit([]handlers.Input{{At: time.Now(), Message: m}}, new(work))
}

// NoteFrom submits a message of the orchestrator as if an agent had said it.
func (d *Dispatcher) NoteFrom(agent string, m wire.Message) {
	d.submit([]handlers.Input{{At: time.Now(), From: handlers.Actor{Kind: handlers.Agent, Name: agent}, Message: m}}, new(work))
}

// Settle waits until everything decided so far is committed and delivered.
func (d *Dispatcher) Settle() { <-d.settling() }

// settling returns a channel that is closed when everything decided so far is committed and delivered.
func (d *Dispatcher) settling() <-chan struct{} {
	settled := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.recording && d.filling.empty() || d.broken != nil {
		close(settled)
		return settled
	}
	d.filling.settled = append(d.filling.settled, settled)
	d.rouse()
	return settled
}

// Broken reports whether recording has failed for good. The state then has decisions that are not in the record.
func (d *Dispatcher) Broken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken != nil && d.broken != ErrOver
}

// Adopt applies changed rules.
func (d *Dispatcher) Adopt(rules handlers.Rules) {
	rules.Depth, rules.Archive = d.options.Protocol.Depth, d.record != nil
	d.Look(func(state *handlers.State) {
		state.Adopt(rules)
		d.options.Rules = rules
		d.version++
	})
}

// Keeping returns the number of facts of the last snapshot while it is stored, or 0.
func (d *Dispatcher) Keeping() int64 { return d.keeping.Load() }

// Look calls see with the State. The State may contain uncommitted changes, so a caller that
// shows them calls Settle first.
func (d *Dispatcher) Look(see func(*handlers.State)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	see(d.state)
}

// randomBytes returns random bytes for ids and keys.
func randomBytes() (bytes [16]byte) {
	_, _ = rand.Read(bytes[:]) // never fails
	return bytes
}

// Options configure a Dispatcher. Only Log is required, and with a Record also Show, Closed and
// Broke.
type Options struct {
	Record   Record // nil: decisions are not recorded, and letters leave at once
	Warm     *Warm  // follows Record; nil: Restore reads it
	ReadOnly bool   // Record is read-only, without deadlines and snapshots
	Rules    handlers.Rules
	Protocol Protocol
	Log      hclog.Logger
	Watch    Hooks
	Done     <-chan struct{} // closed when no more answers will come; ends the waiting callers

	Audience  Audience                       // nil: none
	Owner     Owner                          // nil: none
	Check     RecordCheck                    // nil: Record is not checked
	Alarm     func(text string, more ...any) // logs an error that agents may cause at will; nil: Log.Error
	Audit     func(gap AuditGap) AuditFile   // opens the audit; nil: no audit
	Artifacts Artifacts                      // stores large content; nil: it stays in the documents
	Workshop  Workshop                       // nil: decisions need no work before them
	Clock     func() time.Duration           // goes on while the machine sleeps, and cannot be set; nil: the clock of package time, which stops during the sleep
	Price     func(*activity.Usage)          // adds the cost to an agent's usage; nil: the usage stays as reported
}

// An Audience follows the work of a Dispatcher.
type Audience interface {
	// Publish publishes records as events.
	Publish(records []wire.Record)
	// NoteMessage is called for each request of an agent over HTTP.
	NoteMessage(agent string)
}

// An Owner ends agents or the whole team because of records.
type Owner interface {
	// SessionClosed is called with the record of each closed session.
	SessionClosed(r *wire.Record)
	// RecordBroke is called when the record can no longer be written.
	RecordBroke(err error)
}

// nobody is an Audience and an Owner that ignores all.
type nobody struct{}

func (nobody) Publish([]wire.Record)      {}
func (nobody) NoteMessage(string)         {}
func (nobody) SessionClosed(*wire.Record) {}
func (nobody) RecordBroke(error)          {}

// A Record stores facts. Append adds a batch after the fact numbered last, as a whole or not at all, and returns when
// the batch is durable.
type Record interface {
	Append(ctx context.Context, last int64, batch []wire.Record) error
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)
	Keep(ctx context.Context, seq int64, state io.Reader) error
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]
	Base(ctx context.Context) (wire.Base, error)
	Trim(ctx context.Context, upTo int64, at time.Time) (wire.Base, error)
	Size(ctx context.Context) (int64, error)
}

// A RecordCheck checks whether new records are kept.
type RecordCheck interface {
	// Sound returns why new records would be lost, such as a deleted file.
	Sound() error
	// Deposed returns the refusal of requests after an error of the record because another hub has it, or nil.
	Deposed(err error) *wire.Error
}

// Artifacts store content that is too large for the record.
type Artifacts interface {
	// Detach replaces the large content of a response by references. The content is durable
	// when Detach returns without an error. It is protected until Release is called.
	Detach(r *delegation.Response) *wire.Error
	// Collect reads the files that artifacts name, in the folder of the agent that hands them in, and
	// detaches large content. If the folder is not known, no artifact may name a file.
	Collect(folder Folder, artifacts []hub.Artifact) *wire.Error
	// Release reports that the request that refers to content was decided. Content that was stored
	// only for refused requests is removed.
	Release(refs []string, granted bool)
	// Attach puts the content back into a document. A reference stays in it if its content cannot be read.
	Attach(document wire.Raw) wire.Raw
}

// noArtifacts leaves all content in its documents.
type noArtifacts struct{}

func (noArtifacts) Detach(*delegation.Response) *wire.Error { return nil }

func (noArtifacts) Release([]string, bool) {}

func (noArtifacts) Collect(_ Folder, all []hub.Artifact) *wire.Error {
	for i := range all {
		if all[i].Path != "" {
			return object.Invalid(all[i].Pointer+"/path", "a path cannot be used without a state directory")
		}
	}
	return nil
}

func (noArtifacts) Attach(document wire.Raw) wire.Raw {
	whole, _ := delegation.Attach(document, func(string) (string, error) { return "", errors.New("there is no state directory") })
	return whole // with the references
}

// An AuditFile stores lines. It is used by one goroutine at a time.
type AuditFile interface {
	// Write appends complete lines. Of consecutive failures only the first is returned.
	Write(text []byte, lines int64, now time.Time) error
	// Skip counts lines that were not passed to Write.
	Skip(lines int64)
	Close()
}

// An AuditGap returns the line that replaces lost ones.
type AuditGap func(lost int64, now time.Time) []byte

// Protocol holds the limits that the configuration sets for messages.
type Protocol struct {
	Depth int // nesting depth of a line
	Rate  int // messages a second
	Burst int // messages at once
}

// orDefault returns p with the default in place of each zero field.
func (p Protocol) orDefault() Protocol {
	return Protocol{Depth: cmp.Or(p.Depth, 64), Rate: cmp.Or(p.Rate, 100), Burst: cmp.Or(p.Burst, 100)}
}
