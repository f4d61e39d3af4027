package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// A snapshot is due after snapshotEvery facts, however large the State is: the next one then comes after as
// many facts as that one had tasks. It is due sooner, after smallEvery facts and factsPerTask for each task that the
// State holds, because a small State is written quickly, and a start applies all facts after it. A start that took
// longer than slowStart makes one due after slowFacts.
const (
	snapshotEvery = 100_000
	smallEvery    = 10_000
	factsPerTask  = 10
	slowStart     = time.Second
	slowFacts     = 1000
)

// pieceBytes is about how much text is spelled while the lock is held once, which takes well under a millisecond. At
// the end, without other work, a State with at most largest tasks is spelled at once.
const (
	pieceBytes = 32 << 10
	largest    = 10_000
)

// snapshots keeps a snapshot of the State in the record now and then. Only the recorder uses it.
//
// A goroutine spells a State that needs more than pieceBytes piece by piece, and stores each piece. So the lock is
// never held for long, and no more than a part of the text is in memory.
type snapshots struct {
	every  int         // snapshotEvery
	small  int         // smallEvery
	wanted atomic.Bool // facts wait for a snapshot to be removed
	slow   bool        // the start took long
	last   result      // the newest snapshot, or the newest attempt
	begun  *spelling   // is to be stored after its facts; nil: none

	stored chan struct{} // is closed when the goroutine has ended; nil without a goroutine
	ctx    context.Context
	cancel context.CancelFunc // ends it
}

// A result describes a stored snapshot. An attempt that failed counts, so that the next one comes
// after more facts.
type result struct {
	seq   int64
	tasks int
}

func newSnapshots() *snapshots {
	ctx, cancel := context.WithCancel(context.Background())
	return &snapshots{every: snapshotEvery, small: smallEvery, ctx: ctx, cancel: cancel}
}

// A spelling is a snapshot that is being spelled. It is the reader of its text.
type spelling struct {
	*handlers.Snapshot
	seq  int64
	mu   *sync.Mutex // of the Dispatcher
	text []byte      // spelled, and not yet read
	done bool
	err  error
}

// next spells a piece. s.mu must be held.
func (s *spelling) next(size int) { s.text, s.done, s.err = s.Next(size) }

// Read implements io.Reader.
func (s *spelling) Read(p []byte) (int, error) {
	for len(s.text) == 0 && s.err == nil {
		if s.done {
			return 0, io.EOF
		}
		s.mu.Lock()
		s.next(pieceBytes)
		s.mu.Unlock()
	}
	if s.err != nil {
		return 0, s.err
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, nil
}

// Restore builds the State from the newest snapshot and the facts after it. It must be called
// before Run.
func (d *Dispatcher) Restore(ctx context.Context) error {
	if d.record == nil {
		return nil
	}
	began := time.Now()
	w := d.options.Warm
	if w == nil {
		w = &Warm{record: d.record, rules: d.options.Rules}
	}
	if err := w.Follow(ctx); err != nil {
		return err
	}
	d.state, d.snapshots.last = w.state, w.from
	d.last.Store(w.state.Seq())
	d.snapshots.slow = time.Since(began) > slowStart
	return nil
}

// A Warm is a State that follows the record of another program. A Dispatcher that begins with it needs no Restore from
// the record.
type Warm struct {
	record Record
	rules  handlers.Rules
	state  *handlers.State // nil before it was first read
	from   result
}

// NewWarm returns a Warm for a Dispatcher with the same options.
func NewWarm(o Options) *Warm {
	o = o.complete()
	return &Warm{record: o.Record, rules: o.Rules}
}

// Follow reads the record to its end. After an error the Warm begins anew.
func (w *Warm) Follow(ctx context.Context) (err error) {
	if w.state == nil {
		w.state, w.from, err = replay(ctx, w.record, w.rules)
	} else {
		err = applyAfter(ctx, w.state, w.record)
	}
	if err != nil {
		w.state = nil
	}
	return err
}

// A restart applies facts when it has read so many of them, or so many bytes.
const (
	factsTogether = 2048
	factBytes     = 4 << 20
)

// replay returns the State of a record. It also describes the snapshot that it was built from.
func replay(ctx context.Context, record Record, rules handlers.Rules) (*handlers.State, result, error) {
	var from result
	seq, text, err := record.Snapshot(ctx)
	if err != nil {
		return nil, from, fmt.Errorf("reading the saved state: %w", err)
	}
	state := handlers.New(rules)
	if kept, ok := handlers.Restore(rules, text, onAllCores); seq > 0 && ok && kept.Seq() == seq {
		state, from = kept, result{seq: seq, tasks: kept.TaskCount()}
	}
	err = applyAfter(ctx, state, record)
	if removed, ok := errors.AsType[*wire.RemovedError](err); ok {
		err = fmt.Errorf("the saved state cannot be read, and the facts behind it are gone: %w", removed)
	}
	return state, from, err
}

// applyAfter applies the facts that a State does not have.
func applyAfter(ctx context.Context, state *handlers.State, record Record) error {
	var facts []wire.Record
	size := 0
	for r, err := range record.Records(ctx, state.Seq()) {
		if err != nil {
			return err
		}
		if facts, size = append(facts, r), size+len(r.Payload); len(facts) == factsTogether || size > factBytes {
			if err := state.Apply(onAllCores, facts...); err != nil {
				return err
			}
			facts, size = facts[:0], 0
		}
	}
	if err := state.Apply(onAllCores, facts...); err != nil {
		return err
	}
	return ctx.Err()
}

// onAllCores calls do for parts of the numbers below n, one for each core.
func onAllCores(n int, do func(from, to int)) {
	var parts sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for i := range cores {
		parts.Go(func() { do(n*i/cores, n*(i+1)/cores) })
	}
	parts.Wait()
}

// takeSnapshot begins a snapshot when one is due, or at the end. It includes the batch that is about
// to be committed, and is stored after it. d.mu must be held.
func (d *Dispatcher) takeSnapshot(end bool) {
	s, seq, tasks := d.snapshots, d.state.Seq(), d.state.TaskCount()
	if d.options.ReadOnly || d.broken != nil || s.begun != nil || seq == s.last.seq && s.stored == nil {
		return
	}
	if end && tasks > largest || !end && (s.stored != nil || !s.due(seq, tasks)) {
		return
	}
	size := pieceBytes
	if end {
		d.keeping.Store(seq - s.last.seq)
		size = math.MaxInt
	}
	s.last = result{seq: seq, tasks: tasks}
	s.wanted.Store(false)
	s.slow = false
	s.begun = &spelling{Snapshot: d.state.Snapshot(), seq: seq, mu: &d.mu}
	s.begun.next(size)
}

// due reports whether enough facts came since the last snapshot, for a State with so many tasks. A number that
// follows the present size is not enough: a State that grows by a task with each fact would never be written.
func (s *snapshots) due(seq int64, tasks int) bool {
	since := seq - s.last.seq
	if since >= int64(max(s.small, factsPerTask*tasks)) || s.slow && since >= slowFacts {
		return true
	}
	enough := s.every
	if s.wanted.Load() {
		enough = min(enough, trimSnapshot)
	}
	return since >= int64(max(enough, s.last.tasks))
}

// keepSnapshot stores the snapshot that was begun, once its facts are committed.
func (d *Dispatcher) keepSnapshot() {
	s := d.snapshots
	select {
	case <-s.stored:
		s.stored = nil
	default:
	}
	begun := s.begun
	if begun == nil || begun.seq > d.last.Load() {
		return
	}
	s.begun = nil
	if begun.done {
		d.keep(context.Background(), begun)
		return
	}
	s.stored = make(chan struct{})
	go func(stored chan struct{}) {
		defer close(stored)
		d.keep(s.ctx, begun)
	}(s.stored)
}

// keep stores a snapshot.
func (d *Dispatcher) keep(ctx context.Context, s *spelling) {
	err := d.record.Keep(ctx, s.seq, s)
	if err == nil {
		return
	}
	if !errors.Is(err, io.ErrClosedPipe) && ctx.Err() == nil {
		d.log.Error("the state cannot be saved; the next start reads more facts", "error", err)
	}
	d.mu.Lock()
	s.End()
	d.mu.Unlock()
}
