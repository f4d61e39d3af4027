package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
)

// line returns the line of a notification about the turn.
func line(update string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"update":` + update + `}}`)
}

// inTurn returns a client during its turn.
func inTurn(t *testing.T) *Client {
	c := New()
	c.Begin(&adapter.Opening{Agent: "coder", Permission: adapter.PermissionAsk})
	c.Heard([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`))
	c.Heard([]byte(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`))
	require.NotNil(t, c.Prompt("p", "Go."))
	return c
}

// TestManyWords checks that words without an end are logged in parts, that none is lost, and that
// the last ones belong to the turn.
func TestManyWords(t *testing.T) {
	c := inTurn(t)
	var said, logged strings.Builder
	longest := 0
	take := func(effects []adapter.Effect) {
		for _, e := range effects {
			if l, ok := e.(adapter.Log); ok {
				logged.WriteString(l.Text)
				longest = max(longest, len(l.Text))
			}
		}
	}
	for i := range 100 {
		words := fmt.Sprintf("%08000d", i)
		said.WriteString(words)
		take(c.Heard(line(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + words + `"}}`)))
	}
	effects := c.Heard([]byte(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`))
	take(effects)
	require.Equal(t, said.String(), logged.String())
	require.LessOrEqual(t, longest, maxWords+8000)
	last := effects[len(effects)-1].(*adapter.Ended).Text
	require.True(t, strings.HasSuffix(said.String(), last))
	require.Greater(t, len(last), maxWords, "the last words are not only those after the last part")
	require.LessOrEqual(t, len(last), 2*maxWords+8000)
}

// TestManyCalls checks that calls of tools that never end are kept up to a size, and that the log
// counts the rest.
func TestManyCalls(t *testing.T) {
	c := inTurn(t)
	input := strings.Repeat("x", 1<<20)
	for i := range 20 {
		c.Heard(line(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c-%d","kind":"edit","title":"a","rawInput":{"content":%q}}`, i, input)))
	}
	require.Less(t, c.tools.Len(), 9)
	lost := 20 - c.tools.Len()
	c.Heard(line(`{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed"}`))
	require.Equal(t, 19-lost, c.tools.Len(), "a call that has ended is not needed")
	effects := c.Heard([]byte(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`))
	require.Contains(t, effects, adapter.Log{Text: fmt.Sprintf("%d tool calls were not stored: the client made too many in one turn", lost)})
	require.Zero(t, c.tools.Len())
}
