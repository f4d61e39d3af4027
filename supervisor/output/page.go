package output

import (
	"time"
)

// Page holds lines packed one behind the other: two allocations however many
// lines there are.
type Page struct {
	text  []byte
	lines []Mark
	borne int // bytes that what it holds keeps in memory besides the text
}

// Mark is one line of a page. What a page holds besides the marked parts is
// not seen through it.
type Mark struct {
	At         time.Time
	start, end int // in the page's text
	Stream     string
	missed     int64   // lines before this one that there was no room for
	News       *Notice // for what the orchestrator says
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

// weight is how much memory a page takes.
func (p *Page) weight() int { return len(p.text) + len(p.lines)*markWeight + p.borne }

// markWeight is about what a mark takes.
const markWeight = 64

// line returns the text of the i-th line, which lives as long as the page.
func (p *Page) line(i int) []byte { return p.text[p.lines[i].start:p.lines[i].end] }

func (p *Page) clear() {
	clear(p.lines) // let go of events
	p.text, p.lines, p.borne = p.text[:0], p.lines[:0], 0
}
