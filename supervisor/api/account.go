package api

import (
	"context"
	"sync/atomic"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// An account is the line of one request in the audit. The dispatcher writes the line of an operation that it decides.
// The API writes all other lines when the request ends, and one more when a stream begins.
type account struct {
	identity.Request
	callers Callers     // nil: no line is written
	decided atomic.Bool // the line is written, or the dispatcher writes it
	stream  bool
	refusal atomic.Pointer[wire.Error]
}

// open returns the account of a request.
func (api *API) open(from identity.Caller, operation string, reads bool) *account {
	a := &account{Request: identity.Request{From: from, Operation: operation, Reads: reads}}
	if !api.ReadOnly {
		a.callers = api.Callers
	}
	return a
}

// accountOf returns the account of the request in a context, or nil.
func accountOf(ctx context.Context) *account { return callerOf(ctx).account }

// decide tells that somebody else writes the line.
func (a *account) decide() {
	if a != nil {
		a.decided.Store(true)
	}
}

// refuse sets the outcome, and writes the line of a request that is no stream before its caller hears.
func (a *account) refuse(err *wire.Error) {
	if a == nil {
		return
	}
	if a.refusal.Store(err); !a.stream && !a.decided.Swap(true) {
		a.write("")
	}
}

// begin writes the line of the begin of a stream.
func (a *account) begin() {
	if a == nil || a.stream {
		return
	}
	a.stream = true
	a.write(identity.Begin)
}

// close writes the line of the request, or the line of the end of a stream.
func (a *account) close() {
	switch {
	case a.stream:
		a.write(identity.End)
	case !a.decided.Load():
		a.write("")
	}
}

func (a *account) write(stage identity.Stage) {
	if a.callers == nil {
		return
	}
	a.Stage = stage
	a.callers.Note(a.Request, a.refusal.Load())
}
