package eventlog

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"orchestrator/wire"
)

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
