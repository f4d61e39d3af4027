package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

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

	// Records yields the facts after number after, in order, up to the last one when the range began. At the first row
	// that does not continue the chain it yields a *ChainError and ends. Other errors end it too. An empty payload is
	// returned as nil. Payloads must not be modified.
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]

	// Find yields the facts that a search selects: the fact with a key, or mail, oldest or newest first, each once. Like
	// Records it yields no fact after the last one when the range began. A row that does not continue the chain ends it
	// with a *ChainError. Find reads little more than it yields, so a caller that needs one letter can just stop. An empty
	// name in To selects no actor.
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]

	// Snapshot returns the newest stored state and the number of the last fact that it
	// includes. If no intact state is stored, seq is 0 and state nil, and all facts must be
	// read.
	Snapshot(ctx context.Context) (seq int64, state []byte, err error)

	// Keep stores a state that includes every fact up to number seq. It replaces a state with
	// the same number and removes all but the newest two. The older one is used if the newest
	// is damaged. If reading the state fails, it is not stored. No append waits while it is read.
	Keep(ctx context.Context, seq int64, state io.Reader) error

	// Base describes the removed front of the log. Records that begins before it, and is asked for facts that were
	// removed, yields a *wire.RemovedError. Find does not find them.
	Base(ctx context.Context) (wire.Base, error)

	// Trim removes facts from the front of the log, up to number upTo at most. It removes only some of them at a time, so
	// that no append waits for long, and returns the new Base. It keeps every fact after the older of the two stored
	// states. If it removes no fact, no more can be removed now.
	Trim(ctx context.Context, upTo int64, at time.Time) (wire.Base, error)

	// Size returns the number of bytes that the log needs, without the space that was freed.
	Size(ctx context.Context) (int64, error)
}

var (
	_ Log = (*Memory)(nil)
	_ Log = (*SQLite)(nil)
)

var (
	// ErrMoved reports that the log does not end where Append assumed.
	ErrMoved = errors.New("the log does not end there")

	// ErrBusy reports that another process held the log. The batch was not written.
	ErrBusy = errors.New("another process holds the log")

	// ErrTaken reports that the sender has used the key before. It is returned as a
	// *TakenError.
	ErrTaken = errors.New("idempotency key is taken")

	// ErrInvalid reports that a fact cannot be stored: its text is not UTF-8 or has a NUL, or
	// is larger than 32 MiB. It is also returned for a year of more than four digits, or an
	// unexpected number.
	ErrInvalid = errors.New("not a fact that can be kept")

	// ErrBroken reports that a write or a sync failed, or that the chain is broken. The log takes no appends until it is
	// opened again.
	ErrBroken = errors.New("the log is broken")

	// ErrReadOnly reports that the log was opened for reading.
	ErrReadOnly = errors.New("the log is open for reading only")
)

// A TakenError identifies the fact of a batch that has a taken key, and the earlier fact with the key.
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
	return fmt.Sprintf("it was written by a newer version: its schema is %d, and this program reads up to %d", e.Schema, e.Known)
}

// A ChainError reports the fact where the chain is broken.
type ChainError struct {
	Seq   int64  // the first fact that cannot be trusted
	What  string // the defect
	Cause error  // the error of SQLite, or nil
}

func (e *ChainError) Error() string {
	text := fmt.Sprintf("the chain is broken at fact %d: %s", e.Seq, e.What)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// DamagedFact returns Seq.
func (e *ChainError) DamagedFact() int64 { return e.Seq }

// Unwrap returns the error of SQLite, or nil.
func (e *ChainError) Unwrap() error { return e.Cause }

func moved(end, assumed int64) error {
	return fmt.Errorf("%w: it ends at %d, not at %d", ErrMoved, end, assumed)
}

// outside returns the error for a state that includes facts that are not in the log.
func outside(seq, last int64) error {
	return fmt.Errorf("keeping a state of fact %d: the log has facts 1 to %d", seq, last)
}

// atLayout is RFC 3339 in UTC with exactly three digits of a second. The fixed width lets times
// sort as text.
const atLayout = "2006-01-02T15:04:05.000Z"

// maxFact is the largest total size of a fact's texts, so that no fact exhausts the memory of
// SQLite; see memory. Larger content must be stored in a file that the payload names.
const maxFact = 32 << 20

// examine returns an error for the first fact of a batch that cannot be stored. It checks all
// facts before anything is written.
func examine(last int64, batch []wire.Record) error {
	for i := range batch {
		r := &batch[i]
		if what := flaw(r); what != "" {
			return fmt.Errorf("%w: fact %d of %d (%q): %s", ErrInvalid, i+1, len(batch), r.Kind, what)
		}
		if seq := last + int64(i) + 1; r.Seq != 0 && r.Seq != seq {
			return fmt.Errorf("%w: fact %d of %d (%q): it is numbered %d and would get %d", ErrInvalid, i+1, len(batch), r.Kind, r.Seq, seq)
		}
	}
	return nil
}

// flaw returns why a fact cannot be stored, or "".
//
// A NUL is valid UTF-8, but SQLite's functions and its shell end a text at it. They would then
// show a text other than the stored one. JSON text contains no NUL.
func flaw(r *wire.Record) string {
	switch {
	case !plain(r.From):
		return "the sender is not text"
	case !plain(r.To):
		return "the addressee is not text"
	case !plain(r.Topic):
		return "the topic is not text"
	case !plain(r.Kind):
		return "the kind is not text"
	case !plain(r.Key):
		return "the idempotency key is not text"
	case !plain(r.Correlation):
		return "the correlation is not text"
	case !utf8.Valid(r.Payload) || bytes.IndexByte(r.Payload, 0) >= 0:
		return "the payload is not text"
	}
	size := len(r.From) + len(r.To) + len(r.Topic) + len(r.Kind) + len(r.Payload) + len(r.Key) + len(r.Correlation)
	if size > maxFact {
		return fmt.Sprintf("it has %d bytes, and %d is the limit", size, maxFact)
	}
	if year := r.At.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Sprintf("the year %d has no RFC 3339 form", year)
	}
	return ""
}

func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// appendAt appends a time in the format of the column at.
func appendAt(b []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(b, atLayout)
}

// parseAt is the inverse of appendAt.
func parseAt(text []byte) (at time.Time, ok bool) {
	if len(text) != len(atLayout) || text[len(text)-1] != 'Z' {
		return time.Time{}, false
	}
	err := at.UnmarshalText(text)
	return at, err == nil
}

// asKept returns a fact as a log returns it.
func asKept(r wire.Record, seq int64) wire.Record {
	r.Seq = seq
	r.At = r.At.UTC().Truncate(time.Millisecond)
	if len(r.Payload) == 0 {
		r.Payload = nil
	}
	return r
}

// castagnoli returns the table of the polynomial that processors support in hardware. It is
// built at the first use, because most commands need none.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A chain computes the checksums of rows. The sum of a row is the CRC-32C of everything in the
// log up to that row. The length of each field precedes it, so that no two logs have the same
// bytes:
//
//	seq, at, actor_from, actor_to, topic, kind, idempotency_key, correlation,
//	reply_to, payload
//
// Numbers and lengths are 8 bytes, little-endian. NULL counts as empty. The sum before the
// first row is 0.
type chain struct {
	frame []byte // reused
}

// next returns the sum of a row, given the sum of the row before and the text
// of its time.
func (c *chain) next(sum uint32, at []byte, r *wire.Record) uint32 {
	b := number(c.frame[:0], r.Seq)
	b = append(number(b, int64(len(at))), at...)
	b = text(b, r.From)
	b = text(b, r.To)
	b = text(b, r.Topic)
	b = text(b, r.Kind)
	b = text(b, r.Key)
	b = text(b, r.Correlation)
	b = number(b, r.ReplyTo)
	b = number(b, int64(len(r.Payload)))
	c.frame = b
	return crc32.Update(crc32.Update(sum, castagnoli(), b), castagnoli(), r.Payload)
}

// follow returns the sum of a part of a state. The first part continues the sum of the last
// fact that the state includes, so that a state of another log is detected. Each other part
// continues the sum of the part before it.
func follow(sum uint32, part []byte) uint32 {
	return crc32.Update(sum, castagnoli(), part)
}

func number(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

func text(b []byte, s string) []byte {
	return append(number(b, int64(len(s))), s...)
}
