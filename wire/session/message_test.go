package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows: C-02.
func TestChecksum(t *testing.T) {
	own := func(kind, from, to, payload string) uint64 {
		m := Message{MessageType: kind, From: Agent{AgentID: from}, To: Agent{AgentID: to}}
		return m.checksum([]byte(payload))
	}
	require.NotEqual(t, own("abort", "ab", "c", "{}"), own("abort", "a", "bc", "{}"))
	require.NotEqual(t, own("abort", "a", "b", "{}"), own("abort", "b", "a", "{}"))
	require.NotEqual(t, own("status_query", "a", "b", "{}"), own("status_response", "a", "b", "{}"))
	require.Equal(t, uint64(0x8149c740f7473ec7), own("abort", "a", "b", "{}"), "it is kept in records: it stays as it is")
}
