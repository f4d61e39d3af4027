package watch

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// A pen formats text for columns. It knows the width of text on this terminal and whether
// to use color. Its input must be escaped already; it adds only color.
type pen struct {
	color term.Paint
	width ansi.Method
	theme *theme
}

// fit pads text to size columns, or cuts it with an ellipsis.
func (p pen) fit(text string, size int) string {
	if size <= 0 {
		return ""
	}
	wide := p.width.StringWidth(text)
	if wide > size {
		text = p.width.Truncate(text, size, "…")
		wide = p.width.StringWidth(text)
	}
	return text + strings.Repeat(" ", max(0, size-wide))
}

// right aligns text to the right edge of size columns.
func (p pen) right(text string, size int) string {
	if gap := size - p.width.StringWidth(text); gap > 0 {
		return strings.Repeat(" ", gap) + text
	}
	return p.fit(text, size)
}

// wrap breaks text into lines of at most size columns, at spaces if possible.
func (p pen) wrap(text string, size int) []string {
	if size <= 0 {
		return nil
	}
	return strings.Split(p.width.Wrap(text, size, ""), "\n")
}

// visible escapes an untrusted line for a row of the screen. It keeps the indentation, with
// spaces for tabs, because the width of a tab depends on the terminal.
func visible(line string) string {
	return steady(strings.ReplaceAll(wire.Visible(line), "\t", "    "))
}

// oneLine returns untrusted text in one line, escaped for a row of the screen.
func oneLine(text string) string {
	if len(text) > maxLineBytes { // a name may have megabytes, and each row is drawn with each key
		text = strings.ToValidUTF8(text[:maxLineBytes], "") + "…"
	}
	return steady(term.OneLine(text))
}

const maxLineBytes = 8 << 10

// maxMarks is how many combining marks a character may have: more cover its neighbors.
const maxMarks = 2

// steady removes characters that make the width of text depend on the terminal. Some terminals join
// characters that other terminals draw apart, and the border of a pane would move.
func steady(text string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x300:
			marks = 0
		case r == 0x200c, r == 0x200d, r >= 0xfe00 && r <= 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xe0000 && r <= 0xe0fff:
			return -1
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > maxMarks {
				return -1
			}
		default:
			marks = 0
		}
		return r
	}, text)
}

// bars draws figures relative to the largest one, the latest at the right.
func bars(figures []float64, size int) string {
	const signs = "▁▂▃▄▅▆▇█"
	most := 0.0
	for _, figure := range figures {
		most = max(most, figure)
	}
	figures = figures[max(0, len(figures)-size):]
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", size-len(figures)))
	for _, figure := range figures {
		level := 0
		if most > 0 {
			level = min(7, int(figure/most*7+0.5))
		}
		b.WriteString(signs[level*3 : level*3+3])
	}
	return b.String()
}

// A cell is a part of a row: its text, width and color.
type cell struct {
	text  string
	size  int
	ink   term.Ink
	right bool
}

// row joins cells in exactly size columns. A selected row has a mark at its left and, with
// color, is reversed.
func (p pen) row(picked bool, size int, cells ...cell) string {
	var b strings.Builder
	left := size - 1
	mark := " "
	if picked {
		mark = ">"
	}
	for i, c := range cells {
		if i > 0 && left > 0 {
			b.WriteByte(' ')
			left--
		}
		wide := min(c.size, left)
		text := p.fit(c.text, wide)
		if c.right {
			text = p.right(c.text, wide)
		}
		left -= wide
		if c.ink != "" && !picked {
			text = p.ink(c.ink, text)
		}
		b.WriteString(text)
	}
	line := mark + b.String() + strings.Repeat(" ", max(0, left))
	if picked {
		return p.ink(inkPicked, line)
	}
	return line
}

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
	b := p.theme.border
	rule := strings.Repeat(b.Top, max(0, inner-p.width.StringWidth(head)))
	mark, edge := p.ink(term.InkStrong, head), inkBorder
	if of.focused {
		mark, edge = p.ink(inkAccent, head), inkAccent
	}
	all := make([]string, 0, height)
	all = append(all, p.ink(edge, b.TopLeft)+mark+p.ink(edge, rule+b.TopRight))
	side := p.ink(edge, b.Left)
	for i := range height - 2 {
		line := strings.Repeat(" ", inner)
		if i < len(lines) {
			line = p.fit(lines[i], inner)
		}
		all = append(all, side+line+side)
	}
	return append(all, p.ink(edge, b.BottomLeft+strings.Repeat(b.Bottom, inner)+b.BottomRight))
}

func blank(p pen, width, height int) []string {
	lines := make([]string, max(0, height))
	for i := range lines {
		lines[i] = p.fit("", width)
	}
	return lines
}

// gutter is the width of the gap between two blocks side by side.
const gutter = 1

// rightOf returns the width of a block beside one of width left, on a screen of a given width.
func rightOf(left, width int) int { return width - left - gutter }

// beside joins two blocks of the same height side by side.
func beside(left, right []string) []string {
	lines := make([]string, len(left))
	for i := range left {
		lines[i] = left[i] + strings.Repeat(" ", gutter) + right[i]
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
