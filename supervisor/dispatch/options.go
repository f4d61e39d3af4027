package dispatch

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// Options configure a Dispatcher. Only Log is required, and with a Record also Show, Closed and
// Broke.
type Options struct {
	Record   Record // nil: nothing is recorded, and letters leave at once
	ReadOnly bool   // Record is read-only: there are no deadlines and no snapshots
	Rules    handlers.Rules
	Protocol Protocol
	Log      hclog.Logger
	Watch    Hooks
	Done     <-chan struct{} // closed when no more answers will come; ends the waiting callers

	Show      func([]wire.Record)            // publishes records as events
	Closed    func(*wire.Record)             // called for each closed session
	Broke     func(error)                    // called when the record can no longer be written
	Spoke     func(agent string)             // called for each request of an agent over HTTP; nil: not called
	Sound     func() error                   // returns why new records would be lost; nil: not checked
	Alarm     func(text string, more ...any) // logs an error that agents may cause at will; nil: Log.Error
	Audit     func(gap AuditGap) AuditFile   // opens the audit; nil: there is none
	Artifacts Artifacts                      // stores large content; nil: nothing is stored
}

// A Record stores facts. Append adds a batch after the fact numbered last, all of it or
// nothing, and returns when the batch is durable.
type Record interface {
	Append(ctx context.Context, last int64, batch []wire.Record) error
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)
	Keep(ctx context.Context, seq int64, state []byte) error
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]
}

// Artifacts store content that is too large for the record.
type Artifacts interface {
	// Detach replaces the large content of a response by references. The content is durable
	// when Detach returns without an error.
	Detach(r *delegation.Response) *wire.Error
	// Attach puts the content back into a document. A reference whose content cannot be read
	// stays in it.
	Attach(document wire.Raw) wire.Raw
}

// noArtifacts stores nothing.
type noArtifacts struct{}

func (noArtifacts) Detach(*delegation.Response) *wire.Error { return nil }

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

func (p Protocol) bucket() handlers.Bucket {
	return handlers.Bucket{Rate: float64(p.Rate), Burst: float64(p.Burst)}
}
