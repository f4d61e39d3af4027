package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/delegation"
)

// An agent cannot change the tasks of others by messages about them, and learns nothing about
// them.
//
// Rows: D-10, D-12, D-14, D-18, D-37, D-38, D-39, T-02, T-32, K-18.
func TestDelegationOfOthers(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(1)+doer("eve", 9), "boss", "cook", "help", "eve")
	boss, cook, help, eve := all[0], all[1], all[2], all[3]
	boss.asks("t-1", "cook", of("cook"), `"context":{"user":"ann","conversationId":"private"}`, `"observability":{"traceId":"secret","baggage":{"key":"secret"}}`)
	cook.gets("t-1")
	cook.says("t-1", "in_progress")
	boss.hear(1, "t-1", delegation.InProgress)
	before := h.shownTask("t-1")

	for n, act := range []string{delegation.ActStatus, delegation.ActUpdate, delegation.ActCancel} {
		eve.acts("t-1", act, `{"input":1,"reason":"I say so"}`)
		waitForThat(t, "refusal", func() bool { return len(eve.answers("t-1")) > n })
		m := eve.answers("t-1")[n]
		require.Equal(t, []string{"response:error", "UNAUTHORIZED"}, []string{m.Type, m.Error.Code})
		require.NotContains(t, m.line, "secret")
	}
	for _, status := range delegation.Statuses {
		eve.says("t-1", status)
	}
	eve.asks("t-1", "cook", of("cook"))
	eve.asks("e-1", "wash", `"context":{"parentTaskId":"t-1"}`) // pretends to be a part of t-1
	part := help.gets("e-1")
	require.Empty(t, part.Context.User+part.Context.ConversationID)
	require.NotContains(t, part.line, "secret")
	require.Equal(t, []string{"eve"}, part.Routing.Chain)
	eve.asks("e-2", "cook", of("cook"), `"context":{"parentTaskId":"t-1","priority":"urgent"}`)
	eve.asks("e-3", "cook", `"routing":{"source":"boss","delegationChain":["help"]}`)
	require.Equal(t, delegation.FaultDelegation, eve.hear(1, "e-3", delegation.Failed).Error.Code)
	eve.quiet()
	cook.quiet()
	require.Equal(t, []string{aRequest}, cook.kinds("t-1"))
	require.Empty(t, cook.words("e-2"), "no room is made by that")
	require.Equal(t, before, h.shownTask("t-1"))
	require.Equal(t, []string{"in_progress"}, boss.kinds("t-1"))
	cook.says("t-1", "completed")
	boss.hear(1, "t-1", delegation.Completed)
	cook.gets("e-2")
	help.says("e-1", "completed")
	eve.hear(1, "e-1", delegation.Completed)
	require.Empty(t, boss.words("e-1"))
	h.stop()
}

// Lines that are too long, too deep, ambiguous or not text are refused. A flood of lines delays
// only its sender, even if the sender does not read.
//
// Rows: D-01, D-03, D-18, D-30, D-39, T-04, T-32.
func TestDelegationHostile(t *testing.T) {
	t.Parallel()
	flood := requesting("flood", "cook", of("cook"), `"context":{"user":"`+strings.Repeat("x", 1000)+`"}`)
	h, all := plot(t, "\nprotocol {\n  max_line = \"64KiB\"\n}\n"+doer("boss", 9)+doer("cook", 9, "cook")+doer("eve", 9)+fmt.Sprintf(`
agent "flood" {
  command = ["yes", %q]
  limits {
    mailbox = 16
  }
}
`, flood), "boss", "cook", "eve")
	boss, cook, eve := all[0], all[1], all[2]
	boss.asks("t-1", "cook")
	cook.gets("t-1")
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	refused := []string{
		`{"id":"e-0","type":"cook","payload":{"large":"` + strings.Repeat("x", 100<<10) + `"}}`,
		`{"id":"e-1","type":"cook","payload":` + deep + `}`,
		`{"id":"e-2","type":"cook","payload":{},"payload":{"n":1}}`,
		`{"id":"e-3","type":"cook","payload":{},"observability":{"baggage":` + deep + `}}`,
		`{"id":"e-4","type":"cook","payload":{},"context":{"user":"` + strings.Repeat("u", 5000) + `","conversationId":"\u0000"}}`,
		`{"id":"e-5","type":"cook","payload":{},"context":{"user":"x","user":"y"}}`,
	}
	for n, line := range refused {
		eve.say(line + "\n")
		require.Equal(t, delegation.FaultInvalidInput, eve.hear(1, fmt.Sprint("e-", n), delegation.Failed).Error.Code, "%.100s", line)
	}
	for _, line := range []string{
		`{"id":3,"type":"cook","payload":{}}`, `{"id":1e999,"type":"task.status","payload":{}}`, `{"id":[],"type":"cook","payload":{}}`,
		`{"id":"","type":"cook","payload":{}}`, `{"id":"` + strings.Repeat("i", 5000) + `","type":"cook","payload":{}}`, `{"id":"e\n","type":"cook","payload":{}}`,
		`{"id":"e-6","id":"t-1","type":"task.cancel","payload":{}}`, `{"id":"t-1","status":"failed","status":"completed"}`,
		"{\"id\":\"e-7\",\"type\":\"cook\",\"payload\":{\"x\":\"\xff\xfe\"}}", `{"id":"e-8","type":"cook","payload":{}`, "[" + requesting("e-9", "cook") + "]",
		`{"id":"e-10","status":` + deep + `}`, `{"id":"t-1","type":"task.cancel","payload":` + deep + `}`, strings.Repeat("{", 100_000),
		`{"id":"e-11","type":"cook","payload":{},"type":"task.cancel"}`, `{"id":"e-12","type":"request:cancel-task","payload":{"taskId":"t-1"},"routing":{}}`,
		`{"id":"e-14","type":"cook","payload":{},"message_type":"abort"}`,
	} {
		eve.say(line + "\n")
	}
	for n := range 300 { // three times the rate limit
		eve.asks(fmt.Sprint("f-", n), "fly")
		eve.acts("t-1", delegation.ActCancel, `{}`)
		eve.says("t-1", "failed")
	}
	limited := eve.wait("that it is too much", func(m *message) bool { return m.Error != nil && m.Error.Code == delegation.FaultRateLimited })
	require.True(t, readWord(t, limited.line).Error.Recoverable)
	eve.hear(1, "f-299", delegation.Failed)

	cook.gets("flood") // all repeats are one task
	cook.says("t-1", "completed", `"result":"well done"`)
	require.Equal(t, `"well done"`, string(boss.hear(1, "t-1", delegation.Completed).Result))
	cook.says("flood", "completed")
	boss.asks("t-2", "cook")
	cook.gets("t-2")
	cook.quiet()
	boss.quiet()
	require.Equal(t, []string{aRequest}, cook.kinds("flood"))
	require.Equal(t, []string{aRequest}, cook.kinds("t-1"))
	for _, task := range h.tasksNow() {
		require.Contains(t, []string{"t-1", "t-2", "flood"}, task.ID)
	}
	for _, name := range []string{"boss", "cook", "eve"} {
		require.Equal(t, control.StateRunning, h.agent(name).State)
	}
	h.stop()
}
