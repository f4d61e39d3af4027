package term

import (
	"fmt"
	"strings"

	"orchestrator/wire"
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

// A Card describes one thing in rows of a label and a value.
type Card struct{ Lines [][]Cell }

// longest is the maximum number of bytes that a card shows of one text.
const longest = 4000

// Row adds a row to a card unless its value is empty.
func (c *Card) Row(label, value string) {
	if value != "" {
		c.Rows(label, []string{value})
	}
}

// Rows adds a row for each value. Only the first row has the label.
func (c *Card) Rows(label string, values []string) {
	for i, value := range values {
		if i > 0 {
			label = ""
		}
		c.Lines = append(c.Lines, []Cell{Text("  " + label), Text(wire.Visible(value))})
	}
}

// Text adds a row for each line of a text, up to longest bytes.
func (c *Card) Text(label, value string) {
	value = strings.TrimRight(value, "\n")
	if value == "" {
		return
	}
	over := len(value) - longest
	if over > 0 {
		value = strings.ToValidUTF8(value[:longest], "")
	}
	c.Rows(label, strings.Split(value, "\n"))
	if over > 0 {
		c.Rows("", []string{fmt.Sprintf("… %s more, all of it: --json", Bytes(int64(over)))})
	}
}
