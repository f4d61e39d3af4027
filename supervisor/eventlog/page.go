package eventlog

import (
	"fmt"

	"orchestrator/wire"
)

// page is a place in the log, and the facts that were read before it.
type page struct {
	after int64  // the last fact read
	sum   uint32 // its checksum
	end   int64  // the last fact to read
	facts []wire.Record
	names map[string]string // one copy of what rows have in common
}

// manyNames bounds names: beyond it a text is not common.
const manyNames = 4096

// read takes rows until the page is full, and verifies each.
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

// decode makes a fact of a row. The columns are those of selectEvents.
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

// name returns a text that many rows have as one string.
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

// failed is an error of SQLite behind the last fact read. What it finds
// malformed is a broken chain; what the disk does not give is not.
func (p *page) failed(err error) error {
	if damaged(err) {
		return &ChainError{Seq: p.after + 1, What: "it cannot be read", Cause: err}
	}
	return fmt.Errorf("reading behind fact %d: %w", p.after, err)
}
