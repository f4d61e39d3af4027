package output

import (
	"time"
)

// A Page holds lines in one buffer, with two allocations for any number of lines.
type Page struct {
	text  []byte
	lines []Mark
	borne int // bytes that its notices keep in memory
}

// A Mark is one line of a page.
type Mark struct {
	At         time.Time
	start, end int // in the page's text
	Stream     string
	missed     int64   // lines dropped before this one
	News       *Notice // the notice, for a line of the orchestrator
}

// Add copies a line onto the page.
func (p *Page) Add(m Mark, text ...[]byte) {
	m.start = len(p.text)
	for _, part := range text {
		p.text = append(p.text, part...)
	}
	m.end = len(p.text)
	p.lines = append(p.lines, m)
	if m.News != nil {
		p.borne += len(m.News.Record.Payload)
	}
}

// weight returns the memory that a page uses.
func (p *Page) weight() int { return len(p.text) + len(p.lines)*markWeight + p.borne }

// markWeight is the approximate memory that a mark uses.
const markWeight = 64

// line returns the text of line i, which is valid as long as the page.
func (p *Page) line(i int) []byte { return p.text[p.lines[i].start:p.lines[i].end] }

func (p *Page) clear() {
	clear(p.lines) // release events
	p.text, p.lines, p.borne = p.text[:0], p.lines[:0], 0
}
