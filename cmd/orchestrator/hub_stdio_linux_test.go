package main

import (
	"encoding/json"
	"net/http"
	"orchestrator/wire"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireDescribed checks a line against a schema.
func (h *hub) requireDescribed(schema, line string) {
	h.t.Helper()
	require.NoError(h.t, h.unlikeSchema(line, "components", "schemas", schema), line)
}

// Agents on stdio can send the same operations as the hub routes, in envelopes. The decisions
// are the same.
//
// Rows,
// B-21, B-28, T-48.
func TestHubOverStdio(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("dev", "go", 3)+planner, "dev", "boss")
	actors := h.open("dev", "boss")
	cast := map[string]*actor{"dev": actors[0], "boss": actors[1]}
	names := make(map[string]string) // ids of the tasks by name, written as $name
	asked := make(map[string]bool)
	const yes, no, invalid = "", "UNAUTHORIZED", "INVALID_REQUEST"
	for _, row := range [][4]string{ // agent, request, code of the refusal, part of the answer
		{"boss", `submit-task {"type":"t","name":"up",` + promise + `}`, yes, `"state":"pending"`},
		{"boss", `submit-task {"type":"t","name":"x","requirements":{"languages":["go"],"w":1.50},"dependencies":[{"depends_on_task_id":"$up","dependency_type":"input","contract_key":"api"}]}`, yes, `"requirements":{"languages":["go"],"w":1.50}`},
		{"boss", `submit-task {"type":"t","name":"y","requirements":{"languages":["go"]}}`, yes, `"state":"pending"`},
		{"boss", `submit-task {"type":"t","name":"z","dependencies":[{"dependency_type":"blocks"}]}`, invalid, `/payload/dependencies/0/depends_on_task_id`},
		{"boss", `match-agents {"taskId":"$x"}`, yes, `"server_name":"dev","score":125,"status":"online","reasons":["language match: go (+50)"`},
		{"boss", `auto-assign {"taskId":"$up"}`, invalid, `no_requirements`},
		{"boss", `auto-assign {"taskId":"$y"}`, yes, `"server_name":"dev","match_score":125`},
		{"dev", `start-task {"taskId":"$x"}`, no, `$x`},
		{"boss", `add-dependency {"taskId":"$x","dependsOnTaskId":"$up","dependencyType":"related"}`, yes, `"dependency_type":"related","contract_key":null,"resolved":true`},
		{"boss", `add-dependency {"taskId":"$up","dependsOnTaskId":"$x"}`, invalid, `"reason":"cycle"`},
		{"boss", `remove-dependency {"taskId":"$x","dependencyId":"d2"}`, yes, `"dependency_type":"related"`},
		{"boss", `remove-dependency {"taskId":"$x","dependencyId":"d2"}`, "NOT_FOUND", `d2`},
		{"boss", `add-note {"taskId":"$y","content":"<&>","urgent":true}`, yes, `"author":"agent:boss","content":"<&>","urgent":true`},
		{"dev", `list-notes {"taskId":"$y"}`, yes, `"content":"<&>"`},
		{"boss", `update-task {"taskId":"$x","description":"d","priority":"high"}`, yes, `"priority":"high"`},
		{"dev", `update-task {"taskId":"$x","description":"e"}`, no, `$x`},
		{"boss", `assign-task {"taskId":"$up","agent":"dev","requirePlan":true}`, yes, `"state":"planning"`},
		{"boss", `assign-task {"taskId":"$x","agent":"nobody"}`, "NOT_FOUND", `nobody`},
		{"dev", `poll-tasks {}`, yes, `"state":"planning"`},
		{"dev", `check-tasks {}`, yes, `"state":"planning"`},
		{"dev", `check-tasks {"sessionId":"boss"}`, no, `the session is not yours`},
		{"dev", `submit-plan {"taskId":"$up","plan":"p"}`, yes, `"state":"plan_review","requiredRole"`},
		{"dev", `approve-plan {"taskId":"$up"}`, no, `who wrote a plan does not judge it`},
		{"boss", `revise-plan {"taskId":"$up","feedback":"f"}`, yes, `"planFeedback":"f"`},
		{"dev", `submit-plan {"taskId":"$up","plan":{"n":12345678901234567890}}`, yes, `"plan":{"n":12345678901234567890}`},
		{"boss", `approve-plan {"taskId":"$up"}`, yes, `"state":"running"`},
		{"dev", `request-help {"taskId":"$up","question":"?"}`, yes, `"state":"needs_human"`},
		{"dev", `start-task {"taskId":"$up"}`, yes, `"state":"running"`},
		{"dev", `complete-task {"taskId":"$up","result":{"$schema":"orchestratia/task-result/v1"}}`, invalid, `/payload/result/summary`},
		{"dev", `complete-task {"taskId":"$up",` + delivering[1:], yes, `"state":"done"`},
		{"dev", `poll-tasks {}`, yes, `"resolved_inputs":{"api":` + delivered + `}`},
		{"dev", `start-task {"taskId":"$x"}`, yes, `"state":"running"`},
		{"dev", `current-task {}`, yes, `"name":"x"`},
		{"dev", `report-progress {"taskId":"$x","message":"half","progress":0.5}`, yes, `"progress":0.5,"message":"half"`},
		{"boss", `return-task {"taskId":"$x","reason":"r"}`, no, `only the agent that has task`},
		{"dev", `ask-permission {"tool":"Bash","title":"go vet","input":{},"choices":[{"id":"a","kind":"deny"}],"timeout":1}`, "TIMEOUT", ``},
		{"dev", `withdraw-question {"questionId":"q1"}`, yes, `"withdrawn":true`},
		{"boss", `fail-task {"taskId":"$x","error":"e"}`, no, `only the agent that has task`},
		{"dev", `fail-task {"taskId":"$x","error":"too hard"}`, yes, `"error":"too hard"`},
		{"boss", `cancel-task {"taskId":"$y","reason":"enough"}`, yes, `"reason":"enough"`},
		{"boss", `cancel-task {"taskId":"$y"}`, invalid, `wrong_state`},
		{"dev", `update-capabilities {"capabilities":{"languages":["sql"]},"system":{"load":0.10}}`, yes, `"capabilities":{"languages":["sql"]},"system":{"load":0.10}`},
		{"boss", `query-servers {}`, yes, `"name":"dev","status":"online","role":"worker","remote":false,"repos":{},"capabilities":{"languages":["sql"]}`},
		{"boss", `query-agents {"role":"worker"}`, yes, `"capabilities":["sql"]`},
		{"boss", `query-tasks {"status":"done"}`, yes, `"name":"up"`},
		{"boss", `get-task {"taskId":"$x"}`, yes, `"resolved_inputs":{"api":` + delivered + `}`},
		{"dev", `ask-user {"question":"?","timeout":1}`, "TIMEOUT", ``},
		{"dev", `register-agent {"name":"far","registration_token":"orcreg_x"}`, no, `already registered as an agent`},
		{"dev", `list-questions {}`, no, `for operators`},
		{"dev", `answer-question {"questionId":"q1","answer":"a"}`, no, `for operators`},
		{"dev", `issue-key {"agent":"dev"}`, no, `for operators`},
		{"dev", `rotate-key {"agent":"dev"}`, no, `for operators`},
		{"dev", `revoke-key {"id":"k1"}`, no, `for operators`},
		{"dev", `list-keys {}`, no, `for operators`},
		{"dev", `issue-registration {}`, no, `for operators`},
		{"dev", `issue-token {"sub":"dev"}`, no, `for operators`},
		{"dev", `issue-token {"actor":"HO:far"}`, no, `tokens are for GO to issue`},
		{"dev", `revoke-token {"id":"t1"}`, no, `for operators`},
		{"dev", `list-tokens {}`, no, `for operators`},
		{"boss", `send-message {"to_actor":"HO:far","topic":"message.direct","payload":{"n":1e400}}`, yes, `"payload":{"n":1e400},"reply_to":null`},
		{"boss", `send-message {"to_actor":"everybody","topic":"message.direct","payload":{}}`, invalid, `/payload/to_actor`},
		{"boss", `send-message {"from_actor":"GO","to_actor":"HO:far","topic":"message.direct","payload":{}}`, no, `cannot be GO`},
		{"boss", `poll-messages {"cursor":0,"limit":10}`, yes, `"messages":[],"cursor":0,"more":false`},
		{"boss", `ack-messages {"seq":1}`, yes, `"cursor":1`},
		{"boss", `heartbeat {}`, yes, `"last_seen":"`},
		{"boss", `list-actors {}`, yes, `"actor":"GO"`},
		{"boss", `list-topics {}`, yes, `"topic":"task.assigned","standard":true`},
		{"boss", `send-session-message {"message":{"message_id":"msg-1","timestamp":"2026-11-21T10:00:00Z","sequence_number":1,` +
			`"from_agent":{"agent_id":"boss","agent_type":"architect"},"to_agent":{"agent_id":"dev","agent_type":"developer"},` +
			`"message_type":"status_query","payload":{}}}`, no, `not a member of any session`},
		{"boss", `get-session {}`, invalid, `session_id is missing`},
		{"boss", `list-sessions {}`, yes, `"sessions":[]`},
		{"boss", `list-reviews {}`, yes, `"reviews":[]`},
		{"boss", `create-session {"session_id":"s","members":[]}`, no, `for operators`},
		{"boss", `submit-task-request {"id":"dig","type":"sql","payload":{"n":1e400},"routing":{"target":"dev"}}`, yes, `"payload":{"id":"dig","status":"pending"`},
		{"boss", `submit-task-request {"id":"dug","type":"go","payload":{},"routing":{"source":"dev"}}`, no, `"pointer":"/payload/routing/source"`},
		{"boss", `get-task-response {"taskId":"dig"}`, yes, `"payload":{"id":"dig","status":"pending"`},
		{"boss", `update-task-request {"taskId":"$x","input":null}`, invalid, `not_delegated`},
	} {
		known := strings.NewReplacer("$up", names["up"], "$x", names["x"], "$y", names["y"])
		operation, payload, _ := strings.Cut(known.Replace(row[1]), " ")
		asked[operation] = true
		who := cast[row[0]]
		m := who.answer(who.request(operation, payload))
		require.Contains(t, m.line, known.Replace(row[3]), row[1])
		if row[2] != yes {
			require.NotNil(t, m.Error, "%s: %s", row[1], m.line)
			require.Equal(t, row[2], m.Error.Code, "%s: %s", row[1], m.line)
			h.requireDescribed("response.error", m.line)
			continue
		}
		require.Nil(t, m.Error, "%s: %s", row[1], m.line)
		h.requireDescribed("request."+operation, asking("1", operation, payload))
		require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.keys)
		h.requireDescribed("response.success", m.line)
		var reply struct{ Task aTask }
		if operation == "submit-task" {
			require.NoError(t, json.Unmarshal(m.Payload, &reply))
			names[reply.Task.Name] = reply.Task.ID
		}
	}
	for _, o := range wire.Operations {
		require.True(t, asked[o.Name], "%s is not asked: give it a row above", o.Name)
	}
	cast["dev"].told("task-cancelled", names["y"], "enough")

	// the API returns the same bytes
	of := `{"taskId":"` + names["x"] + `"}`
	m := cast["boss"].granted(nil, "get-task", of)
	r := h.program("boss").ask("POST /api/v1/operations/get-task", of)
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, string(m.Payload), r.text)
	require.Equal(t, "failed", h.person().task(names["x"]).Status)
	h.stop()
}
