package output

const (
	// tailPage is the most bytes in each of the tail's two pages.
	tailPage = 64 << 10
	// tailLine is the most bytes that the tail stores of one line.
	tailLine = 4 << 10
)

var ellipsis = []byte("…")

// A tail stores the last lines of an agent. It fills two pages in turn, so that adding a line
// costs one copy and no line is moved.
type tail struct {
	limit    int
	now, old page
}

// keep adds the last lines of p.
func (t *tail) keep(p *page) {
	for i := max(0, len(p.lines)-t.limit); i < len(p.lines); i++ {
		text := p.line(i)
		if len(t.now.lines) >= t.limit || len(t.now.text)+len(text) > tailPage {
			t.now, t.old = t.old, t.now
			t.now.clear()
		}
		if len(text) > tailLine {
			t.now.add(p.lines[i], text[:tailLine], ellipsis)
		} else {
			t.now.add(p.lines[i], text)
		}
	}
}

// each calls see for the last n lines, oldest first.
func (t *tail) each(n int, see func(mark, []byte)) {
	n = min(n, t.limit)
	skip := max(0, len(t.old.lines)+len(t.now.lines)-n)
	for _, p := range []*page{&t.old, &t.now} {
		for i := range p.lines {
			if skip > 0 {
				skip--
				continue
			}
			see(p.lines[i], p.line(i))
		}
	}
}
