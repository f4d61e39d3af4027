package watch

import (
	"fmt"

	"orchestrator/cmd/orchestrator/term"
)

// A paper is a text that covers the panes.
type paper struct {
	title string
	text  []string // its lines
	diff  bool     // its lines have colors
	lines []string // wrapped lines
	size  int      // width of lines
	top   int      // first visible line
	room  int      // maximum number of visible lines
}

// commandTitle returns a command line for a title.
func commandTitle(text string) string { return term.Clip(oneLine(text), 200) }

func (r *paper) draw(p pen, width, height int) []string {
	if r.size != width-4 {
		r.size, r.lines = width-4, nil
		for _, text := range r.text {
			for _, part := range p.wrap(text, r.size) {
				if r.diff {
					part = p.ink(term.DiffInk(text), part)
				}
				r.lines = append(r.lines, part)
			}
		}
	}
	r.room = max(1, height-2)
	r.top = max(0, min(r.top, len(r.lines)-r.room))
	to := min(len(r.lines), r.top+r.room)
	title := r.title
	if len(r.lines) > r.room {
		title = fmt.Sprintf("%s  %d-%d of %d", title, r.top+1, to, len(r.lines))
	}
	shown := make([]string, 0, r.room)
	for _, text := range r.lines[r.top:to] {
		shown = append(shown, " "+text)
	}
	return p.draw(pane{title: title, focused: true}, width, height, shown)
}
