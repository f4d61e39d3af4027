package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// A refused request creates no task. The source gets the reason in a response, no other agent
// learns of it, and the id stays free.
//
// Rows: D-01, D-02, D-03, D-04, D-08, D-09, D-10, D-11, D-12, D-16, D-23, D-29, D-30, D-39.
func TestDelegationRefused(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	for n, bad := range []struct {
		more, code string
		says       []string // expected in the details
	}{
		{`"payload":[1]`, delegation.FaultInvalidInput, []string{`"pointer":"/payload"`}},
		{`"payload":"text"`, delegation.FaultInvalidInput, []string{`"pointer":"/payload"`}},
		{`"payload":null`, delegation.FaultInvalidInput, []string{`"pointer":"/payload"`}},
		{`"payload":{},"context":{"priority":"asap","timestamp":"yesterday"}`, delegation.FaultInvalidInput, []string{`/context/priority`, `/context/timestamp`}},
		{`"payload":{},"context":[],"routing":7`, delegation.FaultInvalidInput, []string{`"/context"`, `"/routing"`}},
		{`"payload":{},"routing":{"delegationChain":["x",3]}`, delegation.FaultInvalidInput, []string{`/routing/delegationChain/1`}},
		{`"payload":{},"observability":{"baggage":[]}`, delegation.FaultInvalidInput, []string{`/observability/baggage`}},
		{`"payload":{},"observability":{"baggage":{"b":"` + strings.Repeat("x", 16<<10) + `"}}`, delegation.FaultInvalidInput, []string{`/observability/baggage`}},
		{`"payload":{},"payload":{}`, delegation.FaultInvalidInput, nil},
		{`"payload":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), delegation.FaultInvalidInput, nil},
		{`"payload":{},"routing":{"target":"kook"}`, delegation.FaultAgentNotFound, []string{`"target":"kook"`}},
		{`"payload":{},"routing":{"target":"help"}`, delegation.FaultCapabilityNotFound, []string{`wash`}},
		{`"payload":{},"routing":{"target":"boss"}`, delegation.FaultGraphCycle, []string{`["boss"]`}},
		{`"payload":{},"routing":{"delegationChain":["cook"]}`, delegation.FaultGraphCycle, []string{`["cook","boss"]`}},
		{`"payload":{},"routing":{"source":"help","target":"cook"}`, delegation.FaultDelegation, []string{`/routing/source`}},
	} {
		boss.Say(fmt.Sprintf(`{"id":"t-%d","type":"cook",%s}`+"\n", n, bad.more))
		w := hear(boss, 1, fmt.Sprint("t-", n), delegation.Failed)
		require.Equal(t, bad.code, w.Error.Code, "%.300s: %s", bad.more, w.line)
		require.NotEmpty(t, w.Error.Message)
		require.False(t, w.Error.Recoverable)
		for _, part := range bad.says {
			require.Contains(t, string(w.Error.Details), part)
		}
		require.Equal(t, cli.ExitNotFound, fails(h.Orchestrator, "task", "show", fmt.Sprint("t-", n)), "it is no task")
	}
	asks(boss, "t-fly", "fly")
	require.Equal(t, delegation.FaultCapabilityNotFound, hear(boss, 1, "t-fly", delegation.Failed).Error.Code)
	boss.Say(`{"id":77,"type":"cook","payload":{}}` + "\n") // an id that no response can have
	m := boss.Wait("the refusal", func(m *stage.Message) bool { return string(m.CorrelationID) == "77" })
	require.Equal(t, "INVALID_REQUEST", m.Error.Code)
	require.Equal(t, "/id", m.Error.Details["pointer"])
	for _, a := range []*stage.Agent{cook, help} {
		a.Settle()
		require.Len(t, a.All(), 1, "%s hears of it", a.Name)
	}
	require.JSONEq(t, `{"tasks":[]}`, everyTask(h.Orchestrator))

	asks(boss, "t-0", "cook") // a valid one
	gets(cook, "t-0")
	h.Stop()
}

// everyTask returns the list of all tasks.
func everyTask(s *stage.Orchestrator) string {
	s.T.Helper()
	status, body := s.Operate("query-tasks", `{"limit":100000}`)
	require.Equal(s.T, 200, status)
	return string(body)
}

// An id belongs to one task forever. An identical request has no second effect and returns the
// status; a different one is refused. Acts and responses create no task.
//
// Rows: D-01, D-36, D-39, T-32.
func TestDelegationSaidAgain(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	asks(boss, "t-1", "cook", of("cook"))
	gets(cook, "t-1")
	asks(boss, "t-1", "cook", of("cook"), `"context":{"user":"ann"}`) // a repeat with another context
	w := hear(boss, 1, "t-1", delegation.Pending)
	require.Equal(t, "cook", w.Metadata.Agent)
	says(cook, "t-1", "in_progress", `"message":"half"`)
	hear(boss, 1, "t-1", delegation.InProgress)
	asks(boss, "t-1", "cook", of("cook"))
	require.Equal(t, "half", hear(boss, 2, "t-1", delegation.InProgress).Message)

	for n, other := range []string{
		requesting("t-1", "taste", of("cook")), requesting("t-1", "cook"),
		`{"id":"t-1","type":"cook","payload":{"n":1},"routing":{"target":"cook"}}`,
	} {
		boss.Say(other + "\n")
		stage.WaitFor(t, "refusal", func() bool { return len(boss.Answers("t-1")) > n })
		m := boss.Answers("t-1")[n]
		require.Equal(t, "INVALID_REQUEST", m.Error.Code)
		require.Equal(t, "id_reused", m.Error.Details["reason"])
	}
	asks(help, "t-1", "cook", of("cook"))
	require.Equal(t, "id_reused", declined(help, "t-1").Details["reason"], "whoever says it")
	cook.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"))

	says(cook, "t-1", "completed", `"result":1`)
	hear(boss, 1, "t-1", delegation.Completed)
	asks(boss, "t-1", "cook", of("cook"))
	require.Equal(t, "1", string(hear(boss, 2, "t-1", delegation.Completed).Result))
	cook.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"), "it is not done again")
	require.Equal(t, wire.TaskDone, h.TaskState("t-1"))
	h.Stop()
}

// An invalid response is refused to its agent, an unusual one is noted, and a late one is
// ignored. A line that only resembles a response is a log line.
//
// Rows: D-18, D-19, D-23, D-26, D-27, D-29, D-33, D-41, T-33.
func TestDelegationBadResponses(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	asks(boss, "t-1", "cook")
	gets(cook, "t-1")
	for n, bad := range [][2]string{
		{`"status":"in_progress","result":{}`, "/result"},
		{`"status":"completed","metadata":{"duration_ms":"long"}`, "/metadata/duration_ms"},
		{`"status":"completed","artifacts":{"name":"a"}`, "/artifacts"},
		{`"status":"completed","artifacts":[{"name":"a","type":"text/plain"}]`, "/artifacts/0/content"},
		{`"status":"completed","artifacts":[{"name":"a","type":"t","content":"","ref":"sha256:` + strings.Repeat("0", 64) + `"}]`, "/artifacts/0/ref"},
		{`"status":"failed","error":"it broke"`, "/error"},
		{`"status":"done"`, "/status"},
		{`"status":"COMPLETED"`, "/status"},
		{`"status":7`, "/status"},
	} {
		cook.Say(`{"id":"t-1",` + bad[0] + "}\n")
		stage.WaitFor(t, "refusal", func() bool { return len(cook.Answers("t-1")) > n })
		m := cook.Answers("t-1")[n]
		require.Equal(t, []any{"response:error", "INVALID_REQUEST", bad[1]}, []any{m.Type, m.Error.Code, m.Error.Details["pointer"]}, m.Line)
	}
	for _, none := range []string{
		`{"id":"t-1","status":"done","x":1}`, `{"id":"t-1","status":"completed","type":null,"x":1}`,
		`{"ID":"t-1","status":"completed"}`, `{"id":"t-unknown","status":"completed"}`, `{"id":"t-unknown","status":"done"}`,
	} {
		cook.Say(none + "\n")
	}
	says(help, "t-1", "completed") // not its task
	says(boss, "t-1", "completed")
	for _, a := range all {
		a.Settle()
	}
	require.Equal(t, wire.TaskAssigned, h.TaskState("t-1"), "nothing has changed")
	require.Empty(t, words(boss, "t-1"))
	require.Len(t, cook.All(), 1+9+1, "and nothing else is answered")
	require.Contains(t, h.WaitForLines(5, "cook"), `{"id":"t-1","status":"done","x":1}`)
	require.Contains(t, h.WaitForLines(1, "help"), `{"id":"t-1","status":"completed"}`)

	says(cook, "t-1", "in_progress", `"metadata":{"agent":"chef","durationMs":7}`)
	hear(boss, 1, "t-1", delegation.InProgress)
	var odd []string
	for _, e := range h.WaitForEvents(2, events.DocumentOdd, "") {
		odd = append(odd, e.Text)
	}
	require.Contains(t, strings.Join(odd, "\n"), `chef`)
	require.Contains(t, strings.Join(odd, "\n"), `duration_ms`)
	require.Equal(t, "chef", responseOf(h.Orchestrator, "t-1").Metadata.Agent, "it is passed on as it was said")
	require.Equal(t, "cook", h.ShownTask("t-1").AssignedTo, "and nobody believes it")

	says(cook, "t-1", "failed")
	hear(boss, 1, "t-1", delegation.Failed)
	failed := h.ShownTask("t-1")
	require.Contains(t, failed.Error, delegation.FaultInternal)
	h.WaitForEvents(3, events.DocumentOdd, "")
	for _, late := range []string{`"status":"completed","result":1`, `"status":"failed"`, `"status":"in_progress"`, `"status":"cancelled"`} {
		cook.Say(`{"id":"t-1",` + late + "}\n")
	}
	cook.Settle()
	boss.Settle()
	require.Equal(t, []string{"in_progress", "failed"}, kinds(boss, "t-1"))
	require.Equal(t, failed, h.ShownTask("t-1"))
	h.Stop()
	told := int64(0)
	for _, e := range h.Events(events.AgentRefused, "cook") {
		told += e.Figures.Count
	}
	require.Equal(t, int64(9+4), told, "people are told of all of them")
	late := 0
	for _, entry := range h.Audited() {
		if why, _ := entry["why"].(string); entry["type"] == "task:response" && strings.Contains(why, "is failed and cannot be responded to") {
			late++
		}
	}
	require.Equal(t, 4, late, "each of them is in the audit")
}

// An agent cannot change tasks of other agents by messages about them, and learns no details of
// them.
//
// Rows: D-10, D-12, D-14, D-18, D-37, D-38, D-39, T-02, T-32, K-18.
func TestDelegationOfOthers(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(1)+doer("eve", 9), "boss", "cook", "help", "eve")
	boss, cook, help, eve := all[0], all[1], all[2], all[3]
	asks(boss, "t-1", "cook", of("cook"), `"context":{"user":"ann","conversationId":"private"}`, `"observability":{"traceId":"secret","baggage":{"key":"secret"}}`)
	gets(cook, "t-1")
	says(cook, "t-1", "in_progress")
	hear(boss, 1, "t-1", delegation.InProgress)
	before := h.ShownTask("t-1")

	for n, act := range []string{delegation.ActStatus, delegation.ActUpdate, delegation.ActCancel} {
		acts(eve, "t-1", act, `{"input":1,"reason":"I say so"}`)
		stage.WaitFor(t, "refusal", func() bool { return len(eve.Answers("t-1")) > n })
		m := eve.Answers("t-1")[n]
		require.Equal(t, []string{"response:error", "UNAUTHORIZED"}, []string{m.Type, m.Error.Code})
		require.NotContains(t, m.Line, "secret")
	}
	for _, status := range delegation.Statuses {
		says(eve, "t-1", status)
	}
	asks(eve, "t-1", "cook", of("cook"))
	asks(eve, "e-1", "wash", `"context":{"parentTaskId":"t-1"}`) // pretends to be a part of t-1
	part := gets(help, "e-1")
	require.Empty(t, part.Context.User+part.Context.ConversationID)
	require.NotContains(t, part.line, "secret")
	require.Equal(t, []string{"eve"}, part.Routing.Chain)
	asks(eve, "e-2", "cook", of("cook"), `"context":{"parentTaskId":"t-1","priority":"urgent"}`)
	asks(eve, "e-3", "cook", `"routing":{"source":"boss","delegationChain":["help"]}`)
	require.Equal(t, delegation.FaultDelegation, hear(eve, 1, "e-3", delegation.Failed).Error.Code)
	eve.Settle()
	cook.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"))
	require.Empty(t, words(cook, "e-2"), "no room is made by that")
	require.Equal(t, before, h.ShownTask("t-1"))
	require.Equal(t, []string{"in_progress"}, kinds(boss, "t-1"))
	says(cook, "t-1", "completed")
	hear(boss, 1, "t-1", delegation.Completed)
	gets(cook, "e-2")
	says(help, "e-1", "completed")
	hear(eve, 1, "e-1", delegation.Completed)
	require.Empty(t, words(boss, "e-1"))
	h.Stop()
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
	asks(boss, "t-1", "cook")
	gets(cook, "t-1")
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
		eve.Say(line + "\n")
		require.Equal(t, delegation.FaultInvalidInput, hear(eve, 1, fmt.Sprint("e-", n), delegation.Failed).Error.Code, "%.100s", line)
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
		eve.Say(line + "\n")
	}
	for n := range 300 { // three times the rate limit
		asks(eve, fmt.Sprint("f-", n), "fly")
		acts(eve, "t-1", delegation.ActCancel, `{}`)
		says(eve, "t-1", "failed")
	}
	limited := eve.Wait("that it is too much", func(m *stage.Message) bool { return m.Error != nil && m.Error.Code == delegation.FaultRateLimited })
	require.True(t, readWord(t, limited.Line).Error.Recoverable)
	hear(eve, 1, "f-299", delegation.Failed)

	gets(cook, "flood") // all repeats are one task
	says(cook, "t-1", "completed", `"result":"well done"`)
	require.Equal(t, `"well done"`, string(hear(boss, 1, "t-1", delegation.Completed).Result))
	says(cook, "flood", "completed")
	asks(boss, "t-2", "cook")
	gets(cook, "t-2")
	cook.Settle()
	boss.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "flood"))
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"))
	for _, task := range h.TasksNow() {
		require.Contains(t, []string{"t-1", "t-2", "flood"}, task.ID)
	}
	for _, name := range []string{"boss", "cook", "eve"} {
		require.Equal(t, control.StateRunning, h.Agent(name).State)
	}
	h.Stop()
}
