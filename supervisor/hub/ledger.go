package hub

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A ledger is an event log that can be closed.
type ledger interface {
	dispatch.Record
	Last() int64
	Close() error
}

// openRecord opens the event log of a configuration.
func openRecord(ctx context.Context, store config.Store) (ledger, error) {
	if store.Kind == "memory" {
		return eventlog.NewMemory(), nil
	}
	log, err := eventlog.Open(ctx, eventlog.Options{Path: store.Path, Durable: store.Durable})
	if err != nil {
		return nil, err // avoid a nil pointer in the interface
	}
	return log, nil
}

// A record is the part of a hub that has the event log.
type record struct {
	place  *Place
	store  config.Store
	ledger ledger
	shared *sharedStore   // nil unless the store is shared
	warm   *dispatch.Warm // of a hub that stood by
}

// Start opens the event log. One that is shared is opened by the standby.
func (r *record) Start(ctx context.Context) (err error) {
	if !r.store.Shared() {
		r.ledger, err = openRecord(ctx, r.store)
	}
	return err
}

// Stop closes the event log.
func (r *record) Stop() {
	if r.ledger != nil {
		if err := r.ledger.Close(); err != nil {
			r.place.Log.Error("the record could not be closed", "error", err)
		}
	}
}

// Sound returns an error if the state directory or the event log was deleted or replaced.
// New facts would then be lost with this process.
func (r *record) Sound() error {
	name, open := r.place.Home.Lock()
	if err := eventlog.InPlace(name, open); err != nil {
		return err
	}
	if r.shared != nil {
		if err := r.shared.sound(); err != nil {
			return err
		}
	}
	if log, ok := r.ledger.(interface{ Sound() error }); ok {
		return log.Sound()
	}
	return nil
}

// Deposed returns the refusal of requests if an error of the record means that another hub is at work. Then no fact
// of the batch was recorded.
func (r *record) Deposed(err error) *wire.Error {
	if r.shared == nil || !errors.Is(err, eventlog.ErrMoved) {
		return nil
	}
	r.shared.deposed.Store(true)
	return r.shared.writable()
}

// A verifier is the part of a hub that reads the whole event log once in the background, so that damage is logged, and
// shown in the status, before a request meets it.
type verifier struct {
	record *record
	log    hclog.Logger
	damage atomic.Pointer[control.Damage]
	end    func()
}

// Start begins to read.
func (v *verifier) Start(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		base, err := v.record.ledger.Base(ctx)
		if err != nil {
			return // the record was read to this point when it was opened
		}
		for r, err := range v.record.ledger.Records(ctx, base.Seq) {
			if _, removed := errors.AsType[*wire.RemovedError](err); removed {
				return // old facts are being removed, which verifies them
			}
			if err != nil {
				if ctx.Err() == nil {
					v.damage.Store(damageOf(err))
					v.log.Error("the record is damaged: reads of that part fail, and everything else continues", "error", err, "see", "orchestrator store check")
				}
				return
			}
			if r.Seq%512 == 0 { // at most about 50,000 facts a second
				select {
				case <-ctx.Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}()
	v.end = func() {
		cancel()
		<-done
	}
	return nil
}

// Stop ends the reading.
func (v *verifier) Stop() { v.end() }

// damageOf describes the error of a reader.
func damageOf(err error) *control.Damage {
	d := &control.Damage{Text: err.Error()}
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		d.Seq = chain.Seq
	}
	return d
}
