package output

import (
	"time"
)

// A page holds lines in one buffer, with two allocations for any number of lines.
type page struct {
	text  []byte
	lines []mark
	borne int // bytes that its notices keep in memory
}

// A mark is one line of a page.
type mark struct {
	at         time.Time
	start, end int // in the page's text
	stream     string
	missed     int64   // lines dropped before this one
	news       *Notice // the notice, for a line of the orchestrator
}

// add copies a line onto the page.
func (p *page) add(m mark, text ...[]byte) {
	m.start = len(p.text)
	for _, part := range text {
		p.text = append(p.text, part...)
	}
	m.end = len(p.text)
	p.lines = append(p.lines, m)
	if m.news != nil {
		p.borne += len(m.news.Record.Payload)
	}
}

// weight returns the memory that a page uses.
func (p *page) weight() int { return len(p.text) + len(p.lines)*markWeight + p.borne }

// markWeight is the approximate memory that a mark uses.
const markWeight = 64

// line returns the text of line i, which is valid as long as the page.
func (p *page) line(i int) []byte { return p.text[p.lines[i].start:p.lines[i].end] }

func (p *page) clear() {
	clear(p.lines) // release events
	p.text, p.lines, p.borne = p.text[:0], p.lines[:0], 0
}
