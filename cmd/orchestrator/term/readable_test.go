package term

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A table is shown in columns if the last column has enough room, and otherwise as lists.
func TestTablesFitTheScreen(t *testing.T) {
	const table = "| Code | What is wrong | What to do |\n|---|---|---|\n| `one` | it is wrong | mend it |\n| `two` | | look |\n"
	require.Equal(t, ""+
		"  Code  What is wrong  What to do\n"+
		"  one   it is wrong    mend it\n"+
		"  two                  look\n", Readable(table, false, 60))
	require.Equal(t, ""+
		"  one\n"+
		"    What is wrong: it is wrong\n"+
		"    What to do: mend it\n"+
		"  two\n"+
		"    What to do: look\n", Readable(table, false, 40))
}
