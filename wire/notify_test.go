package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rows: B-72.
func TestShutdownNotice(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("", 3600))
	line := Envelope{ID: "n1", At: at}.AppendNotice(nil, NoticeShutdown, &ShutdownNotice{GracePeriod: 30_000, Reason: "Orchestrator stopping"})
	require.Equal(t, `{"type":"notify:shutdown","id":"n1","timestamp":"2026-01-02T02:04:05.006Z","payload":{"gracePeriod":30000,"reason":"Orchestrator stopping"}}`+"\n", string(line))
}
