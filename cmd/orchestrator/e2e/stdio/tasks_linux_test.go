package stdio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// anAgent is an agent as other agents see it.
type anAgent struct {
	ID, Role, Status string
	Capabilities     []string
	CurrentTask      *string
}

func agents(a *stage.Agent, filter string) (ids []string, found []anAgent) {
	a.T.Helper()
	var reply struct{ Agents []anAgent }
	a.Granted(&reply, "query-agents", filter)
	for _, one := range reply.Agents {
		ids = append(ids, one.ID)
	}
	return ids, reply.Agents
}

// query-agents returns only the agents that match, with all five keys. The current task is among
// them.
//
// Rows: B-33, B-34, B-35, B-36, B-37, B-56, T-08.
func TestStdioQueryAgents(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("boss", "planner", "plan")+stage.ScriptedWith("go", "worker", "go")+stage.ScriptedWith("ts", "worker", "ts"), "boss", "go", "ts")
	all := h.StartAll("boss", "go", "ts")
	boss, worker := all[0], all[1]
	for filter, want := range map[string][]string{
		`{}`: {"boss", "go", "ts"}, `{"role":"worker"}`: {"go", "ts"}, `{"role":"reviewer"}`: nil, `{"status":"busy"}`: nil,
		`{"status":"idle"}`: {"boss", "go", "ts"}, `{"capabilities":["go"]}`: {"go"}, `{"capabilities":["go","ts"]}`: nil,
		`{"role":"planner","status":"idle","capabilities":["plan"]}`: {"boss"}, `{"more":"keys","are":"fine"}`: {"boss", "go", "ts"},
	} {
		ids, _ := agents(boss, filter)
		require.Equal(t, want, ids, filter)
	}
	var raw struct{ Agents []map[string]json.RawMessage }
	boss.Granted(&raw, "query-agents", `{"status":"idle"}`)
	for _, one := range raw.Agents {
		require.Len(t, one, 5)
		require.Equal(t, "null", string(one["currentTask"]))
	}
	task := boss.Submit(`{"type":"t","name":"n","requiredCapabilities":["go"]}`)
	worker.Assigned(task.ID)
	stage.WaitFor(t, "started task", func() bool { return boss.Task(task.ID).Status == "running" })
	ids, busy := agents(boss, `{"status":"busy"}`)
	require.Equal(t, []string{"go"}, ids)
	require.Equal(t, task.ID, *busy[0].CurrentTask)
	require.Equal(t, []string{"go"}, busy[0].Capabilities)
	ids, _ = agents(worker, `{"status":"idle"}`)
	require.Equal(t, []string{"boss", "ts"}, ids)
	worker.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	ids, _ = agents(boss, `{"status":"idle"}`)
	require.Equal(t, []string{"boss", "go", "ts"}, ids)
	h.Stop()
}

// An agent can list and read only the tasks that it submitted or was assigned.
//
// Rows: B-38, B-39, B-40, B-41, B-42, B-54, B-55, B-77, T-22.
func TestStdioOwnTasks(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("one", "worker", "a")+stage.ScriptedWith("two", "worker", "b")+stage.ScriptedWith("three", "worker", "c"), "one", "two", "three")
	all := h.StartAll("one", "two", "three")
	one, two, three := all[0], all[1], all[2]
	first := one.Submit(`{"type":"t","name":"first"}`)
	second := one.Submit(fmt.Sprintf(`{"type":"t","name":"second","requiredRole":"reviewer","dependencies":[%q]}`, first.ID))
	require.Equal(t, []string{first.ID, second.ID}, one.Tasks(`{}`))
	require.Equal(t, []string{first.ID}, one.Tasks(`{"limit":1}`))
	require.Equal(t, []string{second.ID}, one.Tasks(`{"requiredRole":"reviewer"}`))
	require.Equal(t, []string{first.ID, second.ID}, one.Tasks(`{"status":"queued"}`))
	require.Empty(t, one.Tasks(`{"status":"completed"}`))
	require.Equal(t, []string{first.ID}, second.Dependencies)
	require.Equal(t, []string{}, first.Dependencies)
	require.Empty(t, two.Tasks(`{"status":"queued"}`))
	require.Contains(t, two.Refused("UNAUTHORIZED", "get-task", fmt.Sprintf(`{"taskId":%q}`, first.ID)).Details["taskId"], first.ID)
	two.Refused("UNAUTHORIZED", "cancel-task", fmt.Sprintf(`{"taskId":%q}`, first.ID))
	two.Refused("NOT_FOUND", "get-task", `{"taskId":"task-nope"}`)
	two.Refused("INVALID_REQUEST", "get-task", `{}`)

	mine := two.Submit(`{"type":"t","name":"of two"}`)
	given := one.Submit(`{"type":"t","name":"given","requiredCapabilities":["b"]}`)
	two.Assigned(given.ID)
	require.Equal(t, []string{mine.ID, given.ID}, two.Tasks(`{}`))
	require.Equal(t, []string{mine.ID}, two.Tasks(`{"limit":1}`), "the limit counts what may be seen")
	require.Equal(t, []string{first.ID, second.ID, given.ID}, one.Tasks(`{}`))
	require.Equal(t, "given", two.Task(given.ID).Name)
	require.Empty(t, three.Tasks(`{}`))
	three.Refused("UNAUTHORIZED", "get-task", fmt.Sprintf(`{"taskId":%q}`, given.ID))
	h.Stop()
}

// A task is returned as it was submitted, with its payload unchanged.
//
// Rows: B-43, B-44, B-45, B-46, B-47, B-48, B-49, B-50, B-51, B-52, B-53, T-48.
func TestStdioSubmitAndGet(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("a", "worker", "a")+stage.ScriptedWith("b", "reviewer", "b"), "a", "b")
	a := h.StartAll("a", "b")[0]
	before := a.Submit(`{"type":"t","name":"before"}`)
	const opaque = `{"n": 12345678901234567890, "html": "<a&b>", "1e400":1E400, "payload":{"payload":{}}, "\u00e9":"\ud83d\ude00\/", "z":1, "a":[ ]}`
	const result = `{"success":true,"n":12345678901234567890,"html":"<a&b>","nothing":null, "x":1.0}`
	task := a.Submit(fmt.Sprintf(`{"type":"implementation","name":"Mend the cart total","description":"two\nlines","payload":%s,"requiredRole":"reviewer","requiredCapabilities":["b"],"dependencies":[%q],"priority":2,"more":"is fine"}`, opaque, before.ID))
	require.Equal(t, "queued", task.Status)
	require.NotEmpty(t, task.ID)
	var reply struct{ Task map[string]json.RawMessage }
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	for key, want := range map[string]string{
		"id": `"` + task.ID + `"`, "type": `"implementation"`, "name": `"Mend the cart total"`, "description": `"two\nlines"`, "payload": opaque,
		"requiredRole": `"reviewer"`, "requiredCapabilities": `["b"]`, "dependencies": `["` + before.ID + `"]`, "priority": "2", "result": "null", "status": `"queued"`,
	} {
		require.Equal(t, want, string(reply.Task[key]), key)
	}
	a.Granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, before.ID))
	a.Granted(&reply, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":%s}`, before.ID, result))
	require.Equal(t, result, string(reply.Task["result"]))
	require.Equal(t, `"completed"`, string(reply.Task["status"]))
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, before.ID))
	require.Equal(t, result, string(reply.Task["result"]))
	// The event has the same JSON except for white space.
	created := string(h.WaitForEvents(2, events.TaskCreated, "a")[1].Payload)
	require.Contains(t, created, `"payload":`+strings.NewReplacer(": ", ":", ", ", ",", "[ ]", "[]").Replace(opaque))
	h.Stop()
}

// A task waits for its dependencies and then for an agent with its role and capabilities. Urgent
// tasks come first. The agent is notified and reports the outcome.
//
// Rows: B-47, B-48, B-49, B-50, B-53, B-56, B-57, B-70.
func TestStdioDispatch(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("boss", "planner", "plan")+stage.ScriptedWith("go", "worker", "go"), "boss", "go")
	all := h.StartAll("boss", "go")
	boss, worker := all[0], all[1]
	first := boss.Submit(`{"type":"t","name":"first","requiredRole":"worker","requiredCapabilities":["go"]}`)
	worker.Assigned(first.ID)
	boss.Submit(`{"type":"t","name":"nobody can","requiredRole":"worker","requiredCapabilities":["go","ts"]}`)
	after := boss.Submit(fmt.Sprintf(`{"type":"t","name":"after","requiredRole":"worker","dependencies":[%q]}`, first.ID))
	late := boss.Submit(`{"type":"t","name":"late","requiredRole":"worker","priority":5}`)
	soon := boss.Submit(`{"type":"t","name":"soon","requiredRole":"worker","priority":1}`)
	boss.Refused("NOT_FOUND", "submit-task", `{"type":"t","name":"n","dependencies":["task-nope"]}`)
	worker.Refused("INVALID_REQUEST", "complete-task", fmt.Sprintf(`{"taskId":%q,"result":{"$schema":"orchestratia/task-result/v1"}}`, first.ID))
	boss.Refused("UNAUTHORIZED", "complete-task", fmt.Sprintf(`{"taskId":%q}`, first.ID))
	worker.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":"done"}`, first.ID))
	require.Equal(t, `{"summary":"done","completed_by":"agent:go"}`, string(boss.Task(first.ID).Result))
	require.Equal(t, "completed", boss.Task(first.ID).Status)
	for _, next := range []stage.Task{soon, after, late} {
		notice := worker.Assigned(next.ID)
		require.Equal(t, []string{"id", "payload", "timestamp", "type"}, notice.Keys)
		require.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"message":"Task assigned. Use TaskGet to view details."}`, next.ID), string(notice.Payload))
		worker.Granted(nil, "fail-task", fmt.Sprintf(`{"taskId":%q,"error":"too hard"}`, next.ID))
		require.Equal(t, "failed", boss.Task(next.ID).Status)
		require.Equal(t, "too hard", boss.Task(next.ID).Error)
	}
	worker.Refused("INVALID_REQUEST", "complete-task", fmt.Sprintf(`{"taskId":%q}`, late.ID))
	require.Len(t, worker.Notices("task-assigned"), 4)
	require.Empty(t, boss.Notices("task-assigned"))
	h.Stop()
}
