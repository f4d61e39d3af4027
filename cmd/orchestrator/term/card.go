package term

import (
	"fmt"
	"strings"

	"orchestrator/wire"
)

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
