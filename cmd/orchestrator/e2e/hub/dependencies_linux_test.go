package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// finish creates a task, starts it and completes it with a result.
func finish(v *stage.Caller, title, result string, more ...string) string {
	v.Hub.T.Helper()
	id := create(v, "{"+strings.Join(append([]string{fmt.Sprintf(`"title":%q,"spec":"s"`, title)}, more...), ",")+"}")
	v.Gets(nil, "POST /servers/tasks/"+id+"/start", "")
	v.Gets(nil, "POST /servers/tasks/"+id+"/complete", `{"result":`+result+`}`)
	return id
}

// depend adds a dependency to a task.
func depend(v *stage.Caller, task, on, more string) (link hubLink) {
	v.Hub.T.Helper()
	r := v.Gets(&link, "POST /server/tasks/"+task+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q%s}`, on, more))
	require.Equal(v.Hub.T, http.StatusCreated, r.Status)
	return link
}

const (
	asInput   = `,"dependency_type":"input","contract_key":%q`
	asRelated = `,"dependency_type":"related"`
)

// Dependencies can be added later and on ended tasks. Removing one unblocks its task. A related
// dependency does not block.
//
// Rows, T-15, T-16, T-17, T-18, T-19, T-43, T-44, T-45, T-55.
func TestHubDependencies(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("maker", "go", 9)+Knowing("user", "ts", 9), "maker", "user")
	user := h.Open("maker", "user")[1]
	ann, maker := h.Person(), h.AgentCaller("maker")
	const structured = `{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{"part":{"status":"partial","data":{"n":1.0}},"left":{"status":"skipped","data":{"reason":"no API"}}}}`
	done := finish(maker, "done", structured)
	legacy := finish(maker, "legacy", `{"summary":"s","contracts":{"part":{"status":"fulfilled","data":{}}}}`)

	task := create(maker, wanting("x", "ts"))
	for _, key := range []string{"part", "left", "nothing"} {
		link := depend(maker, task, done, fmt.Sprintf(asInput, key))
		require.True(t, link.Resolved)
		require.NotEmpty(t, *link.ResolvedAt)
	}
	refusal := maker.Fails(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/dependencies",
		fmt.Sprintf(`{"depends_on_task_id":%q`+asInput+`}`, legacy, "part"))
	require.Equal(t, "contract_taken", refusal.Error.Details["reason"])
	require.True(t, depend(maker, task, legacy, fmt.Sprintf(asInput, "old")).Resolved)
	found := taskOf(ann, task)
	require.Equal(t, "pending", found.Status, "nothing was unblocked, so nobody is given it")
	require.Len(t, found.Inputs, 2)
	require.Equal(t, `{"n":1.0}`, string(found.Inputs["part"]))
	require.Equal(t, `{"reason":"no API"}`, string(found.Inputs["left"]))

	first, second := create(maker, `{"title":"first","spec":"s"}`), create(maker, `{"title":"second","spec":"s"}`)
	related := depend(maker, task, first, asRelated)
	require.True(t, related.Resolved)
	blocked := depend(maker, task, first, "")
	require.False(t, blocked.Resolved)
	require.Nil(t, blocked.ResolvedAt)
	depend(maker, task, second, "")
	maker.Gets(nil, "POST /servers/tasks/"+first+"/start", "")
	maker.Gets(nil, "POST /servers/tasks/"+first+"/fail", `{"error":"too hard"}`)
	maker.Gets(nil, "DELETE /server/tasks/"+second, "")
	for _, d := range taskOf(ann, task).Dependencies {
		require.Equal(t, d.Type != "blocks", d.Resolved, "what comes to nothing resolves nothing")
	}
	require.Equal(t, "pending", taskOf(ann, task).Status)
	maker.Fails(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/start", "")
	maker.Fails(http.StatusNotFound, "not_found", "DELETE /server/tasks/"+task+"/dependencies/d0", "")
	maker.Gets(nil, "DELETE /server/tasks/"+task+"/dependencies/"+blocked.ID, "")
	require.Equal(t, "pending", taskOf(ann, task).Status)
	maker.Gets(nil, "DELETE /server/tasks/"+task+"/dependencies/"+second, "") // by the id of the other task
	user.Assigned(task)
	found = taskOf(ann, task)
	require.Equal(t, "assigned", found.Status)
	require.Len(t, found.Dependencies, 5)
	user.Granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, task))
	maker.Fails(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q}`, done))
	h.Stop()
}

// With on_dependency_failure = "cancel", dependents of a failed task are cancelled and their
// agents are notified.
//
// Rows, T-44.
func TestHubDependencyFails(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+"protocol {\n  on_dependency_failure = \"cancel\"\n}\n"+Knowing("maker", "go", 9)+Knowing("user", "ts", 9), "maker", "user")
	user := h.Open("maker", "user")[1]
	ann, maker := h.Person(), h.AgentCaller("maker")
	first := begun(h, maker, 1)[0]
	second := create(ann, wanting("second", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, first)))
	third := create(ann, wanting("third", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, second)))
	matched(ann, second)
	maker.Gets(nil, "POST /servers/tasks/"+first+"/fail", `{"error":"too hard"}`)
	user.Notified("task-cancelled", second, "")
	for _, id := range []string{second, third} {
		require.Equal(t, "cancelled", taskOf(ann, id).Status)
		require.Contains(t, taskOf(ann, id).Reason, "ependency failed")
	}
	refusal := ann.Fails(http.StatusConflict, "conflict", "POST /tasks", fmt.Sprintf(`{"title":"late","spec":"s","dependency_ids":[%q]}`, first))
	require.Equal(t, "dependency_failed", refusal.Error.Details["reason"])
	h.Stop()
}

// Lists of all tasks, by state, by project, and by session. The most urgent task is assigned
// first.
//
// Rows, T-54, T-61.
func TestHubLists(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 1)+planner, "coder", "boss")
	coder := h.Open("coder", "boss")[0]
	ann, boss, program := h.Person(), h.AgentCaller("boss"), h.AgentCaller("coder")
	ids := make(map[string]string)
	for _, priority := range []string{"low", "normal", "critical", "high", "odd"} {
		ids[priority] = create(ann, wanting(priority, "go", fmt.Sprintf(`"priority":%q,"project_id":"p %s","type":"chore","target_repo":"shop"`, priority, priority[:1])))
	}
	list := func(query string) (titles []string) {
		var found struct{ Tasks []hubTask }
		boss.Gets(&found, "GET /server/tasks"+query, "")
		for _, one := range found.Tasks {
			titles = append(titles, one.Title)
			require.Equal(t, []string{one.Title, "chore"}, []string{one.Priority, one.Type})
		}
		return titles
	}
	require.Equal(t, []string{"low", "normal", "critical", "high", "odd"}, list(""))
	require.Equal(t, []string{"normal"}, list("?project_id=p+n&other=x"))
	require.Empty(t, list("?status=done"))
	matched(ann, ids["low"])
	coder.Assigned(ids["low"])
	require.Equal(t, []string{"low"}, list("?status=assigned"))
	check := func(who *stage.Caller, sessionID string) (found struct {
		Count int
		Tasks []hubTask
	}) {
		who.Gets(&found, "GET /server/tasks/check"+sessionID, "")
		require.Len(t, found.Tasks, found.Count)
		return found
	}
	for _, sessionID := range []string{"coder", hub.ServerID("coder"), coder.Run} {
		require.Equal(t, "low", check(boss, "?session_id="+sessionID).Tasks[0].Title)
	}
	require.Equal(t, 1, check(program, "").Count)
	require.Zero(t, check(boss, "").Count)
	require.Equal(t, "coder", taskOf(program, ids["low"]).Server)

	for _, next := range []string{"low", "critical", "high", "normal", "odd"} {
		coder.Assigned(ids[next])
		program.Gets(nil, "POST /servers/tasks/"+ids[next]+"/start", "")
		program.Gets(nil, "POST /servers/tasks/"+ids[next]+"/complete", `{"result":"r"}`)
	}
	require.Empty(t, list("?status=pending"))
	require.Len(t, list("?status=done"), 5)
	h.Stop()
}

// Knowing returns a scripted agent that knows a language and is restarted whenever it ends.
func Knowing(name, language string, capacity int, more ...string) string {
	return fmt.Sprintf(`
agent %[1]q {
  command = ["scripted", %[1]q]
  capabilities {
    languages            = [%[2]q]
    max_concurrent_tasks = %[3]d
  }
  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
  %[4]s
}
`, name, language, capacity, strings.Join(more, "\n  "))
}

const (
	delivered  = `{"endpoints":[{"n":12345678901234567890,"html":"<&>"}],"f":1.00,"u":"\u00e9","e":1E400}`
	promise    = `"structured_spec":{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"draw it up","priority":"must"}],"output_expectations":{"contracts":{"api":{"description":"the API","required":true},"more":{"description":"more","required":true}}}}`
	delivering = `{"result":{"$schema":"orchestratia/task-result/v1","summary":"drawn up","contracts":{"api":{"status":"fulfilled","data":` + delivered + `}}}}`
)

// inputOf returns a dependency on the output of another task.
func inputOf(task string) string {
	return fmt.Sprintf(`"dependencies":[{"depends_on_task_id":%q,"dependency_type":"input","contract_key":"api"}]`, task)
}

// One task delivers an input of a second one, and a third only waits. The test follows them from
// creation to the end.
//
// Rows,
// T-13, T-48, T-52.
func TestHubPipeline(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("maker", "go", 1)+Knowing("user", "ts", 2), "maker", "user")
	actors := h.Open("maker", "user")
	ann, maker, user := h.Person(), h.AgentCaller("maker"), h.AgentCaller("user")

	var brief hubTask
	r := ann.Gets(&brief, "POST /tasks", wanting("draw", "go", promise, `"priority":"high"`))
	require.Equal(t, http.StatusCreated, r.Status)
	draw := brief.ID
	require.Equal(t, hubTask{ID: draw, Title: "draw", Status: "pending", Type: "feature", Priority: "high"}, brief)
	build := create(ann, wanting("build", "ts", inputOf(draw)))
	wait := create(ann, wanting("wait", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, draw)))
	require.Empty(t, polled(maker), "nobody is given anything because it is there")

	var fits hub.Matches
	ann.Gets(&fits, "GET /tasks/"+draw+"/matching-agents", "")
	require.Equal(t, 2, fits.Total)
	server, score := matched(ann, draw)
	require.Equal(t, "maker", server)
	require.Equal(t, fits.Servers[0].Score, score)
	ann.Fails(http.StatusConflict, "conflict", "POST /tasks/"+draw+"/auto-assign", "")
	actors[0].Assigned(draw)
	require.Equal(t, draw, polled(maker)[0].ID)
	server, _ = matched(ann, wait)
	require.Equal(t, "user", server)
	actors[1].Settle()
	require.Empty(t, actors[1].Notices("task-assigned"), "it is told when it can begin")
	refusal := user.Fails(http.StatusConflict, "conflict", "POST /servers/tasks/"+wait+"/start", "")
	require.Equal(t, "blocked", refusal.Error.Details["reason"])
	require.Equal(t, []any{draw}, refusal.Error.Details["waits_for"])
	require.True(t, refusal.Error.Recoverable)
	require.Equal(t, "assigned", taskOf(user, wait).Status)

	maker.Fails(http.StatusConflict, "conflict", "POST /servers/tasks/"+draw+"/complete", delivering)
	maker.Gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	r = maker.Gets(nil, "POST /servers/tasks/"+draw+"/complete", delivering)
	require.Equal(t, `{"status":"ok"}`, r.Text)
	actors[1].Assigned(build)
	actors[1].Assigned(wait)
	for _, task := range polled(user) {
		require.Equal(t, map[string]string{build: delivered}[task.ID], string(task.Inputs["api"]), "digit for digit")
	}
	require.Len(t, polled(user), 2)
	seen := taskOf(ann, build)
	require.Equal(t, delivered, string(seen.Inputs["api"]))
	require.Equal(t, "input", seen.Dependencies[0].Type)
	require.True(t, seen.Dependencies[0].Resolved)
	require.NotEmpty(t, *seen.Dependencies[0].ResolvedAt)
	require.Equal(t, delivered, string(inputs(actors[1], build)["api"]))

	requireCascade(h, draw, build, wait)
	user.Gets(nil, "POST /server/tasks/"+build+"/start", "")
	user.Gets(nil, "POST /server/tasks/"+build+"/complete", `{"result":"built <&>"}`)
	require.Equal(t, `{"summary":"built <&>","completed_by":"agent:user"}`, string(taskOf(ann, build).Result))
	stage.RequireNoGaps(t, h.Orchestrator)
	h.Stop()
}

// inputs returns the inputs of a task as its agent sees them.
func inputs(a *stage.Agent, id string) map[string]json.RawMessage {
	a.T.Helper()
	var reply struct {
		Task struct {
			Inputs map[string]json.RawMessage `json:"resolved_inputs"`
		}
	}
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task.Inputs
}

// requireCascade requires that the consequences of a completed task are consecutive events, in
// order.
func requireCascade(h *stage.Hub, end, build, wait string) {
	h.T.Helper()
	story := storyOf(h)
	first := slices.IndexFunc(story, func(e wire.Event) bool { return e.Task == end && e.Kind == events.TaskDone })
	require.Positive(h.T, first)
	require.Equal(h.T, []string{
		events.TaskDone, events.ContractFulfilled, events.ContractMissing, events.DependencyResolved,
		events.TaskUnblocked, events.TaskUnblocked, events.TaskAssigned, events.TaskAnnounced,
	}, kinds(story[first:first+8], ""))
	require.Equal(h.T, []string{build, wait, build, end}, []string{story[first+4].Task, story[first+5].Task, story[first+6].Task, story[first+7].Task})
	require.Equal(h.T, []string{
		events.TaskCreated, events.TaskAssigned, events.TaskStarted, events.TaskDone,
		events.ContractFulfilled, events.ContractMissing, events.DependencyResolved, events.TaskAnnounced,
	}, kinds(storyOf(h, "--task", end), ""))
}

// The same with a program that is killed after each step. Tasks, keys and tokens are restored,
// and no decision is repeated.
//
// Rows, T-21, T-48, T-57.
func TestHubPipelineKilled(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("maker", "go", 1)+Knowing("user", "ts", 1), "maker", "user")
	actors := h.Open("maker", "user")
	ann, maker, user := h.Person(), h.AgentCaller("maker"), h.AgentCaller("user")
	draw := create(ann, wanting("draw", "go", promise))
	build := create(ann, wanting("build", "ts", inputOf(draw)))
	server, _ := matched(ann, draw)
	require.Equal(t, "maker", server)
	actors[0].Assigned(draw)
	h.Kill()

	actors = h.Open("maker", "user")
	actors[0].Assigned(draw) // not started, so it is announced again
	require.Equal(t, "assigned", taskOf(ann, draw).Status)
	maker.Gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	h.Kill()

	actors = h.Open("maker", "user")
	actors[0].Assigned(draw) // was started, so it starts again
	require.Equal(t, draw, polled(maker)[0].ID)
	maker.Gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	maker.Gets(nil, "POST /servers/tasks/"+draw+"/complete", delivering)
	h.Kill()

	actors = h.Open("maker", "user")
	require.Equal(t, "done", taskOf(ann, draw).Status)
	actors[1].Assigned(build)
	require.Empty(t, polled(maker))
	require.Equal(t, delivered, string(polled(user)[0].Inputs["api"]))
	user.Gets(nil, "POST /servers/tasks/"+build+"/start", "")
	user.Gets(nil, "POST /servers/tasks/"+build+"/complete", `{"result":{"n":12345678901234567890,"html":"<&>"}}`)
	h.Kill()

	h.Open("maker", "user")
	require.Equal(t, `{"n":12345678901234567890,"html":"<&>"}`, string(taskOf(ann, build).Result))
	require.Equal(t, []string{
		events.TaskCreated, events.TaskUnblocked, events.TaskAssigned, events.TaskStarted, events.TaskDone,
	}, kinds(storyOf(h), build))
	stage.RequireNoGaps(t, h.Orchestrator)
	h.Stop()
}
