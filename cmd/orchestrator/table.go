package main

import (
	"strings"

	"orchestrator/cmd/orchestrator/plain"
)

// cell is one field of a table: its text, and how it is painted once it has
// its width.
type cell struct {
	text  string
	ink   func(string) string
	right bool // figures stand at the right edge
}

func text(s string) cell   { return cell{text: s} }
func figure(s string) cell { return cell{text: s, right: true} }

// table renders rows with every column as wide as its widest cell. The last
// column is not padded.
func table(rows [][]cell) string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], plain.Width(c.text))
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

func (c cell) render(size int, last bool) string {
	gap := strings.Repeat(" ", max(0, size-plain.Width(c.text)))
	shown := c.text
	if c.ink != nil {
		shown = c.ink(shown)
	}
	switch {
	case c.right:
		return gap + shown
	case last:
		return shown
	}
	return shown + gap
}
