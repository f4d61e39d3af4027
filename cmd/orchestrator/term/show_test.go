package term

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Columns are aligned also for wide, zero-width and colored characters.
func TestTable(t *testing.T) {
	rows := [][]Cell{
		{Text("A"), Figure("N"), Text("z")},
		{{Text: "写手", Ink: Paint(true).Good}, Figure("12"), Text("")},
		{Text("e\u0301a"), Figure("7"), Text("y")},
	}
	require.Equal(t, "A      N  z\n\x1b[32m写手\x1b[0m  12\ne\u0301a     7  y\n", Table(rows))
}

func TestReadable(t *testing.T) {
	page := "# Title\n\nSome `code` and **weight**\nthat goes on.\n\n| A | B |\n|---|---|\n| `a \\| b` | long text here |\n\n- one\n  two\n- three\n\n```\n  kept   as is\n```\n"
	require.Equal(t, `TITLE

Some code and weight
that goes on.

  a | b
    B: long text
      here

- one two
- three

      kept   as is
`, Readable(page, false, 20), "a table that is too wide is read row by row")
	require.Contains(t, Readable(page, false, 60), "\n  A      B\n  a | b  long text here\n")
}
