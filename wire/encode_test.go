package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

func TestEncodeSpelling(t *testing.T) {
	text, err := object.Encode(AgentView{Name: "a", Command: []string{"a > b & <c>"}})
	require.NoError(t, err)
	require.Contains(t, string(text), `"command":["a > b & <c>"]`, "no \\u003e")
	require.Contains(t, string(text), `"depends_on":[]`, "lists are never null")
	require.NotContains(t, string(text), "started_at", "what is not there is left out")
}

func TestDecodeIsStrict(t *testing.T) {
	var r AgentsRequest
	require.NoError(t, object.Decode([]byte(`{"agents":["a"],"later":1}`), &r), "newer keys are passed over")
	require.Equal(t, []string{"a"}, r.Agents)
	for _, bad := range []string{`{"agents":["a"],"agents":["b"]}`, `{"agents":["a"]} {}`, `{"agents":"a"}`, `{`, "{\"agents\":[\"\xff\"]}"} {
		require.Error(t, object.Decode([]byte(bad), &r), bad)
	}
	r = AgentsRequest{}
	require.NoError(t, object.Decode([]byte(`{"AGENTS":["a"]}`), &r))
	require.Empty(t, r.Agents, "keys are exact")
}

// Rows: B-72.
func TestShutdownNotice(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("", 3600))
	line := Envelope{ID: "n1", At: at}.AppendNotice(nil, NoticeShutdown, &ShutdownNotice{GracePeriod: 30_000, Reason: "Orchestrator stopping"})
	require.Equal(t, `{"type":"notify:shutdown","id":"n1","timestamp":"2026-01-02T02:04:05.006Z","payload":{"gracePeriod":30000,"reason":"Orchestrator stopping"}}`+"\n", string(line))
}
