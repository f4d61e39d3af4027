package supervisor

import (
	"time"
)

// page holds lines packed one behind the other: two allocations however many
// lines there are.
type page struct {
	text  []byte
	lines []mark
	borne int // bytes that what it holds keeps in memory besides the text
}

// mark is one line of a page. What a page holds besides the marked parts is
// not seen through it.
type mark struct {
	at         time.Time
	start, end int // in the page's text
	stream     string
	missed     int64   // lines before this one that there was no room for
	news       *notice // for what the orchestrator says
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
		p.borne += len(m.news.record.Payload)
	}
}

// weight is how much memory a page takes.
func (p *page) weight() int { return len(p.text) + len(p.lines)*markWeight + p.borne }

// markWeight is about what a mark takes.
const markWeight = 64

// line returns the text of the i-th line, which lives as long as the page.
func (p *page) line(i int) []byte { return p.text[p.lines[i].start:p.lines[i].end] }

func (p *page) clear() {
	clear(p.lines) // let go of events
	p.text, p.lines, p.borne = p.text[:0], p.lines[:0], 0
}
