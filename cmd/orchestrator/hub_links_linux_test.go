package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
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
	for _, sessionID := range []string{"coder", wire.ServerID("coder"), coder.run} {
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
