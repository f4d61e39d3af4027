package adapter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/claude"
)

// TestNextTurnWaits checks that no turn begins before the remains of an interrupted turn are ended, and that no process
// is ended after a turn that ended by itself, or when the agent is being stopped.
func TestNextTurnWaits(t *testing.T) {
	const (
		interrupt   = `{"type":"notify:interrupt","payload":{"message":"Keep the old page."}}`
		shutdown    = `{"type":"notify:shutdown","payload":{"gracePeriod":30000}}`
		interrupted = `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}`
		completed   = `{"type":"result","is_error":false,"terminal_reason":"completed","result":"Done."}`
	)
	at := time.Unix(0, 0)
	begin := func() *adapter.Machine {
		m := adapter.NewMachine(claude.New(), &adapter.Opening{Agent: "coder", Run: "r", Dir: "/", Permission: adapter.PermissionAsk, OnTurnEnd: adapter.OnTurnEndRemind})
		m.Begin(at)
		m.Heard(at, []byte(`{"type":"control_response","response":{"subtype":"success","request_id":"orc_1","response":{}}}`))
		m.Told(at, []byte(`{"type":"notify:interrupt","payload":{"message":"Begin."}}`))
		require.Equal(t, int64(1), m.Turns())
		return m
	}
	clears := func(effects []adapter.Effect) bool { return slices.Contains(effects, adapter.Effect(adapter.Clear{})) }
	prompts := func(effects []adapter.Effect) bool {
		return slices.ContainsFunc(effects, func(e adapter.Effect) bool {
			w, ok := e.(adapter.Write)
			return ok && strings.Contains(string(w.Line), "Keep the old page.")
		})
	}
	m := begin()
	m.Told(at, []byte(interrupt))
	effects := m.Heard(at, []byte(interrupted))
	require.True(t, clears(effects))
	require.False(t, prompts(effects))
	require.False(t, prompts(m.Told(at, []byte(`{"type":"notify:interrupt","payload":{"message":"And the old form."}}`))))
	require.True(t, prompts(m.Cleared(at)))
	require.Equal(t, int64(2), m.Turns())

	require.False(t, clears(begin().Heard(at, []byte(completed))), "it ended by itself")

	m = begin()
	m.Told(at, []byte(shutdown))
	require.False(t, clears(m.Heard(at, []byte(interrupted))), "the whole tree is ended")
}
