package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/programs"
)

// FreeAddresses returns n addresses at which no program listens.
func FreeAddresses(t *testing.T, n int) []string {
	addresses, err := programs.FreeAddresses(n)
	require.NoError(t, err)
	return addresses
}
