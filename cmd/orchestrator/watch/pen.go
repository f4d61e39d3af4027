package watch

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// pen writes text into columns: it knows how wide text is on this terminal, as the
// screen itself reckons it, and whether there are colours. What it is given is inert
// already; what it adds are colours alone.
type pen struct {
	color bool
	width ansi.Method
}

// ink colours text; a colour never says anything that the words do not.
func (p pen) ink(code, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const (
	inkBad    = "1;31"
	inkGood   = "32"
	inkWarn   = "33"
	inkStrong = "1"
	inkDim    = "2"
	inkPicked = "7"
)

// agentInk is the colour of an agent's state.
func agentInk(s wire.State) string {
	switch s {
	case wire.StateRunning:
		return inkGood
	case wire.StateStarting, wire.StateWaiting, wire.StateStopping, wire.StateBackoff:
		return inkWarn
	case wire.StateFailed, wire.StateStalled:
		return inkBad
	}
	return inkDim
}

// taskInk is the colour of a task's state.
func taskInk(s wire.TaskState) string {
	switch s {
	case wire.TaskDone, wire.TaskRunning:
		return inkGood
	case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
		return inkWarn
	case wire.TaskFailed:
		return inkBad
	case wire.TaskCancelled:
		return inkDim
	}
	return "0"
}

// fit is text in exactly so many columns; what is missing shows as an ellipsis.
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

// right is text at the right edge of so many columns.
func (p pen) right(text string, size int) string {
	if gap := size - p.width.StringWidth(text); gap > 0 {
		return strings.Repeat(" ", gap) + text
	}
	return p.fit(text, size)
}

// wrap breaks text into lines of so many columns, at spaces where there are some.
func (p pen) wrap(text string, size int) []string {
	if size <= 0 {
		return nil
	}
	return strings.Split(p.width.Wrap(text, size, ""), "\n")
}

// visible is a line that others wrote, fit for a row of a screen. Its indentation
// stays; a tab would be as wide as the terminal likes.
func visible(line string) string {
	return steady(strings.ReplaceAll(wire.Visible(line), "\t", "    "))
}

// oneLine is text that others wrote in one line, fit for a row of a screen.
func oneLine(text string) string { return steady(term.OneLine(text)) }

// mostMarks is how many marks a sign may bear: more cover its neighbours.
const mostMarks = 2

// steady is text that is as wide on every terminal. Some draw signs that are joined
// as one and some do not, and a pane whose border depends on that has none: so they
// are not joined.
func steady(text string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x300:
			marks = 0
		case r == 0x200c, r == 0x200d, r >= 0xfe00 && r <= 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xe0000 && r <= 0xe0fff:
			return -1
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > mostMarks {
				return -1
			}
		default:
			marks = 0
		}
		return r
	}, text)
}

// bars draws figures, the latest at the right: how each is to the largest.
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

// cell is a part of a row: its text, how wide it is, and its colour.
type cell struct {
	text  string
	size  int
	ink   string
	right bool
}

// row puts cells beside each other in exactly so many columns. The row that is
// picked has a mark at its left, and is reversed where there are colours.
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
