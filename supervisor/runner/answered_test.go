package runner

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/stdio"
)

// A request is answered if its answer came after it was printed. It is forgotten when it is settled.
func TestAnswered(t *testing.T) {
	request := func(id string) []byte {
		return fmt.Appendf(nil, `{"id":%q,"type":"request:list-agents","payload":{}}`, id)
	}
	reply := string(stdio.Envelope{ID: "m1"}.AppendAnswer(nil, "q1", wire.Nothing{}, nil))
	refusal := string(stdio.Envelope{ID: "m2"}.AppendAnswer(nil, "q2", nil, &wire.Error{Code: wire.CodeInvalid, Message: "no"}))
	var a answered
	require.False(t, a.has(request("q1"), 1))
	a.hear([]byte(`{"type":"notify:x","correlationId":"q3"}`+"\n"+reply[:9]), 3)
	a.hear([]byte(reply[9:]+refusal), 4)
	require.True(t, a.has(request("q1"), 4))
	require.True(t, a.has(request("q2"), 2))
	require.False(t, a.has(request("q1"), 5), "printed later, with the same id")
	require.False(t, a.has(request("q3"), 1), "a notice is no answer")
	require.False(t, a.has([]byte(`{"id":"q1","type":"event:usage"}`), 1))
	require.False(t, a.has([]byte("words"), 1))
	a.settle(4)
	require.False(t, a.has(request("q1"), 4))
	for n := range maxAnswered + 1 {
		a.hear(stdio.Envelope{ID: "m"}.AppendAnswer(nil, fmt.Sprint(n), wire.Nothing{}, nil), 9)
	}
	require.True(t, a.crowded)
	a.settle(9)
	require.False(t, a.crowded)
}
