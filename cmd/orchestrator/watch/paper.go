package watch

import (
	"fmt"
	"strings"

	"orchestrator/cmd/orchestrator/term"
)

// A paper is a text that covers the panes.
type paper struct {
	title string
	text  []string // its lines
	lines []string // wrapped lines
	size  int      // width of lines
	top   int      // first visible line
	room  int      // maximum number of visible lines
}

// hearPaper shows the output of a command: one line that fits as a note, anything longer as
// a paper.
func (m *model) hearPaper(news paperNews) {
	if news.number != m.run {
		return // a later command has begun
	}
	m.busy = ""
	text := strings.Trim(news.text, "\n")
	words := plain1(strings.Join(news.words, " "))
	switch {
	case text == "" && news.exit == 0:
		m.say(noteNews{text: words + ": done"})
	case text == "":
		m.say(noteNews{text: fmt.Sprintf("%s: exit %d", words, news.exit), bad: true})
	case !strings.Contains(text, "\n") && m.pen.width.StringWidth(oneLine(text)) < m.width:
		m.say(noteNews{text: text, bad: news.exit != 0})
	default:
		title := words
		if news.exit != 0 {
			title += fmt.Sprintf("  exit %d", news.exit)
		}
		m.unroll(title, text)
	}
}

// plain1 returns a command line for a title.
func plain1(text string) string { return term.Clip(oneLine(text), 200) }

// unroll shows a text over the panes.
func (m *model) unroll(title, text string) {
	m.paper = &paper{title: oneLine(title)}
	for one := range strings.SplitSeq(text, "\n") {
		m.paper.text = append(m.paper.text, visible(strings.TrimRight(one, "\r")))
	}
}

func (m *model) paperKey(name string) bool {
	p := m.paper
	page := max(1, p.room-1)
	switch name {
	case "enter":
		m.paper = nil
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup", "ctrl+b":
		p.top -= page
	case "pgdown", "ctrl+f", "space":
		p.top += page
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = len(p.lines)
	default:
		return false
	}
	return true
}

func (r *paper) draw(p pen, width, height int) []string {
	if r.size != width-4 {
		r.size, r.lines = width-4, nil
		for _, text := range r.text {
			r.lines = append(r.lines, p.wrap(text, r.size)...)
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
