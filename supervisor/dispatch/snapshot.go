package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// snapshotEvery is the least number of facts between two snapshots. A large State is written
// less often, because that takes longer.
const snapshotEvery = 100_000

// A State with at most smallState tasks is spelled while the lock is held, which takes a few
// milliseconds. At the end, when nothing else is to be done, largest is the bound.
const (
	smallState = 500
	largest    = 10_000
)

// snapshots keeps a snapshot of the State in the record now and then. Only the recorder uses it.
//
// A small State is spelled in place. Of a large one, a goroutine builds a copy: it reads the
// newest snapshot and the facts after it, as a restart does. So the lock is never held for long,
// at the price of the memory of a second State for as long as that takes.
type snapshots struct {
	every  int         // snapshotEvery
	wanted atomic.Bool // facts wait for a snapshot to be removed
	last   result      // the newest snapshot, or the newest attempt
	seq    int64       // of text
	text   []byte      // was spelled, and is to be stored after its facts; nil: there is none

	copied chan result // receives the result of the copy that is being made; nil: there is none
	ctx    context.Context
	cancel context.CancelFunc // ends the copy
}

// A result describes a stored snapshot. An attempt that failed counts, so that the next one comes
// after more facts.
type result struct {
	seq   int64
	tasks int
}

func newSnapshots() *snapshots {
	ctx, cancel := context.WithCancel(context.Background())
	return &snapshots{every: snapshotEvery, ctx: ctx, cancel: cancel}
}

// Restore builds the State from the newest snapshot and the facts after it. It must be called
// before Run.
func (d *Dispatcher) Restore(ctx context.Context) error {
	if d.record == nil {
		return nil
	}
	state, from, err := replay(ctx, d.record, d.options.Rules, math.MaxInt64)
	if err != nil {
		return err
	}
	d.state, d.snapshots.last = state, from
	d.last.Store(state.Seq())
	return nil
}

// replay returns the State of a record after a fact, or after the last one. It also describes the
// snapshot from which it was built.
func replay(ctx context.Context, record Record, rules handlers.Rules, until int64) (*handlers.State, result, error) {
	var from result
	seq, text, err := record.Snapshot(ctx)
	if err != nil {
		return nil, from, fmt.Errorf("reading the kept state: %w", err)
	}
	state := handlers.New(rules)
	if kept, ok := handlers.Restore(rules, text); seq > 0 && ok && kept.Seq() == seq {
		state, from = kept, result{seq: seq, tasks: kept.Tasks()}
	}
	for r, err := range record.Records(ctx, state.Seq()) {
		if removed, ok := errors.AsType[*wire.RemovedError](err); ok {
			return nil, from, fmt.Errorf("the kept state cannot be read, and it was made of facts that are gone: %w", removed)
		}
		if err == nil && r.Seq > until {
			break
		}
		if err == nil {
			err = state.Apply(r)
		}
		if err != nil {
			return nil, from, err
		}
	}
	return state, from, ctx.Err()
}

// takeSnapshot spells a small State when a snapshot is due, or at the end. The snapshot includes
// the batch that is about to be committed, and is stored after it. d.mu must be held.
func (d *Dispatcher) takeSnapshot(end bool) {
	s, seq, tasks := d.snapshots, d.state.Seq(), d.state.Tasks()
	if d.options.ReadOnly || d.broken != nil || s.text != nil || seq == s.last.seq {
		return
	}
	if end && tasks > largest || !end && (tasks > smallState || !s.due(seq)) {
		return
	}
	if end {
		d.keeping.Store(seq - s.last.seq)
	}
	text, err := d.state.Snapshot()
	if err != nil {
		d.log.Error("the state cannot be spelled; the next start reads all facts", "error", err)
	}
	s.last = result{seq: seq, tasks: tasks}
	s.wanted.Store(false)
	if err == nil {
		s.seq, s.text = seq, text
	}
}

// due reports whether enough facts came since the last snapshot. How many are enough depends on
// the size of that one. It must not depend on the present size: a State that grows by a task with
// each fact would never be written.
func (s *snapshots) due(seq int64) bool {
	enough := s.every
	if s.wanted.Load() {
		enough = min(enough, trimSnapshot)
	}
	return seq-s.last.seq >= int64(max(enough, 2*s.last.tasks))
}

// keepSnapshot stores the snapshot that was spelled, once its facts are committed. If one of a
// large State is due, it starts to copy it.
func (d *Dispatcher) keepSnapshot() {
	s, last := d.snapshots, d.last.Load()
	if s.text != nil && s.seq <= last {
		if err := d.record.Keep(context.Background(), s.seq, s.text); err != nil {
			d.log.Error("the state cannot be kept; the next start reads more facts", "error", err)
		}
		s.text = nil
	}
	select {
	case s.last = <-s.copied:
		s.copied = nil
	default:
	}
	if s.copied != nil || s.text != nil || !s.due(last) || s.ctx.Err() != nil || d.options.ReadOnly {
		return
	}
	d.mu.Lock()
	small, broken := d.state.Tasks() <= smallState, d.broken != nil
	d.mu.Unlock()
	if small || broken {
		return
	}
	s.wanted.Store(false)
	s.copied = make(chan result, 1)
	go func(done chan<- result) { done <- d.copyState(s.ctx, last) }(s.copied)
}

// copyState stores a snapshot of the State after a fact. The State itself is not used.
func (d *Dispatcher) copyState(ctx context.Context, until int64) result {
	state, _, err := replay(ctx, d.record, d.options.Rules, until)
	var text []byte
	if err == nil {
		text, err = state.Snapshot()
	}
	if err == nil {
		err = d.record.Keep(ctx, state.Seq(), text)
	}
	if err != nil {
		if ctx.Err() == nil {
			d.log.Error("the state cannot be copied; the next start reads more facts", "error", err)
		}
		return result{seq: until}
	}
	return result{seq: state.Seq(), tasks: state.Tasks()}
}
