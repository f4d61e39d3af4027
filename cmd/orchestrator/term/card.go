package term

import (
	"fmt"
	"strings"

	"orchestrator/wire"
)

// Card is what is known of one thing: a label and what it is, in lines.
type Card struct{ Lines [][]Cell }

// longest is how much of one text a card shows.
const longest = 4000

// Row adds a row to a card.
func (c *Card) Row(label, value string) {
	if value != "" {
		c.Rows(label, []string{value})
	}
}

// Rows has the label before the first line alone.
func (c *Card) Rows(label string, values []string) {
	for i, value := range values {
		if i > 0 {
			label = ""
		}
		c.Lines = append(c.Lines, []Cell{Text("  " + label), Text(wire.Visible(value))})
	}
}

// Text shows text of any length in its own lines.
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
