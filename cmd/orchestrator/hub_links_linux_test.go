package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// finish creates a task, starts it and completes it with a result.
func (v *visitor) finish(title, result string, more ...string) string {
	v.hub.t.Helper()
	id := v.create("{" + strings.Join(append([]string{fmt.Sprintf(`"title":%q,"spec":"s"`, title)}, more...), ",") + "}")
	v.gets(nil, "POST /servers/tasks/"+id+"/start", "")
	v.gets(nil, "POST /servers/tasks/"+id+"/complete", `{"result":`+result+`}`)
	return id
}

// depend adds a dependency to a task.
func (v *visitor) depend(task, on, more string) (link hubLink) {
	v.hub.t.Helper()
	r := v.gets(&link, "POST /server/tasks/"+task+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q%s}`, on, more))
	require.Equal(v.hub.t, http.StatusCreated, r.status)
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
	h := newHub(t, listeners+quick+knowing("maker", "go", 9)+knowing("user", "ts", 9), "maker", "user")
	user := h.open("maker", "user")[1]
	ann, maker := h.person(), h.program("maker")
	const structured = `{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{"part":{"status":"partial","data":{"n":1.0}},"left":{"status":"skipped","data":{"reason":"no API"}}}}`
	done := maker.finish("done", structured)
	legacy := maker.finish("legacy", `{"summary":"s","contracts":{"part":{"status":"fulfilled","data":{}}}}`)

	task := maker.create(wanting("x", "ts"))
	for _, key := range []string{"part", "left", "nothing"} {
		link := maker.depend(task, done, fmt.Sprintf(asInput, key))
		require.True(t, link.Resolved)
		require.NotEmpty(t, *link.ResolvedAt)
	}
	refusal := maker.misses(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/dependencies",
		fmt.Sprintf(`{"depends_on_task_id":%q`+asInput+`}`, legacy, "part"))
	require.Equal(t, "contract_taken", refusal.Error.Details["reason"])
	require.True(t, maker.depend(task, legacy, fmt.Sprintf(asInput, "old")).Resolved)
	found := ann.task(task)
	require.Equal(t, "pending", found.Status, "nothing was unblocked, so nobody is given it")
	require.Len(t, found.Inputs, 2)
	require.Equal(t, `{"n":1.0}`, string(found.Inputs["part"]))
	require.Equal(t, `{"reason":"no API"}`, string(found.Inputs["left"]))

	first, second := maker.create(`{"title":"first","spec":"s"}`), maker.create(`{"title":"second","spec":"s"}`)
	related := maker.depend(task, first, asRelated)
	require.True(t, related.Resolved)
	blocked := maker.depend(task, first, "")
	require.False(t, blocked.Resolved)
	require.Nil(t, blocked.ResolvedAt)
	maker.depend(task, second, "")
	maker.gets(nil, "POST /servers/tasks/"+first+"/start", "")
	maker.gets(nil, "POST /servers/tasks/"+first+"/fail", `{"error":"too hard"}`)
	maker.gets(nil, "DELETE /server/tasks/"+second, "")
	for _, d := range ann.task(task).Dependencies {
		require.Equal(t, d.Type != "blocks", d.Resolved, "what comes to nothing resolves nothing")
	}
	require.Equal(t, "pending", ann.task(task).Status)
	maker.misses(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/start", "")
	maker.misses(http.StatusNotFound, "not_found", "DELETE /server/tasks/"+task+"/dependencies/d0", "")
	maker.gets(nil, "DELETE /server/tasks/"+task+"/dependencies/"+blocked.ID, "")
	require.Equal(t, "pending", ann.task(task).Status)
	maker.gets(nil, "DELETE /server/tasks/"+task+"/dependencies/"+second, "") // by the id of the other task
	user.assigned(task)
	found = ann.task(task)
	require.Equal(t, "assigned", found.Status)
	require.Len(t, found.Dependencies, 5)
	user.granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, task))
	maker.misses(http.StatusConflict, "conflict", "POST /server/tasks/"+task+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q}`, done))
	h.stop()
}

// With on_dependency_failure = "cancel", dependents of a failed task are cancelled and their
// agents are notified.
//
// Rows, T-44.
func TestHubDependencyFails(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+"protocol {\n  on_dependency_failure = \"cancel\"\n}\n"+knowing("maker", "go", 9)+knowing("user", "ts", 9), "maker", "user")
	user := h.open("maker", "user")[1]
	ann, maker := h.person(), h.program("maker")
	first := h.begun(maker, 1)[0]
	second := ann.create(wanting("second", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, first)))
	third := ann.create(wanting("third", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, second)))
	ann.matched(second)
	maker.gets(nil, "POST /servers/tasks/"+first+"/fail", `{"error":"too hard"}`)
	user.told("task-cancelled", second, "")
	for _, id := range []string{second, third} {
		require.Equal(t, "cancelled", ann.task(id).Status)
		require.Contains(t, ann.task(id).Reason, "ependency failed")
	}
	refusal := ann.misses(http.StatusConflict, "conflict", "POST /tasks", fmt.Sprintf(`{"title":"late","spec":"s","dependency_ids":[%q]}`, first))
	require.Equal(t, "dependency_failed", refusal.Error.Details["reason"])
	h.stop()
}

// Lists of all tasks, by state, by project, and by session. The most urgent task is assigned
// first.
//
// Rows, T-54, T-61.
func TestHubLists(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("coder", "go", 1)+planner, "coder", "boss")
	coder := h.open("coder", "boss")[0]
	ann, boss, program := h.person(), h.program("boss"), h.program("coder")
	ids := make(map[string]string)
	for _, priority := range []string{"low", "normal", "critical", "high", "odd"} {
		ids[priority] = ann.create(wanting(priority, "go", fmt.Sprintf(`"priority":%q,"project_id":"p %s","type":"chore","target_repo":"shop"`, priority, priority[:1])))
	}
	list := func(query string) (titles []string) {
		var found struct{ Tasks []hubTask }
		boss.gets(&found, "GET /server/tasks"+query, "")
		for _, one := range found.Tasks {
			titles = append(titles, one.Title)
			require.Equal(t, []string{one.Title, "chore"}, []string{one.Priority, one.Type})
		}
		return titles
	}
	require.Equal(t, []string{"low", "normal", "critical", "high", "odd"}, list(""))
	require.Equal(t, []string{"normal"}, list("?project_id=p+n&other=x"))
	require.Empty(t, list("?status=done"))
	ann.matched(ids["low"])
	coder.assigned(ids["low"])
	require.Equal(t, []string{"low"}, list("?status=assigned"))
	check := func(who *visitor, sessionID string) (found struct {
		Count int
		Tasks []hubTask
	}) {
		who.gets(&found, "GET /server/tasks/check"+sessionID, "")
		require.Len(t, found.Tasks, found.Count)
		return found
	}
	for _, sessionID := range []string{"coder", hub.ServerID("coder"), coder.run} {
		require.Equal(t, "low", check(boss, "?session_id="+sessionID).Tasks[0].Title)
	}
	require.Equal(t, 1, check(program, "").Count)
	require.Zero(t, check(boss, "").Count)
	require.Equal(t, "coder", program.task(ids["low"]).Server)

	for _, next := range []string{"low", "critical", "high", "normal", "odd"} {
		coder.assigned(ids[next])
		program.gets(nil, "POST /servers/tasks/"+ids[next]+"/start", "")
		program.gets(nil, "POST /servers/tasks/"+ids[next]+"/complete", `{"result":"r"}`)
	}
	require.Empty(t, list("?status=pending"))
	require.Len(t, list("?status=done"), 5)
	h.stop()
}

// knowing returns a puppet that knows a language and is restarted whenever it ends.
func knowing(name, language string, capacity int, more ...string) string {
	return fmt.Sprintf(`
agent %[1]q {
  command = ["puppet", %[1]q]
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
	h := newHub(t, listeners+quick+knowing("maker", "go", 1)+knowing("user", "ts", 2), "maker", "user")
	actors := h.open("maker", "user")
	ann, maker, user := h.person(), h.program("maker"), h.program("user")

	var brief hubTask
	r := ann.gets(&brief, "POST /tasks", wanting("draw", "go", promise, `"priority":"high"`))
	require.Equal(t, http.StatusCreated, r.status)
	draw := brief.ID
	require.Equal(t, hubTask{ID: draw, Title: "draw", Status: "pending", Type: "feature", Priority: "high"}, brief)
	build := ann.create(wanting("build", "ts", inputOf(draw)))
	wait := ann.create(wanting("wait", "ts", fmt.Sprintf(`"dependency_ids":[%q]`, draw)))
	require.Empty(t, maker.polled(), "nobody is given anything because it is there")

	var fits hub.Matches
	ann.gets(&fits, "GET /tasks/"+draw+"/matching-agents", "")
	require.Equal(t, 2, fits.Total)
	server, score := ann.matched(draw)
	require.Equal(t, "maker", server)
	require.Equal(t, fits.Servers[0].Score, score)
	ann.misses(http.StatusConflict, "conflict", "POST /tasks/"+draw+"/auto-assign", "")
	actors[0].assigned(draw)
	require.Equal(t, draw, maker.polled()[0].ID)
	server, _ = ann.matched(wait)
	require.Equal(t, "user", server)
	actors[1].quiet()
	require.Empty(t, actors[1].notices("task-assigned"), "it is told when it can begin")
	refusal := user.misses(http.StatusConflict, "conflict", "POST /servers/tasks/"+wait+"/start", "")
	require.Equal(t, "blocked", refusal.Error.Details["reason"])
	require.Equal(t, []any{draw}, refusal.Error.Details["waits_for"])
	require.True(t, refusal.Error.Recoverable)
	require.Equal(t, "assigned", user.task(wait).Status)

	maker.misses(http.StatusConflict, "conflict", "POST /servers/tasks/"+draw+"/complete", delivering)
	maker.gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	r = maker.gets(nil, "POST /servers/tasks/"+draw+"/complete", delivering)
	require.Equal(t, `{"status":"ok"}`, r.text)
	actors[1].assigned(build)
	actors[1].assigned(wait)
	for _, task := range user.polled() {
		require.Equal(t, map[string]string{build: delivered}[task.ID], string(task.Inputs["api"]), "digit for digit")
	}
	require.Len(t, user.polled(), 2)
	seen := ann.task(build)
	require.Equal(t, delivered, string(seen.Inputs["api"]))
	require.Equal(t, "input", seen.Dependencies[0].Type)
	require.True(t, seen.Dependencies[0].Resolved)
	require.NotEmpty(t, *seen.Dependencies[0].ResolvedAt)
	require.Equal(t, delivered, string(actors[1].inputs(build)["api"]))

	h.requireCascade(draw, build, wait)
	user.gets(nil, "POST /server/tasks/"+build+"/start", "")
	user.gets(nil, "POST /server/tasks/"+build+"/complete", `{"result":"built <&>"}`)
	require.Equal(t, `{"summary":"built <&>","completed_by":"agent:user"}`, string(ann.task(build).Result))
	requireNoHoles(t, h.stage)
	h.stop()
}

// inputs returns the inputs of a task as its agent sees them.
func (a *actor) inputs(id string) map[string]json.RawMessage {
	a.t.Helper()
	var reply struct {
		Task struct {
			Inputs map[string]json.RawMessage `json:"resolved_inputs"`
		}
	}
	a.granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task.Inputs
}

// requireCascade requires that the consequences of a completed task are consecutive events, in
// order.
func (h *hubTeam) requireCascade(end, build, wait string) {
	h.t.Helper()
	story := h.story()
	first := slices.IndexFunc(story, func(e wire.Event) bool { return e.Task == end && e.Kind == events.TaskDone })
	require.Positive(h.t, first)
	require.Equal(h.t, []string{
		events.TaskDone, events.ContractFulfilled, events.ContractMissing, events.DependencyResolved,
		events.TaskUnblocked, events.TaskUnblocked, events.TaskAssigned, events.TaskAnnounced,
	}, kinds(story[first:first+8], ""))
	require.Equal(h.t, []string{build, wait, build, end}, []string{story[first+4].Task, story[first+5].Task, story[first+6].Task, story[first+7].Task})
	require.Equal(h.t, []string{
		events.TaskCreated, events.TaskAssigned, events.TaskStarted, events.TaskDone,
		events.ContractFulfilled, events.ContractMissing, events.DependencyResolved, events.TaskAnnounced,
	}, kinds(h.story("--task", end), ""))
}

// The same with a program that is killed after each step. Tasks, keys and tokens are restored,
// and no decision is repeated.
//
// Rows, T-21, T-48, T-57.
func TestHubPipelineKilled(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("maker", "go", 1)+knowing("user", "ts", 1), "maker", "user")
	actors := h.open("maker", "user")
	ann, maker, user := h.person(), h.program("maker"), h.program("user")
	draw := ann.create(wanting("draw", "go", promise))
	build := ann.create(wanting("build", "ts", inputOf(draw)))
	server, _ := ann.matched(draw)
	require.Equal(t, "maker", server)
	actors[0].assigned(draw)
	h.kill()

	actors = h.open("maker", "user")
	actors[0].assigned(draw) // not started, so it is announced again
	require.Equal(t, "assigned", ann.task(draw).Status)
	maker.gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	h.kill()

	actors = h.open("maker", "user")
	actors[0].assigned(draw) // was started, so it starts again
	require.Equal(t, draw, maker.polled()[0].ID)
	maker.gets(nil, "POST /servers/tasks/"+draw+"/start", "")
	maker.gets(nil, "POST /servers/tasks/"+draw+"/complete", delivering)
	h.kill()

	actors = h.open("maker", "user")
	require.Equal(t, "done", ann.task(draw).Status)
	actors[1].assigned(build)
	require.Empty(t, maker.polled())
	require.Equal(t, delivered, string(user.polled()[0].Inputs["api"]))
	user.gets(nil, "POST /servers/tasks/"+build+"/start", "")
	user.gets(nil, "POST /servers/tasks/"+build+"/complete", `{"result":{"n":12345678901234567890,"html":"<&>"}}`)
	h.kill()

	h.open("maker", "user")
	require.Equal(t, `{"n":12345678901234567890,"html":"<&>"}`, string(ann.task(build).Result))
	require.Equal(t, []string{
		events.TaskCreated, events.TaskUnblocked, events.TaskAssigned, events.TaskStarted, events.TaskDone,
	}, kinds(h.story(), build))
	requireNoHoles(t, h.stage)
	h.stop()
}
