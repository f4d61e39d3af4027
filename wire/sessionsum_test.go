package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSumsOfSessionMessages checks that a repeat has the same sum, although its time and its
// number may differ.
//
// Rows: C-02.
func TestSumsOfSessionMessages(t *testing.T) {
	sum := func(from, to string) uint64 {
		line := strings.Replace(shortAssignment, from, to, 1)
		require.True(t, from == to || line != shortAssignment, from)
		return heard(t, line, false).Sum
	}
	same := sum("", "")
	for from, to := range map[string]string{
		`"sequence_number":7,`: ``, `"sequence_number":7`: `"sequence_number":8`, `2026-11-20T09:15:00Z`: `2026-11-20T09:16:00Z`, `{"message_id"`: "{ \n\"message_id\"",
		`"message_id":"msg-7-kettle"`: `"message_id":"msg-8"`, `coder-2`: `coder-3`, `"payload"`: `"correlation_id":"c","payload"`, `"payload":`: `"payload" : `,
	} {
		require.Equal(t, same, sum(from, to), to)
	}
	for from, to := range map[string]string{
		`"lead"`: `"leader"`, `"coder"`: `"decoder"`, `"low"`: `"high"`, `"priority":"low"`: `"priority":"low","later":1`,
	} {
		require.NotEqual(t, same, sum(from, to), to)
	}
}
