package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// requireNothingHeeded requires that all output of an agent is log lines with these prefixes,
// and that none was taken for a message.
func (s *stage) requireNothingHeeded(agent string, starts ...string) {
	s.t.Helper()
	lines := s.waitForLines(len(starts), agent)
	require.Len(s.t, lines, len(starts))
	for n, start := range starts {
		require.True(s.t, strings.HasPrefix(lines[n], start), "%s is none of %s", lines[n], start)
	}
	require.Empty(s.t, s.events(events.AgentRefused, agent))
}

// An agent that echoes its input does not change its tasks, and gets no answer to an echo.
//
// Rows: D-18, D-37, T-02, T-32.
func TestDelegationToAnEcho(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9)+`
agent "cat" {
  command = ["cat"]
  capabilities {
    names                = ["echo"]
    max_concurrent_tasks = 9
  }
}
`, "boss", "cook", "help")
	boss := all[0]
	boss.asks("t-1", "echo", of("cat"), `"context":{"user":"ann"}`, `"observability":{"traceId":"x"}`)
	h.waitForLines(1, "cat")
	boss.acts("t-1", delegation.ActStatus, `{}`)
	h.waitForLines(2, "cat")
	require.Equal(t, "cat", boss.hear(1, "t-1", delegation.Pending).Metadata.Agent, "it says nothing, and so it is said for it")
	boss.acts("t-1", delegation.ActUpdate, `{"input":["more"]}`)
	h.waitForLines(3, "cat")
	require.Equal(t, wire.TaskAssigned, h.taskState("t-1"))
	boss.acts("t-1", delegation.ActCancel, `{"reason":"enough"}`)
	boss.hear(1, "t-1", delegation.Cancelled)
	h.waitForLines(4, "cat")
	boss.asks("t-2", "echo") // after any effect of the echoes
	h.waitForLines(5, "cat")
	h.operated(nil, "cancel-task", `{"taskId":"t-2"}`)
	h.requireNothingHeeded("cat", `{"id":"t-1","type":"echo",`, `{"id":"t-1","type":"task.status",`, `{"id":"t-1","type":"task.update",`,
		`{"id":"t-1","type":"task.cancel",`, `{"id":"t-2","type":"echo",`, `{"id":"t-2","type":"task.cancel",`)
	require.Equal(t, []string{delegation.Pending, delegation.Cancelled}, boss.kinds("t-1"))
	require.Empty(t, boss.answers("t-1"))
	h.stop()
}

// An agent that delegates work and echoes its input changes no task: echoed responses and
// refusals are ignored.
//
// Rows: D-10, D-17, D-18, T-02.
func TestDelegationByAnEcho(t *testing.T) {
	t.Parallel()
	asked := requesting("t-1", "cook", of("cook"))
	h := troupeOf(t, kitchen(9)+`
agent "parrot" {
  command = ["sh", "-c", "cat said; exec cat"]
}
`, "boss", "cook", "help")
	h.write("said", asked+"\n"+requesting("t-2", "fly")+"\n"+`{"id":"t-1","type":"task.status","payload":[]}`+"\n"+`{"id":3,"type":"cook","payload":{}}`+"\n")
	cook := h.cast("boss", "cook", "help")[1]
	cook.gets("t-1")
	cook.says("t-1", "in_progress")
	h.waitForLines(4, "parrot")
	cook.says("t-1", "input_required", `"message":"how?"`)
	h.waitForLines(5, "parrot")
	cook.says("t-1", "completed", `"result":{"type":"cook"}`)
	lines := strings.Join(h.waitForLines(6, "parrot"), "\n")
	for _, echo := range []string{
		`{"id":"t-2","status":"failed","error":{"code":"CAPABILITY_NOT_FOUND"`, `"correlationId":"t-1"`, `"correlationId":3`,
		`{"id":"t-1","status":"in_progress"}`, `{"id":"t-1","status":"input_required","message":"how?"}`, `{"id":"t-1","status":"completed","result":{"type":"cook"}}`,
	} {
		require.Contains(t, lines, echo)
	}
	cook.quiet()
	require.Equal(t, []string{aRequest}, cook.kinds("t-1"))
	require.Equal(t, wire.TaskDone, h.taskState("t-1"))
	require.Len(t, h.lines("parrot", control.StreamOut), 6, "nobody answers an echo")
	h.stop()
}
