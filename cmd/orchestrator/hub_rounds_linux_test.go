package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// planner is the block of an agent with the role planner.
const planner = `
agent "boss" {
  command = ["puppet", "boss"]
  role    = "planner"
}
`

// seen returns a task as its agent sees it.
func (a *actor) seen(id string) (found wire.Task) {
	a.t.Helper()
	var reply struct{ Task wire.Task }
	a.granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// An agent on stdio submits plans, and people review them over HTTP. The task does not begin
// before a plan is approved.
//
// Rows.
func TestHubPlanRounds(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.open("coder", "boss")[0]
	ann, boss := h.person(), h.program("boss")
	task := ann.create(`{"title":"x","spec":"s"}`)
	people, agents := "POST /tasks/"+task, "POST /server/tasks/"+task
	of := fmt.Sprintf(`{"taskId":%q`, task)

	var given struct {
		Status string
		Server string `json:"assigned_server_name"`
	}
	boss.misses(http.StatusNotFound, "not_found", agents+"/assign", `{"session_name":"nobody"}`)
	boss.gets(&given, agents+"/assign", `{"session_name":"coder","require_plan":true}`)
	require.Equal(t, "planning", given.Status)
	require.Equal(t, "coder", given.Server)
	coder.told("task-assigned", task, "Submit a plan")
	for _, wrong := range []string{"/approve-plan", "/revise-plan", "/auto-assign"} {
		ann.misses(http.StatusConflict, "conflict", people+wrong, `{"feedback":"f"}`)
	}
	require.Equal(t, "wrong_state", coder.refused("INVALID_REQUEST", "start-task", of+`}`).Details["reason"])
	require.Equal(t, "wrong_state", coder.refused("INVALID_REQUEST", "complete-task", of+`}`).Details["reason"])

	coder.granted(nil, "submit-plan", of+`,"plan":{"steps":[12345678901234567890,"<&>"]}}`)
	found := ann.task(task)
	require.Equal(t, "plan_review", found.Status)
	require.Equal(t, `{"steps":[12345678901234567890,"<&>"]}`, string(found.Plan))
	ann.gets(nil, people+"/revise-plan", `{"feedback":"three steps, please"}`)
	coder.told("task-updated", task, "three steps, please")
	require.Equal(t, "three steps, please", *ann.task(task).Feedback)
	require.Equal(t, "three steps, please", coder.seen(task).Details.PlanFeedback)
	ann.misses(http.StatusConflict, "conflict", people+"/revise-plan", `{"feedback":"twice"}`)

	h.program("coder").gets(nil, agents+"/plan", `{"plan":"three steps"}`)
	coder.refused("UNAUTHORIZED", "approve-plan", of+`}`)
	ann.gets(nil, people+"/approve-plan", "")
	coder.told("task-updated", task, "Plan approved")
	require.Equal(t, wire.TaskRunning, coder.seen(task).State)
	ann.misses(http.StatusConflict, "conflict", people+"/approve-plan", "")
	coder.granted(nil, "complete-task", of+`,"result":"as planned"}`)
	require.Equal(t, `"three steps"`, string(ann.task(task).Plan))
	require.Equal(t, []string{
		events.TaskCreated, events.TaskAssigned, events.TaskPlanned, events.TaskPlanReturned,
		events.TaskPlanned, events.TaskStarted, events.TaskDone,
	}, kinds(h.story(), task))
	h.stop()
}

// An agent asks for help and continues with a person's answer, given in any way. If it continues
// by itself, the question is closed.
//
// Rows.
func TestHubHelpRounds(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.open("coder", "boss")[0]
	ann, boss, program := h.person(), h.program("boss"), h.program("coder")
	task := ann.create(`{"title":"x","spec":"s"}`)
	of := fmt.Sprintf(`{"taskId":%q`, task)
	boss.gets(nil, "POST /server/tasks/"+task+"/assign", `{"session_name":"coder"}`)
	coder.assigned(task)
	coder.refused("INVALID_REQUEST", "request-help", of+`,"question":"so soon?"}`)
	coder.granted(nil, "start-task", of+`}`)
	coder.granted(nil, "request-help", of+`,"question":"Which <one>?","context":{"n":12345678901234567890}}`)

	found := ann.task(task)
	require.Equal(t, "needs_human", found.Status)
	require.Equal(t, "Which <one>?", found.Help.Question)
	require.Equal(t, `{"n":12345678901234567890}`, string(found.Help.Context))
	questions := h.questions()
	require.Len(t, questions, 1)
	require.Equal(t, task, questions[0].Task)
	h.ask("inbox", "answer", questions[0].ID, "the left one")
	coder.told("task-updated", task, "")
	require.Equal(t, "the left one", coder.seen(task).Details.Help.Answer)
	require.Equal(t, "running", ann.task(task).Status)

	var helped hubTask // asked and answered over HTTP
	program.gets(&helped, "POST /servers/tasks/"+task+"/help", `{"question":"And now?"}`)
	ann.gets(nil, "POST /operations/answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"on"}`, helped.InterventionID))
	require.Equal(t, "on", ann.task(task).Help.Answer)
	ann.misses(http.StatusNotFound, "not_found", "POST /operations/answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"twice"}`, helped.InterventionID))

	program.gets(nil, "POST /server/tasks/"+task+"/help", `{"question":"Once more?"}`)
	require.Len(t, h.questions(), 1)
	program.misses(http.StatusConflict, "conflict", "POST /servers/tasks/"+task+"/complete", `{"result":"r"}`)
	program.gets(nil, "POST /server/tasks/"+task+"/start", "") // it continues without an answer
	require.Empty(t, h.questions())
	require.Equal(t, "running", ann.task(task).Status)

	coder.granted(nil, "request-help", of+`,"question":"Last?"}`)
	coder.granted(nil, "complete-task", of+`,"result":"anyway"}`) // it completes without an answer
	require.Empty(t, h.questions())
	require.Equal(t, "done", ann.task(task).Status)
	h.stop()
}

// A task has one list of notes from all authors. The agent is notified at once of urgent notes,
// changes and the cancellation.
//
// Rows.
func TestHubNotesAndChanges(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("coder", "go", 2)+planner, "coder", "boss")
	coder := h.open("coder", "boss")[0]
	ann, boss, program := h.person(), h.program("boss"), h.program("coder")
	task := ann.create(wanting("x", "go", promise))
	boss.gets(nil, "POST /server/tasks/"+task+"/assign", `{"session_id":"`+wire.ServerID("coder")+`"}`)
	coder.assigned(task)
	var first wire.Note
	r := ann.gets(&first, "POST /tasks/"+task+"/notes", `{"content":"one <&>"}`)
	require.Equal(t, http.StatusCreated, r.status)
	program.gets(nil, "POST /server/tasks/"+task+"/notes", `{"content":"two"}`)
	coder.granted(nil, "add-note", fmt.Sprintf(`{"taskId":%q,"content":"three"}`, task))
	boss.gets(nil, "POST /server/tasks/"+task+"/notes", `{"content":"four","urgent":true}`)
	coder.told("task-updated", task, "four")
	var notes []wire.Note
	ann.gets(&notes, "GET /tasks/"+task+"/notes", "")
	var said []string
	for _, n := range notes {
		said = append(said, n.Author+": "+n.Content)
	}
	require.Equal(t, []string{"operator:ann: one <&>", "agent:coder: two", "agent:coder: three", "agent:boss: four"}, said)
	require.Equal(t, first, notes[0])
	require.True(t, notes[3].Urgent)

	const other = `{"languages":["ts"],"w":1.50}`
	var changed hubTask
	ann.gets(&changed, "PUT /tasks/"+task, `{"title":"y","priority":"low","requirements":`+other+`,"acceptance_criteria":["green"]}`)
	require.Equal(t, "y", changed.Title)
	require.Equal(t, "s", changed.Spec)
	require.Equal(t, other, string(changed.Requirements))
	require.JSONEq(t, `{`+promise+`}`, `{"structured_spec":`+string(changed.Structured)+`}`)
	boss.gets(&changed, "PUT /server/tasks/"+task, `{"spec":"t","structured_spec":null}`)
	require.Equal(t, []string{"y", "t", "low", "null"}, []string{changed.Title, changed.Spec, changed.Priority, string(changed.Structured)})
	require.Equal(t, []string{"green"}, changed.Criteria)
	before := ann.ask("GET /api/v1/tasks/"+task, "").text
	ann.misses(http.StatusUnprocessableEntity, "invalid", "PUT /tasks/"+task, `{"title":"z","structured_spec":{"$schema":"orchestratia/task-spec/v1"}}`)
	require.Equal(t, before, ann.ask("GET /api/v1/tasks/"+task, "").text)

	boss.gets(nil, "DELETE /server/tasks/"+task, `{"reason":"enough"}`)
	var over struct{ TaskID, Reason string }
	notice := coder.told("task-cancelled", task, "")
	require.NoError(t, json.Unmarshal(notice.Payload, &over))
	require.Equal(t, "enough", over.Reason)
	require.Equal(t, "cancelled", ann.task(task).Status)
	boss.misses(http.StatusConflict, "conflict", "PUT /server/tasks/"+task, `{"title":"late"}`)
	ann.gets(nil, "GET /tasks/"+task+"/notes", "")
	h.stop()
}
