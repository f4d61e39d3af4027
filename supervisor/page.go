package supervisor

import (
	"time"

	"orchestrator/wire"
)

// page holds lines packed one behind the other: two allocations however many
// lines there are.
type page struct {
	text  []byte
	lines []mark
}

// mark is one line of a page.
type mark struct {
	at     time.Time
	end    int // in the page's text; the line before ends where this one starts
	stream string
	missed int64       // lines before this one that there was no room for
	event  *wire.Event // for what the orchestrator says
}

func (p *page) add(m mark, text ...[]byte) {
	for _, part := range text {
		p.text = append(p.text, part...)
	}
	m.end = len(p.text)
	p.lines = append(p.lines, m)
}

// line returns the text of the i-th line, which lives as long as the page.
func (p *page) line(i int) []byte {
	start := 0
	if i > 0 {
		start = p.lines[i-1].end
	}
	return p.text[start:p.lines[i].end]
}

func (p *page) clear() {
	clear(p.lines) // let go of events
	p.text, p.lines = p.text[:0], p.lines[:0]
}
