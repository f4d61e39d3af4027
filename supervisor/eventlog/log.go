package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"orchestrator/wire"
)

// A Log is the record of all facts. Its methods may be called concurrently.
type Log interface {
	// Append adds facts after number last: the first gets last+1, the next last+2, and so on.
	// When it returns nil, all of them are durable. It fails with
	//   - ErrMoved if the log does not end at last,
	//   - a *TakenError if a sender has already used a key,
	//   - ErrInvalid if a fact cannot be stored unchanged,
	//   - ErrBusy if another process held the file for too long,
	//   - ErrReadOnly, fs.ErrClosed or the error of ctx, before it began,
	//   - ErrBroken after a failed write, and from then on always.
	// An empty batch checks whether the log ends at last. Times are stored in UTC and in whole
	// milliseconds. Append does not change or retain the batch.
	Append(ctx context.Context, last int64, batch []wire.Record) error

	// Records yields the facts after number after, in order, up to the one that was last when
	// the range began. At the first row that does not continue the chain it yields a
	// *ChainError and ends. Other errors end it too. An empty payload is returned as nil.
	// Payloads must not be modified.
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]

	// Find yields the facts that a search selects: the one that has a key, or mail, oldest or
	// newest first, each once. Like Records it yields no fact after the one that was last when
	// the range began. A row that does not continue the chain ends it with a *ChainError. Find
	// reads little more than it yields, so a caller that needs one letter can just stop. An
	// empty name in To selects no actor.
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]

	// Snapshot returns the newest stored state and the number of the last fact that it
	// includes. If no intact state is stored, seq is 0 and state nil, and all facts must be
	// read.
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)

	// Keep stores a state that includes every fact up to number seq. It replaces a state with
	// the same number and removes all but the newest two. The older one is used if the newest
	// is damaged.
	Keep(ctx context.Context, seq int64, state []byte) error
}

var (
	_ Log = (*Memory)(nil)
	_ Log = (*SQLite)(nil)
)

var (
	// ErrMoved reports that the log does not end where Append assumed.
	ErrMoved = errors.New("the log does not end there")

	// ErrBusy reports that another process held the log. Nothing was written.
	ErrBusy = errors.New("another process holds the log")

	// ErrTaken reports that the sender has used the key before. It is returned as a
	// *TakenError.
	ErrTaken = errors.New("idempotency key is taken")

	// ErrInvalid reports that a fact cannot be stored: its text is not UTF-8 or has a NUL, or
	// is larger than 32 MiB. It is also returned for a year of more than four digits, or an
	// unexpected number.
	ErrInvalid = errors.New("not a fact that can be kept")

	// ErrBroken reports that a write or a sync failed, or that the chain is broken. Nothing can
	// be appended until the log is opened again.
	ErrBroken = errors.New("the log is broken")

	// ErrReadOnly reports that the log was opened for reading.
	ErrReadOnly = errors.New("the log is open for reading only")
)

// A TakenError identifies the fact of a batch whose key is taken, and the fact that has the
// key.
type TakenError struct {
	Index     int    // in the batch, from 0
	From, Key string // the sender and the key
	Seq       int64  // the fact that has the key; 0: an earlier one of the same batch
}

func (e *TakenError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("idempotency key %q of %s is twice in one batch, the second time at index %d", e.Key, e.From, e.Index)
	}
	return fmt.Sprintf("idempotency key %q of %s is taken by fact %d", e.Key, e.From, e.Seq)
}

// Is reports whether target is ErrTaken.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// A NewerError reports that a newer program wrote the file. The file was not changed.
type NewerError struct {
	Schema, Known int64
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("it was written by a newer version: its schema is %d, this program knows up to %d", e.Schema, e.Known)
}

// A ChainError reports the fact at which the chain is broken.
type ChainError struct {
	Seq   int64  // the first fact that cannot be trusted
	What  string // what is wrong with it
	Cause error  // the error of SQLite, or nil
}

func (e *ChainError) Error() string {
	text := fmt.Sprintf("the chain is broken at fact %d: %s", e.Seq, e.What)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the error of SQLite, or nil.
func (e *ChainError) Unwrap() error { return e.Cause }

func moved(end, assumed int64) error {
	return fmt.Errorf("%w: it ends at %d, not at %d", ErrMoved, end, assumed)
}

// outside returns the error for a state that includes facts that are not in the log.
func outside(seq, last int64) error {
	return fmt.Errorf("keeping a state of fact %d: the log has facts 1 to %d", seq, last)
}
