package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsSaidFitsIntoTheRecord checks that the limits of a line and a body cannot exceed what
// one fact holds.
func TestWhatIsSaidFitsIntoTheRecord(t *testing.T) {
	for size, problems := range map[string]int{"1KiB": 0, "28MiB": 0, "29MiB": 2, "1GiB": 2, "1023": 2} {
		_, found := Load(write(t, "orchestrator.hcl", fmt.Sprintf(`
agent "a" {
  command = ["x"]
}
protocol {
  max_line = %q
}
http {
  max_body = %q
}`, size, size)), Options{})
		require.Equal(t, problems, found.Errors(), "%s: %v", size, found)
	}
}
