package dispatch

import (
	"context"
	"strings"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// A stall is a time without appends to a shared record, because most hubs cannot be reached. Decisions of that time may
// never be recorded, so they are not shown: reads are answered from the committed records, and callers get an error for
// a request that writes. Agents wait on their pipes.
type stall struct {
	mu    sync.Mutex
	why   *wire.Error   // nil: the record takes appends
	begun chan struct{} // closed while it takes no appends
	past  *Dispatcher   // the committed records; nil until the first read of this stall
}

// SetStalled sets why the record takes no appends at the moment. A nil error ends the stall.
func (d *Dispatcher) SetStalled(why *wire.Error) {
	s := &d.stall
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case why != nil && s.why == nil:
		close(s.begun)
	case why == nil && s.why != nil:
		s.begun, s.past = make(chan struct{}), nil
	}
	s.why = why
}

// reason returns why the record takes no appends at the moment, or nil.
func (s *stall) reason() *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// beginning returns a channel that is closed while the record takes no appends.
func (s *stall) beginning() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// committed returns a Dispatcher that only reads the committed records. A stall has no commits, so one Dispatcher is
// made for all of it.
func (d *Dispatcher) committed(ctx context.Context) (*Dispatcher, error) {
	s := &d.stall
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past != nil {
		return s.past, nil
	}
	d.mu.Lock()
	rules := d.options.Rules
	d.mu.Unlock()
	past := New(Options{
		Record: upTo{d.record, d.last.Load()}, ReadOnly: true, Rules: rules, Protocol: d.options.Protocol, Log: d.log, Done: d.options.Done,
		Artifacts: d.options.Artifacts,
	})
	if err := past.Restore(ctx); err != nil {
		return nil, d.unreadable(err)
	}
	past.audit = d.audit
	if s.why != nil {
		s.past = past
	}
	return past, nil
}

// askCommitted performs an operation that reads, on the committed records.
func (d *Dispatcher) askCommitted(ctx context.Context, from handlers.Actor, r *wire.Request) (any, error) {
	past, err := d.committed(ctx)
	if err != nil {
		return nil, err
	}
	return past.ask(ctx, from, r)
}

// settleFor is Settle for the decision about an input. A caller is refused if a stall begins; an agent waits.
func (d *Dispatcher) settleFor(in *handlers.Input) *wire.Error {
	if !strings.HasPrefix(in.From.Run, callerPrefix) {
		d.Settle()
		return nil
	}
	if !d.settleUnlessStalled() {
		return d.slow()
	}
	return nil
}

// settleUnlessStalled waits until everything decided so far is committed and delivered. It returns false if the record
// takes no appends.
func (d *Dispatcher) settleUnlessStalled() bool {
	begun := d.stall.beginning()
	select {
	case <-d.settling():
		return true
	case <-begun:
		return false
	}
}

// See calls see with a State that has only committed changes, and with the number of its last fact. It may call see
// twice. If the record takes no appends at the moment, See returns why.
func See(ctx context.Context, d *Dispatcher, see func(state *handlers.State, seq int64)) (stalled *wire.Error, err error) {
	if d.settleUnlessStalled() {
		seq := d.last.Load() // read first, so that a reader can continue from it without a gap
		d.Look(func(state *handlers.State) { see(state, seq) })
		if d.settleUnlessStalled() {
			return nil, nil
		}
	}
	past, err := d.committed(ctx)
	if err != nil {
		return nil, err
	}
	past.Look(func(state *handlers.State) { see(state, past.last.Load()) })
	return d.stall.reason(), nil
}

// unrecorded returns the error for a request that waits for a commit when a stall begins. It is not the one of a
// request that was refused: a client would repeat it at another hub.
func unrecorded(why *wire.Error) *wire.Error {
	return &wire.Error{
		Code: wire.CodeTimeout, Message: why.Message + ". Your request was not confirmed, and may be recorded later",
		Hint: "When most hubs can be reached again, check whether it was", Details: why.Details,
	}
}
