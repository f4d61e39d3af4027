package watch

import (
	"strings"

	"orchestrator/cmd/orchestrator/term"
)

// A pane is a part of the screen with a border.
type pane struct {
	title   string
	focused bool
}

// draw returns a pane around lines. It pads or cuts them to the size of the pane.
func (p pen) draw(of pane, width, height int, lines []string) []string {
	if width < 4 || height < 2 {
		return blank(p, width, height)
	}
	inner := width - 2
	title := p.width.Truncate(of.title, max(0, inner-3), "…")
	head := ""
	if title != "" {
		head = " " + title + " "
	}
	rule := strings.Repeat("─", max(0, inner-p.width.StringWidth(head)))
	mark, edge := head, term.InkDim
	if of.focused {
		mark, edge = p.ink(term.InkStrong, head), term.InkStrong
	}
	all := make([]string, 0, height)
	all = append(all, p.ink(edge, "┌")+mark+p.ink(edge, rule+"┐"))
	side := p.ink(edge, "│")
	for i := range height - 2 {
		line := strings.Repeat(" ", inner)
		if i < len(lines) {
			line = p.fit(lines[i], inner)
		}
		all = append(all, side+line+side)
	}
	return append(all, p.ink(edge, "└"+strings.Repeat("─", inner)+"┘"))
}

func blank(p pen, width, height int) []string {
	lines := make([]string, max(0, height))
	for i := range lines {
		lines[i] = p.fit("", width)
	}
	return lines
}

// beside joins two blocks of the same height side by side.
func beside(left, right []string) []string {
	lines := make([]string, len(left))
	for i := range left {
		lines[i] = left[i] + right[i]
	}
	return lines
}

// A list is the position in a list of rows.
type list struct {
	at  int // selected row
	top int // first visible row
	of  int // number of rows
	fit int // rows that fitted last time
}

// resize sets the number of rows and keeps the selection within them.
func (l *list) resize(n int) {
	l.of = n
	l.at = max(0, min(l.at, n-1))
}

// window returns the range of visible rows for room rows.
func (l *list) window(room int) (from, to int) {
	l.fit = max(1, room)
	l.top = max(0, min(l.top, l.of-l.fit))
	switch {
	case l.at < l.top:
		l.top = l.at
	case l.at >= l.top+l.fit:
		l.top = l.at - l.fit + 1
	}
	return l.top, min(l.of, l.top+max(0, room))
}

// move handles the keys that move in lists. It reports whether key is one of them.
func (l *list) move(key string) bool {
	page := max(1, l.fit-1)
	switch key {
	case "up", "k":
		l.at--
	case "down", "j":
		l.at++
	case "pgup", "ctrl+b":
		l.at -= page
	case "pgdown", "ctrl+f":
		l.at += page
	case "home", "g":
		l.at = 0
	case "end", "G":
		l.at = l.of - 1
	default:
		return false
	}
	l.resize(l.of)
	return true
}
