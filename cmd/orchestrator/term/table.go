package term

import (
	"strings"
)

// A Cell is one field of a table. Ink paints its text without changing its width.
type Cell struct {
	Text  string
	Ink   func(string) string
	Right bool // numbers are aligned to the right
}

// Text returns a cell of text.
func Text(s string) Cell { return Cell{Text: s} }

// Figure returns a cell of a number, aligned to the right.
func Figure(s string) Cell { return Cell{Text: s, Right: true} }

// Table renders rows with every column as wide as its widest cell. The last
// column is not padded.
func Table(rows [][]Cell) string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c.Text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(c.render(widths[i], i == len(row)-1))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func (c Cell) render(size int, last bool) string {
	gap := strings.Repeat(" ", max(0, size-Width(c.Text)))
	shown := c.Text
	if c.Ink != nil {
		shown = c.Ink(shown)
	}
	switch {
	case c.Right:
		return gap + shown
	case last:
		return shown
	}
	return shown + gap
}
