package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"orchestrator/wire"
)

// Log is the record of everything that became true. Its methods may be called
// by several goroutines.
type Log interface {
	// Append adds facts behind number last: the first gets last+1, the next
	// last+2, and so on. All of them are durable when it returns nil. It fails
	// with
	//   - ErrMoved when the log does not end at last,
	//   - a *TakenError when one sender's key is there already,
	//   - ErrInvalid when a fact cannot be kept as it is,
	//   - ErrBusy when a stranger held the file for too long,
	//   - ErrReadOnly, fs.ErrClosed or the error of ctx, before it began,
	//   - ErrBroken after a failed write; from then on it always does.
	// An empty batch asks whether the log ends at last. A time is kept in UTC
	// and whole milliseconds. The facts given are not changed and not kept.
	Append(ctx context.Context, last int64, batch []wire.Record) error

	// Records yields the facts behind number after, in order, up to the one
	// that was the last when the range began. At the first row that does not
	// follow from the one before it yields a *ChainError and ends; other errors
	// end it too. An empty payload comes back as nil. Payloads are for reading.
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]

	// Find yields the facts that a search wants: the one that has a key, or
	// mail, in order or the newest first, each once. Like Records it shows
	// nothing behind the fact that was the last when the range began, and a row
	// that does not follow from the one before ends it with a *ChainError. It
	// reads what it yields and little more, so that a caller that wants one letter
	// need not say so. A name in To that is "" is no actor.
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]

	// Snapshot returns the newest state kept and the number of the last fact
	// that it includes. If none is kept, or none is intact, seq is 0 and state
	// nil, and the facts have to tell everything.
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)

	// Keep stores a state that includes every fact up to number seq, in place
	// of one that is there for the same number, and forgets all but the newest
	// two. The second is for the day when the first turns out to be damaged.
	Keep(ctx context.Context, seq int64, state []byte) error
}

var (
	_ Log = (*Memory)(nil)
	_ Log = (*SQLite)(nil)
)

var (
	// ErrMoved says that the log does not end where the append assumed.
	ErrMoved = errors.New("the log does not end there")

	// ErrBusy says that another process held the log; nothing was tried.
	ErrBusy = errors.New("another process holds the log")

	// ErrTaken says that the sender has used the key before. It comes as a
	// *TakenError.
	ErrTaken = errors.New("idempotency key is taken")

	// ErrInvalid says that a fact cannot be kept: text that is not UTF-8 or
	// holds a NUL, more than 32 MiB, a year of more than four digits, or a number
	// of its own that is not the one it would get.
	ErrInvalid = errors.New("not a fact that can be kept")

	// ErrBroken says that a write or a sync failed, or that the chain is broken:
	// nothing can be appended until the log is opened anew.
	ErrBroken = errors.New("the log is broken")

	// ErrReadOnly says that the log was opened for reading.
	ErrReadOnly = errors.New("the log is open for reading only")
)

// TakenError names the fact of a batch whose key is taken, and who has it.
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

// Is makes a TakenError an ErrTaken.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// NewerError says that a newer program wrote the file. Nothing was changed in it.
type NewerError struct {
	Schema, Known int64
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("it was written by a newer version: its schema is %d, this program knows up to %d", e.Schema, e.Known)
}

// ChainError says at which fact the chain is broken.
type ChainError struct {
	Seq   int64  // the first fact that cannot be trusted
	What  string // what is wrong with it
	Cause error  // what SQLite said, or nil
}

func (e *ChainError) Error() string {
	text := fmt.Sprintf("the chain is broken at fact %d: %s", e.Seq, e.What)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns what SQLite said.
func (e *ChainError) Unwrap() error { return e.Cause }

func moved(end, assumed int64) error {
	return fmt.Errorf("%w: it ends at %d, not at %d", ErrMoved, end, assumed)
}

// outside is the error of keeping a state of facts that are not there.
func outside(seq, last int64) error {
	return fmt.Errorf("keeping a state of fact %d: the log has facts 1 to %d", seq, last)
}
