package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Replayed is the result of all facts of a record, or of the facts up to one.
type Replayed struct {
	Seq       int64             // the last fact
	Sum       [sha256.Size]byte // of the State
	Kept      int64             // the snapshot that leads to the same State with the facts after it; 0: no snapshot
	Tasks     control.TaskCounts
	Questions int // that are open
}

// ErrDiffers reports that the snapshot of a record and the facts after it lead to another State than all facts.
var ErrDiffers = errors.New("the snapshot and the facts after it lead to another state than all facts")

// Replay builds the State of a record anew from all facts, and compares it with the State of a restart. If until is not
// 0, it stops at that fact without a comparison.
func Replay(ctx context.Context, o Options, until int64) (r Replayed, err error) {
	o = o.complete()
	state := handlers.New(o.Rules)
	if err := applyAfter(ctx, state, upTo{o.Record, until}); err != nil {
		return r, err
	}
	text, err := textOf(state)
	if err != nil {
		return r, err
	}
	r = Replayed{Seq: state.Seq(), Sum: sha256.Sum256(text), Tasks: state.Counts(), Questions: state.QuestionCount()}
	if until != 0 {
		return r, nil
	}
	again, from, err := replay(ctx, upTo{o.Record, r.Seq}, o.Rules)
	if err != nil {
		return r, err
	}
	other, err := textOf(again)
	if err == nil && !bytes.Equal(text, other) {
		err = ErrDiffers
	}
	r.Kept = from.seq
	return r, err
}

// textOf returns a State as text, without the spaces that agents have written in results: facts do not keep them.
func textOf(state *handlers.State) ([]byte, error) {
	text, err := state.Snapshot().Text()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Compact(&b, text)
	return b.Bytes(), err
}

// upTo is a Record that ends with a fact. An orchestrator may append to the record at the same time.
type upTo struct {
	Record
	last int64 // 0: at its end
}

// Snapshot implements Record. A snapshot that was made later does not count.
func (u upTo) Snapshot(ctx context.Context) (seq int64, state []byte, err error) {
	seq, state, err = u.Record.Snapshot(ctx)
	if u.last != 0 && seq > u.last {
		return 0, nil, err
	}
	return seq, state, err
}

// Records implements Record.
func (u upTo) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for r, err := range u.Record.Records(ctx, after) {
			if err == nil && u.last != 0 && r.Seq > u.last || !yield(r, err) {
				return
			}
		}
	}
}
