package claude

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/internal/play"
)

// TestTranscripts plays lines of real clients, reduced to the members that are read.
func TestTranscripts(t *testing.T) {
	play.Run(t, func() adapter.Client { return New() })
}

// TestOurs checks that a tool of another server, or of the client, is not taken for one of ours, which
// are allowed without asking.
func TestOurs(t *testing.T) {
	for name, want := range map[string]bool{
		"mcp__orc__task_complete": true, "task_complete": false, "mcp__other__task_complete": false, "mcp__orc__": false,
		"mcp__orc__rm": false, "mcp__orc__task_complete ": false, "": false,
	} {
		require.Equal(t, want, ours(name), name)
	}
}

// TestStatusesOfTheVendor checks which answers of the vendor are limits, and which are missing logins.
func TestStatusesOfTheVendor(t *testing.T) {
	for status, want := range map[string]string{
		"429": adapter.FailLimit, "529": adapter.FailLimit, "401": adapter.FailLogin, "403": adapter.FailLogin, "500": adapter.FailTool,
	} {
		effects := New().ended([]byte(`{"type":"result","is_error":true,"api_error_status":` + status + `,"result":"words"}`))
		require.Equal(t, &adapter.Ended{Text: "words", Failure: want}, effects[len(effects)-1], status)
		if want == adapter.FailLimit {
			require.Equal(t, []adapter.Effect{&adapter.Limited{Scope: status}}, effects[:len(effects)-1])
		}
	}
}
