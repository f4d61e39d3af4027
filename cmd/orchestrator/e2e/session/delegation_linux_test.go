package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/trace"
)

// Tests of delegation with the real program: work that agents and people delegate to agents, and
// its responses. Scripted agents play the agents where exact lines matter.

// doer returns the block of a scripted agent with some capabilities and room for that many tasks.
func doer(name string, room int, types ...string) string {
	list, _ := json.Marshal(append([]string{}, types...))
	return fmt.Sprintf(`
agent %[1]q {
  command = ["scripted", %[1]q]
  capabilities {
    names                = %[2]s
    max_concurrent_tasks = %[3]d
  }
%[4]s
}
`, name, list, room, soon)
}

// kitchen returns the agents of most tests: boss delegates, and cook and help work.
func kitchen(room int) string {
	return stage.Unlimited + doer("boss", 9) + doer("cook", room, "cook", "taste") + doer("help", room, "wash")
}

// aWord is a line about a delegated task, as a scripted agent receives it.
type aWord struct {
	ID            string                `json:"id"`
	Type          string                `json:"type"`
	Status        string                `json:"status"`
	Payload       json.RawMessage       `json:"payload"`
	Context       delegation.Context    `json:"context"`
	Routing       delegation.Routing    `json:"routing"`
	Observability delegation.Trace      `json:"observability"`
	Result        json.RawMessage       `json:"result"`
	Error         *delegation.Fault     `json:"error"`
	Metadata      delegation.Metadata   `json:"metadata"`
	Artifacts     []delegation.Artifact `json:"artifacts"`
	Message       string                `json:"message"`

	line string
}

// aRequest is the kind of a task request. Other kinds are statuses and types of acts.
const aRequest = "request"

func (w *aWord) kind() string {
	switch {
	case w.Status != "":
		return w.Status
	case delegation.IsAct(w.Type):
		return w.Type
	}
	return aRequest
}

func readWord(t *testing.T, line string) aWord {
	t.Helper()
	w := aWord{line: line}
	require.NoError(t, json.Unmarshal([]byte(line), &w), "%.300s", line)
	return w
}

// words returns the lines about a task so far, in order.
func words(a *stage.Agent, id string) (found []aWord) {
	a.T.Helper()
	for _, m := range a.All() {
		if m.ID == id {
			found = append(found, readWord(a.T, m.Line))
		}
	}
	return found
}

// kinds returns the kinds of the lines about a task so far.
func kinds(a *stage.Agent, id string) (found []string) {
	a.T.Helper()
	for _, w := range words(a, id) {
		found = append(found, w.kind())
	}
	return found
}

// hear waits for the nth line of a kind about a task.
func hear(a *stage.Agent, n int, id, kind string) aWord {
	a.T.Helper()
	met := 0
	m := a.Wait(fmt.Sprintf("%d. %s of %s", n, kind, id), func(m *stage.Message) bool {
		if m.ID != id {
			return false
		}
		if w := readWord(a.T, m.Line); w.kind() == kind {
			met++
		}
		return met == n
	})
	return readWord(a.T, m.Line)
}

// gets waits until a scripted agent gets a task.
func gets(a *stage.Agent, id string) aWord { a.T.Helper(); return hear(a, 1, id, aRequest) }

// requesting returns a task request, with further members in more.
func requesting(id, kind string, more ...string) string {
	return "{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"type":%q,"payload":{}`, id, kind)}, more...), ",") + "}"
}

// of returns the routing to a target.
func of(target string) string { return fmt.Sprintf(`"routing":{"target":%q}`, target) }

// asks sends a task request.
func asks(a *stage.Agent, id, kind string, more ...string) {
	a.T.Helper()
	a.Say(requesting(id, kind, more...) + "\n")
}

// acts sends an act about a task that the scripted agent has delegated.
func acts(a *stage.Agent, id, act, payload string) {
	a.T.Helper()
	a.Say(fmt.Sprintf(`{"id":%q,"type":%q,"payload":%s}`+"\n", id, act, payload))
}

// says sends a response for a task of the scripted agent, with further members in more.
func says(a *stage.Agent, id, status string, more ...string) {
	a.T.Helper()
	a.Say("{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"status":%q`, id, status)}, more...), ",") + "}\n")
}

// failing returns the members of a failed response.
func failing(code string, recoverable bool) string {
	return fmt.Sprintf(`"error":{"code":%q,"message":"it is so","details":{"n":1.50},"recoverable":%v}`, code, recoverable)
}

// declined waits for the refusal of a line about a task.
func declined(a *stage.Agent, id string) *stage.Refusal {
	a.T.Helper()
	m := a.Answer(id)
	require.Equal(a.T, "response:error", m.Type, m.Line)
	require.NotNil(a.T, m.Error, m.Line)
	return m.Error
}

// plot returns a team whose scripted agents have all started.
func plot(t *testing.T, hcl string, names ...string) (*stage.Team, []*stage.Agent) {
	t.Helper()
	h := stage.NewQuickTeam(t, hcl, names...)
	return h, h.StartAll(names...)
}

// responseOf returns the latest response to a task request, from the API.
func responseOf(s *stage.Orchestrator, id string) aWord {
	s.T.Helper()
	status, body := s.Operate("get-task-response", fmt.Sprintf(`{"taskId":%q}`, id))
	require.Equal(s.T, 200, status, "%s", body)
	return readWord(s.T, string(body))
}

// A request and its responses are passed on unchanged, digit for digit, with unknown members. No
// other agent gets them.
//
// Rows: D-01, D-02, D-03, D-04, D-07, D-08, D-10, D-11, D-13, D-14, D-17, D-18, D-21, D-22, D-26, D-31, D-32, D-33, D-35, D-36,
// T-50.
func TestDelegationIsWordForWord(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]

	boss.Say(`{"x-first":[1.50,1e400,-0],"payload":{"n":12345678901234567890.10,"ID":"é\u00e9\u2028","":{"a":null,"A":[]}},` +
		`"type":"cook","observability":{"baggage":{"b":2,"a":1.0,"ключ":"<&>"},"spanId":"00f067aa0ba902b7","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","sampled":true},` +
		`"routing":{"hops":[{}],"target":"cook"},"id":"t-1","context":{"user":"ann","mood":"\"good\"","timestamp":"2026-02-04T14:30:00.123+02:00"}}` + "\n")
	w := gets(cook, "t-1")
	require.Equal(t, `{"x-first":[1.50,1e400,-0],"payload":{"n":12345678901234567890.10,"ID":"é\u00e9\u2028","":{"a":null,"A":[]}},`+
		`"type":"cook","observability":{"baggage":{"b":2,"a":1.0,"ключ":"<&>"},"spanId":"00f067aa0ba902b7","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","sampled":true},`+
		`"routing":{"hops":[{}],"target":"cook","source":"boss","delegationChain":["boss"]},"id":"t-1","context":{"user":"ann","mood":"\"good\"","timestamp":"2026-02-04T14:30:00.123+02:00"}}`, w.line)

	for n, line := range []string{
		`{"id":"t-1","status":"pending"}`,
		`{"status":"in_progress","id":"t-1","message":"the \u00f6ven is hot","percent":12.50}`,
		`{"metadata":{"duration_ms":2000,"startedAt":"2026-02-04T14:30:00Z","completedAt":"2026-02-04T14:30:02Z","agent":"cook","retryCount":0,"kelvin":4e2},` +
			`"artifacts":[{"type":"application/json","name":"data.json","content":"{\"key\": \u0022value\u0022}"},{"name":"photo","type":"image/png","ref":"s3://x"}],` +
			`"result":{"n":98765432109876543210,"e":1E+2,"text":"\u003c&>","l":[[],{}]},"id":"t-1","status":"completed","odd":false}`,
	} {
		cook.Say(line + "\n")
		require.Equal(t, line, hear(boss, 1, "t-1", []string{"pending", "in_progress", "completed"}[n]).line)
		require.Equal(t, []wire.TaskState{wire.TaskAssigned, wire.TaskRunning, wire.TaskDone}[n], h.TaskState("t-1"))
	}
	boss.Settle()
	cook.Settle()
	help.Settle()
	require.Equal(t, []string{"pending", "in_progress", "completed"}, kinds(boss, "t-1"))
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"))
	require.Empty(t, words(help, "t-1"), "it is told nobody else")
	require.Len(t, help.All(), 1)
	require.Len(t, boss.All(), 4, "nothing that was granted is answered besides")

	boss.Say(`{"id":"t-2","type":"cook","payload":{}}` + "\n")
	w = gets(cook, "t-2")
	require.Equal(t, fmt.Sprintf(`{"id":"t-2","type":"cook","payload":{},"routing":{"source":"boss","delegationChain":["boss"],"target":"cook"},"observability":{"traceId":%q,"spanId":%q}}`,
		trace.IDOf([]byte("t-2")), trace.SpanIDOf([]byte("t-2"))), w.line)
	says(cook, "t-2", "completed", `"result":null`)
	require.Equal(t, `{"id":"t-2","status":"completed","result":null}`, hear(boss, 1, "t-2", "completed").line)
	h.Stop()
}

// A task without a target goes to the capable agent that can begin first, whether an agent or a
// person submits it. A task with a target goes to that agent even if it is busy.
//
// Rows: D-02, D-09, D-11, D-16, D-20, D-36.
func TestDelegationFindsSomebody(t *testing.T) {
	t.Parallel()
	h, all := plot(t, stage.Unlimited+doer("boss", 9)+doer("ann", 1, "cook")+doer("bea", 1, "cook", "wash")+doer("any", 1), "boss", "ann", "bea", "any")
	boss, ann, bea, any := all[0], all[1], all[2], all[3]
	asks(boss, "t-1", "cook")
	gets(ann, "t-1")
	asks(boss, "t-2", "cook", of("ann")) // ann is busy now
	boss.Settle()
	require.Equal(t, "ann", h.ShownTask("t-2").AssignedTo)
	h.Write("request.json", `{"type":"cook","payload":{"by":"a person"}}`)
	id := strings.TrimSpace(h.Ask("task", "submit", "request.json", "-q"))
	w := gets(bea, id)
	require.JSONEq(t, `{"by":"a person"}`, string(w.Payload))
	require.Equal(t, delegation.Routing{Source: "orchestrator", Target: "bea", Chain: []string{"orchestrator"}}, w.Routing)
	asks(boss, "t-3", "whatever", of("any")) // an agent without declared capabilities
	gets(any, "t-3")
	require.Equal(t, wire.TaskAssigned, h.TaskState("t-2"))
	require.Equal(t, []string{}, append([]string{}, kinds(ann, "t-2")...), "it waits")

	says(ann, "t-1", "completed")
	gets(ann, "t-2")
	says(bea, id, "completed", `"result":"soup"`)
	stage.WaitFor(t, "an end of all", func() bool { return h.TaskState(id) == wire.TaskDone })
	require.Equal(t, `"soup"`, string(responseOf(h.Orchestrator, id).Result))
	require.Empty(t, words(boss, id))
	h.Stop()
}

// A task is forwarded, and its agents delegate parts. The chain lists every agent that had the
// task. Trace, baggage, conversation and user are passed on. Each agent answers its source, and
// no agent gets a task back.
//
// Rows: D-05, D-06, D-07, D-10, D-12, D-13, D-14, D-15, D-17, D-26, T-50.
func TestDelegationChain(t *testing.T) {
	t.Parallel()
	h, all := plot(t, stage.Unlimited+doer("ann", 1)+doer("bea", 1)+doer("cat", 1), "ann", "bea", "cat")
	ann, bea, cat := all[0], all[1], all[2]
	const baggage = `{"tenant":"x","n":12345678901234567890,"deep":{"b":1,"a":[1.50]}}`
	trace := `"observability":{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","baggage":` + baggage + `}`
	h.Operated(nil, "submit-task-request", requesting("t-1", "dine", of("ann"), trace, `"context":{"conversationId":"c-1","user":"eve","priority":"high"}`))
	first := gets(ann, "t-1")
	require.Equal(t, []string{"orchestrator"}, first.Routing.Chain)
	says(ann, "t-1", "in_progress")

	asks(ann, "t-2", "cook", of("bea")) // its only task, so this is a part of it
	second := gets(bea, "t-2")
	require.Equal(t, delegation.Routing{Source: "ann", Target: "bea", Chain: []string{"orchestrator", "ann"}}, second.Routing)
	require.Equal(t, delegation.Context{ConversationID: "c-1", ParentTaskID: "t-1", User: "eve"}, second.Context)
	says(bea, "t-2", "in_progress")
	asks(bea, "t-3", "wash", of("cat"), `"context":{"parentTaskId":"t-2","user":"pat"}`, `"observability":{"spanId":"b7ad6b7169203331"}`)
	third := gets(cat, "t-3")
	require.Equal(t, delegation.Routing{Source: "bea", Target: "cat", Chain: []string{"orchestrator", "ann", "bea"}}, third.Routing)
	require.Equal(t, delegation.Context{ConversationID: "c-1", ParentTaskID: "t-2", User: "pat"}, third.Context)
	require.Equal(t, "b7ad6b7169203331", third.Observability.SpanID)
	for _, w := range []aWord{first, second, third} {
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", w.Observability.TraceID)
		require.Equal(t, baggage, string(w.Observability.Baggage))
	}

	says(cat, "t-3", "in_progress")
	for _, back := range []string{"ann", "bea", "cat"} {
		asks(cat, "t-"+back, "dry", of(back))
		w := hear(cat, 1, "t-"+back, "failed")
		require.Equal(t, delegation.FaultGraphCycle, w.Error.Code)
		require.Contains(t, string(w.Error.Details), `["orchestrator","ann","bea","cat"]`)
		require.False(t, w.Error.Recoverable)
		require.Equal(t, cli.ExitNotFound, fails(h.Orchestrator, "task", "show", "t-"+back))
	}
	asks(cat, "t-4", "dry", `"routing":{"target":"ann","delegationChain":[]}`) // a request cannot clear the chain
	require.Equal(t, delegation.FaultGraphCycle, hear(cat, 1, "t-4", "failed").Error.Code)
	require.Len(t, words(ann, "t-4"), 0)

	says(cat, "t-3", "completed", `"result":3`)
	require.Equal(t, "3", string(hear(bea, 1, "t-3", "completed").Result))
	says(bea, "t-2", "failed", failing("X", false))
	require.Equal(t, "X", hear(ann, 1, "t-2", "failed").Error.Code)
	says(ann, "t-1", "completed", `"result":{"all":"the same"}`)
	h.WaitForState("t-1", wire.TaskDone)
	require.Empty(t, words(ann, "t-3"), "who has not asked hears nothing")
	require.Empty(t, words(cat, "t-2"))

	var reply wire.TaskList
	h.Operated(&reply, "query-tasks", `{"conversationId":"c-1"}`)
	require.Len(t, reply.Tasks, 3)
	require.Equal(t, "t-2", h.ShownTask("t-3").ParentTaskID)
	require.Equal(t, "t-1", h.ShownTask("t-2").ParentTaskID)
	h.Stop()
}

// fails runs a command that must fail and returns its exit code.
func fails(s *stage.Orchestrator, args ...string) int {
	s.T.Helper()
	stdout, stderr, code := s.Call(args...)
	require.NotEqual(s.T, cli.ExitOK, code, "%v: %s%s", args, stdout, stderr)
	return code
}
