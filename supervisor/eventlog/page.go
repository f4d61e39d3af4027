package eventlog

import (
	"fmt"

	"orchestrator/wire"
)

// A page is a position in the log, and the facts read before it.
type page struct {
	after int64  // the last fact read
	sum   uint32 // its checksum
	end   int64  // the last fact to read
	facts []wire.Record
	names map[string]string // shared copies of texts that many rows have
}

// manyNames is the most texts that names holds.
const manyNames = 4096

// read reads and verifies rows until the page is full.
func (p *page) read(rows statement, c *chain) error {
	for size := 0; p.after < p.end && len(p.facts) < pageRows && size < pageBytes; {
		more, err := rows.next()
		if err != nil {
			return p.failed(err)
		}
		if !more {
			return p.broken("it is missing")
		}
		if seq := rows.integer(0); seq != p.after+1 {
			return p.broken(fmt.Sprintf("it is missing; the next one is %d", seq))
		}
		r, ok := p.decode(rows)
		if !ok {
			return p.broken("its time is not RFC 3339 in UTC with milliseconds")
		}
		sum := c.next(p.sum, rows.text(1), &r)
		if kept := rows.integer(10); int64(sum) != kept {
			return p.broken(fmt.Sprintf("its checksum is %08x and should be %08x", kept, sum))
		}
		p.after, p.sum = r.Seq, sum
		p.facts = append(p.facts, r)
		size += len(r.Payload)
	}
	return nil
}

// decode converts a row to a fact. The columns are those of selectEvents.
func (p *page) decode(rows statement) (r wire.Record, ok bool) {
	r.Seq = rows.integer(0)
	r.At, ok = parseAt(rows.text(1))
	r.From = p.name(rows.text(2))
	r.To = p.name(rows.text(3))
	r.Topic = p.name(rows.text(4))
	r.Kind = p.name(rows.text(5))
	if payload := rows.text(6); len(payload) > 0 {
		r.Payload = append(make([]byte, 0, len(payload)), payload...)
	}
	r.ReplyTo = rows.integer(7)
	r.Key = string(rows.text(8))
	r.Correlation = string(rows.text(9))
	return r, ok
}

// name returns a shared string for a text that many rows have.
func (p *page) name(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if s, ok := p.names[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(p.names) < manyNames {
		p.names[s] = s
	}
	return s
}

func (p *page) broken(what string) error {
	return &ChainError{Seq: p.after + 1, What: what}
}

// failed returns the error for a failure of SQLite after the last fact read. A malformed file
// is a broken chain; a read error of the disk is not.
func (p *page) failed(err error) error {
	if damaged(err) {
		return &ChainError{Seq: p.after + 1, What: "it cannot be read", Cause: err}
	}
	return fmt.Errorf("reading behind fact %d: %w", p.after, err)
}
